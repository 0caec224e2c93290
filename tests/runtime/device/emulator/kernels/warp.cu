// One block of 32 threads; each kernel writes what its feature gives a lane.

extern "C" __global__ void shuffles(int* indexed, int* up, int* down, int* crossed, double* wide, long long* longs,
                                    float* reals, unsigned* unsigneds) {
  const int lane = threadIdx.x;
  const unsigned all = 0xffffffffu;
  indexed[lane] = __shfl_sync(all, lane * 10, lane + 1, 8);
  up[lane] = __shfl_up_sync(all, lane, 3, 16);
  down[lane] = __shfl_down_sync(all, lane, 5);
  crossed[lane] = __shfl_xor_sync(all, lane, 9, 16);
  wide[lane] = __shfl_sync(all, lane * 0.5, 31);
  longs[lane] = __shfl_sync(all, (1ll << 40) + lane, 2);
  reals[lane] = __shfl_down_sync(all, lane * 0.25f, 1, 4);
  unsigneds[lane] = __shfl_up_sync(all, 0x80000000u + lane, 1);
}

extern "C" __global__ void votes(unsigned* ballots, int* any, int* every, unsigned* active, int* halves) {
  const int lane = threadIdx.x;
  ballots[lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  any[lane] = __any_sync(0xffffffffu, lane == 7) + 2 * __any_sync(0xffffffffu, 0);
  every[lane] = __all_sync(0xffffffffu, lane < 32) + 2 * __all_sync(0xffffffffu, lane < 31);
  if (lane % 4 == 1) {
    active[lane] = __activemask();
  } else {
    active[lane] = __activemask();
  }
  // Both halves of the warp are in collectives of their own.
  if (lane < 16) {
    halves[lane] = __shfl_xor_sync(0x0000ffffu, lane, 1);
  } else {
    halves[lane] = __popc(__ballot_sync(0xffff0000u, lane % 2)) + 100;
  }
  __syncwarp();
}

// Threads beyond n leave at once; the rest reduce over what is left of their warp.
extern "C" __global__ void ragged_sum(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) {
    return;
  }
  float sum = in[i];
  const unsigned mask = __activemask();
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_down_sync(mask, sum, offset);
    sum += threadIdx.x % 32 + offset < static_cast<unsigned>(__popc(mask)) ? other : 0.0f;
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(out, sum);
  }
}

extern "C" __global__ void wrong_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x0000fffeu, 1, 1); }
