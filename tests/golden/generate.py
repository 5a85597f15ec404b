#!/usr/bin/env python3
"""Makes the golden files of this folder: tiny random models of public families, run by
transformers.

Not part of any build. In a virtual environment with torch, transformers, safetensors and einops:
    generate.py [FAMILY...]
    generate.py kernels FOLDER    with fla-core in it (pip install --no-deps --target FOLDER)
For each family a folder gets
    config.json, model.safetensors  the checkpoint, as save_pretrained() writes it
    golden.json                     versions, seed, token ids, errors measured here
    logits.safetensors              of one full forward without a cache: "fp32" as the public code
                                    computes them; "fp64" from the same code with every fp32 tensor
                                    and cast made fp64, so that it is more than a second fp32
kernels/*.safetensors hold inputs, outputs (fp64) and last states of the delta rules alone, as
flash-linear-attention's naive functions compute them.
"""
import contextlib
import dataclasses
import importlib.util
import json
import math
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

FOLDER = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Family:
    module: str  # below transformers.models
    config: str
    model: str
    sizes: dict
    dtype: torch.dtype = torch.float32  # of the weights in the file
    tokens: int = 48  # three chunks of the Mamba2 families, whose public forward is chunked
    seed: int = 1


EPS = 2.0**-17  # the same in fp32 and fp64
COMMON = dict(vocab_size=64, hidden_size=32, num_attention_heads=4, num_key_value_heads=2)

