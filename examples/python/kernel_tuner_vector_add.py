"""Kernel Tuner's first example, a sum of vectors, tuned by Pascaline: only the import differs."""

import numpy

from pascaline.kernel_tuner import tune_kernel

KERNEL = """
__global__ void vector_add(float *c, float *a, float *b, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"""

size = 100_000
a = numpy.random.randn(size).astype(numpy.float32)
b = numpy.random.randn(size).astype(numpy.float32)
c = numpy.zeros_like(b)
n = numpy.int32(size)

tune_params = {"block_size_x": [128 + 64 * i for i in range(15)]}

results, env = tune_kernel("vector_add", KERNEL, size, [c, a, b, n], tune_params, answer=[a + b, None, None, None])
for result in results:
    print(f"block_size_x={result['block_size_x']}: {result['time']:.3f} ms")
