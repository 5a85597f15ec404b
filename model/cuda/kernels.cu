// The models' kernels, compiled for the device.
#include "device/cuda/launch.cuh"
#include "model/decoder_kernels.h"
#include "model/fingerprint_kernels.h"
#include "model/recurrent_kernels.h"

namespace lockstep {

LOCKSTEP_CUDA_ENTRY(model::EmbedKernel);
LOCKSTEP_CUDA_ENTRY(model::NormKernel);
LOCKSTEP_CUDA_ENTRY(model::ProjectKernel<1>);
LOCKSTEP_CUDA_ENTRY(model::ProjectKernel<8>);
LOCKSTEP_CUDA_ENTRY(model::ProjectHeadsKernel);
LOCKSTEP_CUDA_ENTRY(model::ConvolveKernel);
LOCKSTEP_CUDA_ENTRY(model::SaveStateKernel);
LOCKSTEP_CUDA_ENTRY(model::ScoreKernel);
LOCKSTEP_CUDA_ENTRY(model::WeighKernel);
LOCKSTEP_CUDA_ENTRY(model::AccumulateKernel);
LOCKSTEP_CUDA_ENTRY(model::GateKernel);
LOCKSTEP_CUDA_ENTRY(model::SumTreeKernel);
LOCKSTEP_CUDA_ENTRY(model::NextTokenKernel);
LOCKSTEP_CUDA_ENTRY(model::RotateKernel);
LOCKSTEP_CUDA_ENTRY(model::PlaceKernel);
LOCKSTEP_CUDA_ENTRY(model::SquaredReluKernel);
LOCKSTEP_CUDA_ENTRY(model::ConvolvePlainKernel);
LOCKSTEP_CUDA_ENTRY(model::MultiplyKernel);
LOCKSTEP_CUDA_ENTRY(model::AddKernel);
LOCKSTEP_CUDA_ENTRY(model::Mamba2PrepareKernel);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<2>);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<4>);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<8>);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<16>);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<32>);
LOCKSTEP_CUDA_ENTRY(model::Mamba2Kernel<64>);
LOCKSTEP_CUDA_ENTRY(model::DeltaPrepareKernel);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<2>);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<4>);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<8>);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<16>);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<32>);
LOCKSTEP_CUDA_ENTRY(model::DeltaKernel<64>);
LOCKSTEP_CUDA_ENTRY(model::FingerprintEmbedKernel);
LOCKSTEP_CUDA_ENTRY(model::FingerprintAttendKernel);
LOCKSTEP_CUDA_ENTRY(model::FingerprintRecurKernel);
LOCKSTEP_CUDA_ENTRY(model::FingerprintNextKernel);
LOCKSTEP_CUDA_ENTRY(model::FingerprintClearKernel);

}  // namespace lockstep
