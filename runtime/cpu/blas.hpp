#pragma once

#include <cstdint>
#include <string>

#include "runtime/device/dynamic_library.hpp"

namespace pascaline::cpu {

/// A product of float32 matrices in rows: `c[m, n] = scale · a[m, k] · b + keep · c`.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t a_stride = 0;  ///< elements from row to row, as the next two
  const float* b = nullptr;
  std::int64_t b_stride = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  float scale = 1;
  float keep = 0;  ///< 0: what c holds is not read
};

/// OpenBLAS, loaded when it is first needed and never before: it starts threads of its own as it is loaded. They are
/// put to rest, as the worker pool calls it from its threads.
class Blas {
 public:
  /// The library of this process; throws as the constructor, at each call until it succeeds.
  [[nodiscard]] static const Blas& get();

  /// Loads the library; throws Error that says what to install.
  explicit Blas(const std::string& name = "libopenblas.so.0");

  /// With b[n, k], which is read transposed. Any thread may call it.
  void multiply_transposed(const Product& product) const;
  /// With b[k, n].
  void multiply(const Product& product) const;

  /// Threads that the library itself uses for one product, for the whole process; 1 once it is loaded.
  void set_threads(int threads) const;
  /// What the library says of itself: version, processor and build.
  [[nodiscard]] std::string config() const;

 private:
  using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                         int lda, const float* b, int ldb, float beta, float* c, int ldc);
  void call(const Product& product, int transpose_b) const;

  DynamicLibrary library_;
  Sgemm sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  char* (*config_)() = nullptr;
};

}  // namespace pascaline::cpu
