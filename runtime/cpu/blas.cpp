#include "runtime/cpu/blas.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace pascaline::cpu {
namespace {

// Values of cblas.h.
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

// It stays loaded: its threads run on.
DynamicLibrary opened_blas(const std::string& name) {
  std::string why;
  auto library = DynamicLibrary::try_open(name, &why, true);
  if (!library) {
    throw Error(
        fmt::format("cannot load OpenBLAS, which multiplies matrices on the processor: {}; install it (on Debian and "
                    "Ubuntu the package libopenblas0-pthread)",
                    why));
  }
  return std::move(*library);
}

}  // namespace

const Blas& Blas::get() {
  static const Blas blas;
  return blas;
}

Blas::Blas(const std::string& name)
    : library_(opened_blas(name)),
      sgemm_(library_.function<Sgemm>("cblas_sgemm")),
      set_threads_(library_.function<void (*)(int)>("openblas_set_num_threads")),
      config_(library_.function<char* (*)()>("openblas_get_config")) {
  if (config().find("USE64BITINT") != std::string::npos) {
    throw Error(
        fmt::format("{} counts in 64 bits ({}); install the OpenBLAS that counts in 32 (on Debian and Ubuntu the "
                    "package libopenblas0-pthread)",
                    library_.path(), config()));
  }
  set_threads(1);
}

void Blas::set_threads(int threads) const { set_threads_(threads); }

std::string Blas::config() const { return config_(); }

void Blas::multiply_transposed(const Product& product) const { call(product, kTranspose); }

void Blas::multiply(const Product& product) const { call(product, kNoTranspose); }

// Extents and strides are at most 2^30, as the operations check.
void Blas::call(const Product& of, int transpose_b) const {
  sgemm_(kRowMajor, kNoTranspose, transpose_b, static_cast<int>(of.m), static_cast<int>(of.n), static_cast<int>(of.k),
         of.scale, of.a, static_cast<int>(of.a_stride), of.b, static_cast<int>(of.b_stride), of.keep, of.c,
         static_cast<int>(of.c_stride));
}

}  // namespace pascaline::cpu
