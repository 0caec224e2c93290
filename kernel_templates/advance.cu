// Moves a decoding step's place on by one token: length[1], slots[1] and positions[3] each plus one, in device memory,
// so that a recorded step finds its next place by itself. 2^31 - 1 is followed by -2^31.
//
// Bytes: 40.
// Launch: one block of THREADS.

namespace {

static_assert(kThreads >= 5 && kThreads <= 1024, "a thread for each number");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    advance(int* __restrict__ length, int* __restrict__ slots, int* __restrict__ positions) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 5) {
    int* place = thread == 0 ? length : thread == 1 ? slots : positions + (thread - 2);
    *place = static_cast<int>(static_cast<unsigned int>(*place) + 1u);
  }
}

#else

// The same in float64. Launch: one thread.
extern "C" __global__ void advance_reference(double* length, double* slots, double* positions) {
  *length += 1.0;
  *slots += 1.0;
  for (int axis = 0; axis < 3; ++axis) {
    positions[axis] += 1.0;
  }
}

#endif
