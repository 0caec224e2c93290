extern "C" __global__ void conditions(int* y) { y[0] = a + b; }
