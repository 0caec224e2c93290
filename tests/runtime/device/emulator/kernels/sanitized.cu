// data[101]; 20 blocks of 96 threads with 384 bytes of dynamic shared memory. Line numbers below are tested.
// The kernels are wrong on purpose, but for `correct`.

extern "C" __global__ void correct(int* data, int) {
  __shared__ int tile[96];
  extern __shared__ int dynamic[];
  int local[8];
  for (int i = 0; i < 8; ++i) {
    local[i] = static_cast<int>(threadIdx.x) + i;
  }
  tile[threadIdx.x] = local[threadIdx.x % 8];
  __syncthreads();
  dynamic[95 - threadIdx.x] = tile[95 - threadIdx.x] + local[0];
  __syncthreads();
  int sum = dynamic[threadIdx.x] - local[0];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x >= 64) {
    return;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&data[100], sum != 0);
  }
}

extern "C" __global__ void writes(int* data, int index) {
  __syncthreads();
  if (threadIdx.x == 40) {
    data[index] = 5;  // line 31
  }
}

extern "C" __global__ void reads(int* data, int index) {
  data[0] = data[index];  // line 36
}

extern "C" __global__ void shared(int* data, int index) {
  __shared__ int tile[96];
  tile[threadIdx.x] = 1;
  __syncthreads();
  data[0] = tile[threadIdx.x + index];  // line 43
}

extern "C" __global__ void dynamic(int* data, int index) {
  extern __shared__ int tile[];
  tile[threadIdx.x + index] = data[0];  // line 48
}

extern "C" __global__ void atomic(int* data, int index) {
  atomicAdd(&data[index], 1);  // line 52
}

extern "C" __global__ void deadlock(int* data, int) {
  int local[32];
  for (int i = 0; i < 32; ++i) {
    local[i] = i + data[0];
  }
  if (threadIdx.x < 16) {
    __syncthreads();
  }
  data[threadIdx.x] = __shfl_sync(0xffffffffu, local[threadIdx.x % 32], 0);
}