# The delta rules of public code go in chunks of 64 tokens.
FAMILIES = {
    "inkling": Family("inkling", "InklingTextConfig", "InklingForCausalLM", dict(
        COMMON, rms_norm_eps=EPS,
        num_hidden_layers=4, head_dim=8, swa_num_attention_heads=4,
        swa_num_key_value_heads=2, swa_head_dim=8, sliding_window_size=8, d_rel=4, rel_extent=24,
        intermediate_size=48, layer_types=["hybrid_sliding", "hybrid"] * 2,
        mlp_layer_types=["dense"] * 4, logits_mup_width_multiplier=3.0), torch.bfloat16),
    "inkling-moe": Family("inkling", "InklingTextConfig", "InklingForCausalLM", dict(
        COMMON, rms_norm_eps=EPS,
        num_hidden_layers=3, head_dim=8, swa_num_attention_heads=4,
        swa_num_key_value_heads=4, swa_head_dim=8, sliding_window_size=8, d_rel=4, rel_extent=24,
        intermediate_size=48, moe_intermediate_size=16, n_routed_experts=8, num_experts_per_tok=3,
        n_shared_experts=2, route_scale=8.0, layer_types=["hybrid_sliding", "hybrid", "hybrid"],
        mlp_layer_types=["dense", "sparse", "sparse"], log_scaling_n_floor=16,
        log_scaling_alpha=0.125, logits_mup_width_multiplier=3.0, unpadded_vocab_size=60),
        torch.bfloat16),
    "lfm2": Family("lfm2", "Lfm2Config", "Lfm2ForCausalLM", dict(
        COMMON, norm_eps=EPS,
        num_hidden_layers=4, intermediate_size=48, conv_L_cache=3,
        block_auto_adjust_ff_dim=False, tie_word_embeddings=True,
        layer_types=["conv", "full_attention", "conv", "full_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), torch.float16),
    "mamba2": Family("mamba2", "Mamba2Config", "Mamba2ForCausalLM", dict(
        layer_norm_epsilon=EPS,
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_heads=8, head_dim=8, state_size=16,
        n_groups=2, expand=2, conv_kernel=4, chunk_size=16)),
    "qwen3-next": Family("qwen3_next", "Qwen3NextConfig", "Qwen3NextForCausalLM", dict(
        COMMON, rms_norm_eps=EPS,
        num_hidden_layers=4, head_dim=16, intermediate_size=48,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
        linear_value_head_dim=8, moe_intermediate_size=16, shared_expert_intermediate_size=24,
        num_experts=8, num_experts_per_tok=3, mlp_only_layers=[0],
        layer_types=["linear_attention", "full_attention"] * 2,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                         "partial_rotary_factor": 0.25}), torch.bfloat16,
        tokens=80),
    "kimi-linear": Family("kimi_linear", "KimiLinearConfig", "KimiLinearForCausalLM", dict(
        COMMON | dict(num_key_value_heads=4), rms_norm_eps=EPS,
        num_hidden_layers=4, intermediate_size=48,
        kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=16,
        linear_head_dim=8, linear_num_heads=4,
        layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"],
        mlp_layer_types=["dense", "sparse", "sparse", "dense"], n_routed_experts=8,
        num_local_experts=8, num_experts_per_tok=2, moe_intermediate_size=16,
        routed_scaling_factor=2.5,
        pad_token_id=0, bos_token_id=1, eos_token_id=2), torch.bfloat16,
        tokens=80),
    "falcon-h1": Family("falcon_h1", "FalconH1Config", "FalconH1ForCausalLM", dict(
        COMMON, rms_norm_eps=EPS,
        num_hidden_layers=2, intermediate_size=48, mamba_d_ssm=64, mamba_n_heads=8,
        mamba_d_head=8, mamba_n_groups=1, mamba_d_state=16, mamba_chunk_size=16,
        mamba_rms_norm=False, mamba_norm_before_gate=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        embedding_multiplier=1.5, lm_head_multiplier=0.75, key_multiplier=0.5,
        attention_in_multiplier=1.25, attention_out_multiplier=0.875, ssm_in_multiplier=1.5,
        ssm_out_multiplier=0.625, mlp_multipliers=[1.25, 0.75],
        ssm_multipliers=[0.75, 1.25, 0.5, 1.5, 0.875]), torch.bfloat16),
    "nemotron-h": Family("nemotron_h", "NemotronHConfig", "NemotronHForCausalLM", dict(
        # This class clamps time steps from below by time_step_min, in a prefill only: in no place
        # that is as small as this.
        COMMON, layer_norm_epsilon=EPS, time_step_min=1e-30,
        head_dim=8, intermediate_size=48, ssm_state_size=16, mamba_num_heads=8,
        mamba_head_dim=8, n_groups=2, chunk_size=16, n_routed_experts=8, num_experts_per_tok=2,
        moe_intermediate_size=16, moe_shared_expert_intermediate_size=24,
        layers_block_type=["linear_attention", "mlp", "full_attention", "linear_attention",
                           "moe"]), torch.bfloat16),
}


def randomise(model, dtype):
    """Weights that leave nothing degenerate: decays as the families initialise them, everything
    else spread so that every part matters. Values that `dtype` holds exactly; scales and the
    multipliers of FAMILIES are short enough that their products with bf16 weights are exact in
    fp32, so that a reader that works them into the weights loses nothing."""
    for name, tensor in sorted(model.state_dict(keep_vars=True).items()):
        leaf = name.split(".")[-1]
        with torch.no_grad():
            if leaf == "A_log":
                value = torch.empty_like(tensor).uniform_(1, 16).log()
            elif leaf == "dt_bias":
                step = torch.empty_like(tensor).uniform_(math.log(1e-3), math.log(1e-1)).exp()
                value = step + torch.log(-torch.expm1(-step))
            elif "norm" in name and tensor.dim() == 1:
                # Multiples of 2^-6: adding 1 to a weight that is stored around 0 stays exact.
                around = tensor.mean()
                value = around + torch.randint(-12, 13, tensor.shape) / 64
            elif leaf in ("D", "global_scale"):
                value = torch.randint(4, 13, tensor.shape) / 8
            elif leaf in ("bias", "e_score_correction_bias"):
                value = torch.empty_like(tensor).uniform_(-0.2, 0.2)
            elif "conv" in name:
                value = torch.randn_like(tensor) * 0.4
            elif "embed" in name:
                value = torch.randn_like(tensor)
            elif leaf == "proj":
                value = torch.randn_like(tensor) * 0.5
            else:
                value = torch.randn_like(tensor) * 1.4 / math.sqrt(tensor.shape[-1])
            tensor.copy_(value.to(dtype))


@contextlib.contextmanager
def everything_double():
    """Public code casts to fp32 inside; here these casts mean fp64."""
    as_is = {"float": torch.Tensor.float, "to": torch.Tensor.to, "type": torch.Tensor.type}
    single = torch.float32

    def wide(value):
        return torch.float64 if value is single else value

    def to(tensor, *args, **kwargs):
        return as_is["to"](tensor, *[wide(a) for a in args],
                           **{key: wide(value) for key, value in kwargs.items()})

    torch.Tensor.float = torch.Tensor.double
    torch.Tensor.to = to
    torch.Tensor.type = lambda tensor, kind=None: as_is["type"](tensor, wide(kind))
    torch.float32 = torch.float = torch.float64
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(single)
        torch.float32 = torch.float = single
        for name, function in as_is.items():
            setattr(torch.Tensor, name, function)


def forward(build, weights, tokens):
    model = build().eval()
    model.load_state_dict(weights, strict=False)
    missing = set(model.state_dict()) - set(weights)
    assert not missing, missing
    with torch.no_grad():
        return model(input_ids=tokens[None], use_cache=False).logits[0]


def spread(logits):
    return float(logits.abs().max())


def naive(folder, name):
    """A function of flash-linear-attention that is plain torch; the package itself needs a GPU."""
    path = pathlib.Path(folder) / "fla" / "ops" / name / "naive.py"
    spec = importlib.util.spec_from_file_location("naive_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_kernels(packages):
    """Recurrences alone: inputs and outputs of fla's naive functions. Queries and keys have length
    1, as the mixers of the families give them."""
    tokens, heads, keys, values = 24, 2, 8, 4
    version = next(pathlib.Path(packages).glob("fla_core-*.dist-info")).stem
    shapes = {"gdn": (tokens, heads), "kda": (tokens, heads, keys)}
    for kind, decay_shape in shapes.items():
        torch.manual_seed(3)
        unit = torch.nn.functional.normalize
        inputs = {
            "query": unit(torch.randn(tokens, heads, keys), dim=-1),
            "key": unit(torch.randn(tokens, heads, keys), dim=-1),
            "value": torch.randn(tokens, heads, values),
            "beta": torch.rand(tokens, heads),
            "decay": -torch.rand(decay_shape),  # the logarithm
        }

        def run(wide):
            q, k, v, beta, g = (value.double() if wide else value for value in
                                (inputs[name][None] for name in inputs))
            if kind == "gdn":
                module = naive(packages, "gated_delta_rule")
                return module.naive_recurrent_gated_delta_rule(
                    q, k, v, beta, g, output_final_state=True)
            module = naive(packages, "kda")
            return module.naive_recurrent_kda(q, k, v, g, beta, output_final_state=True)

        single = run(False)[0][0]
        with everything_double():
            output, state = (tensor[0] for tensor in run(True))
        error = float((single.double() - output).abs().max()) / spread(output)
        FOLDER.joinpath("kernels").mkdir(exist_ok=True)
        save_file({key: value.contiguous() for key, value in
                   (inputs | {"output": output, "state": state}).items()},
                  FOLDER / "kernels" / f"{kind}.safetensors", {"source": version})
        print(f"{kind}: {version}, fp32 off by {error:.2e}")


def make(name):
    family = FAMILIES[name]
    module = f"transformers.models.{family.module}"
    config_class = getattr(importlib.import_module(f"{module}.configuration_{family.module}"),
                           family.config)
    model_class = getattr(importlib.import_module(f"{module}.modeling_{family.module}"),
                          family.model)

    def build():
        config = config_class(**family.sizes)
        config._attn_implementation = "eager"
        config._experts_implementation = "eager"
        return model_class(config)

    torch.manual_seed(family.seed)
    model = build()
    randomise(model, family.dtype)
    weights = {key: value.detach().clone() for key, value in model.state_dict().items()}
    vocab = family.sizes.get("unpadded_vocab_size", family.sizes["vocab_size"])
    tokens = torch.randint(0, vocab, (family.tokens,))
    single = forward(build, weights, tokens)
    with everything_double():
        wide = {key: value.double() if value.is_floating_point() else value
                for key, value in weights.items()}
        double = forward(build, wide, tokens)
    assert single.dtype is torch.float32 and double.dtype is torch.float64

    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    model.to(family.dtype).save_pretrained(folder)
    for extra in ("generation_config.json",):
        (folder / extra).unlink(missing_ok=True)
    save_file({"fp32": single.contiguous(), "fp64": double.contiguous()},
              folder / "logits.safetensors")
    error = float((single.double() - double).abs().max()) / spread(double)
    golden = {
        "family": name,
        "source": f"transformers {transformers.__version__}, {family.model}",
        "torch": torch.__version__,
        "seed": family.seed,
        "weights": str(family.dtype).removeprefix("torch."),
        "largest_logit": spread(double),
        "fp32_error": error,
        "tokens": tokens.tolist(),
    }
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: {size} bytes, largest logit {spread(double):.3f}, fp32 off by {error:.2e}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["kernels"]:
        make_kernels(sys.argv[2])
    else:
        for chosen in sys.argv[1:] or FAMILIES:
            make(chosen)
