#!/usr/bin/env python3
"""The fingerprint model once more, from the description in model/fingerprint.h.

    python3 tests/golden/fingerprint.py

prints hidden words of the default model (layers swa full rec rec, W 64, Wc 4) with weight seed 7
and cache page 4 on the tokens 1, 2, ..., 100: after 1, 70 and 100 tokens, and after 100 tokens with
the adapter "adapter-7". Token by token, on plain lists.
"""

MASK = (1 << 64) - 1
EMPTY = 0xE7037ED1A0B428DB


class SplitMix:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return z ^ (z >> 31)


def substream(seed, name):
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001B3 & MASK
    return SplitMix(SplitMix(seed ^ digest).next())


def mix(value):
    return SplitMix(value).next()


def absorb(value, *words):
    for word in words:
        value = (value ^ word) * 0x9FB21C651E98DF25 & MASK
        value ^= value >> 32
    return value


def fold(rows, t, first, page):
    own = t // page
    total = 0
    for i in range(first, t + 1):
        if i // page == own or i % page == page - 1:
            total += rows[i] * ((i * 0x9E3779B97F4A7C15 & MASK) | 1)
    return total & MASK


def run(tokens, weight_seed, page, adapter=None):
    layers, window, taps = ("swa", "full", "rec", "rec"), 64, 4
    weights = substream(weight_seed, "weights")
    embedding = weights.next()
    keys = [weights.next() for _ in layers]
    rows = [[] for _ in layers]
    states = [{"fold": EMPTY, "count": 0, "conv": [EMPTY] * (taps - 1)} for _ in layers]
    adapter_word = 0 if adapter is None else substream(embedding, adapter).next()
    hidden = []
    for t, token in enumerate(tokens):
        x = mix(absorb(embedding, adapter_word, token))
        for kind, key, layer_rows, state in zip(layers, keys, rows, states):
            if kind == "rec":
                u = mix(absorb(key, *state["conv"], state["count"], x))
                state["fold"] = mix(absorb(state["fold"], u, state["count"]))
                state["count"] += 1
                state["conv"] = state["conv"][1:] + [x]
                x = mix(absorb(~key & MASK, x, state["fold"]))
            else:
                first = max(0, t - window + 1) if kind == "swa" else 0
                previous = layer_rows[t - 1] if t - 1 >= first and t > 0 else 0
                layer_rows.append(mix(absorb(key, t, token, x, previous)))
                x = mix(absorb(~key & MASK, x, fold(layer_rows, t, first, page)))
        hidden.append(x)
    return hidden


def main():
    tokens = list(range(1, 101))
    plain = run(tokens, weight_seed=7, page=4)
    for length in (1, 70, 100):
        word = plain[length - 1]
        print(f"{length:3} tokens            0x{word:016x}  next {mix(word) % 65536}")
    adapted = run(tokens, weight_seed=7, page=4, adapter="adapter-7")
    print(f"100 tokens, adapter-7 0x{adapted[-1]:016x}  next {mix(adapted[-1]) % 65536}")


if __name__ == "__main__":
    main()
