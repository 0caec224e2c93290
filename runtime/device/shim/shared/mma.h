#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#include_next <mma.h>
#else
// Tensor cores are neither of sm_61 nor of the emulated device. A kernel for several architectures may name them in
// what it compiles for the newer ones alone; any other use says why it does not compile.
namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
struct fragment {
  static_assert(M < 0, "nvcuda::wmma uses tensor cores, which only sm_70 and newer have");
};

template <typename... Arguments>
__device__ void fill_fragment(Arguments&&...);
template <typename... Arguments>
__device__ void load_matrix_sync(Arguments&&...);
template <typename... Arguments>
__device__ void store_matrix_sync(Arguments&&...);
template <typename... Arguments>
__device__ void mma_sync(Arguments&&...);

}  // namespace wmma
}  // namespace nvcuda
#endif
