// Fills a buffer with the values that a plan says (draw.cuh), so that inputs are made where kernels read them.
//
// Bytes: those of the buffer written.
// Requires: `to` aligned to 16 bytes, with as many bytes as the plan fills.
// Launch: any grid, block 256.

#include "../common/types.cuh"
#include "draw.cuh"

namespace {

constexpr int kThreads = 256;

struct Narrow {
  static __device__ unsigned short float16_bits(float value) { return from_float<float16>(value).bits; }
  static __device__ unsigned short bfloat16_bits(float value) { return from_float<bfloat16>(value).bits; }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) draw(drawing::Plan plan, void* to) {
  const drawing::Word first = static_cast<drawing::Word>(blockIdx.x) * kThreads + threadIdx.x;
  drawing::put_units<Narrow>(plan, to, first, plan.units, static_cast<drawing::Word>(gridDim.x) * kThreads);
}
