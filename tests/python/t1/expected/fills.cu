template <int N> struct Other {};
__device__ void fills_before() {}
__global__ void
fills (double2* a, __half* b, int* c, unsigned char* d, long long n, bool e) {
}
