
__global__ void scale(float* y, const float* x, int n) {
  for (int k = 0; k < ITEMS; ++k) {
    const int i = (blockIdx.x * ITEMS + k) * block_size_x + threadIdx.x;
    if (i < n) {
      y[i] = (wrong ? 3.0f : 2.0f) * x[i];
    }
  }
}
