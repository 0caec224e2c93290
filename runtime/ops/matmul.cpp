#include "runtime/ops/matmul.hpp"

#include <fmt/format.h>

#include <limits>

namespace pascaline::ops {
namespace {

constexpr std::uintptr_t kAlignment = 16;

void check_tensor(const TensorView& tensor, const char* name) {
  if (tensor.rank != 2) {
    throw Error(fmt::format("matmul: {} has {} dimensions, not 2", name, tensor.rank));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (tensor.shape[i] < 0 || tensor.shape[i] > std::numeric_limits<std::int32_t>::max()) {
      throw Error(
          fmt::format("matmul: extent {} of {} is {}, not a number from 0 to 2^31-1", i, name, tensor.shape[i]));
    }
  }
}

void check_shapes(const TensorView& a, const TensorView& b, const TensorView& c) {
  check_tensor(a, "A");
  check_tensor(b, "B");
  check_tensor(c, "C");
  if (a.shape[1] != b.shape[1] || c.shape[0] != a.shape[0] || c.shape[1] != b.shape[0]) {
    throw Error(fmt::format("matmul: shapes A[{},{}] · B[{},{}]ᵀ = C[{},{}] do not fit; C[M,N] = A[M,K] · B[N,K]ᵀ",
                            a.shape[0], a.shape[1], b.shape[0], b.shape[1], c.shape[0], c.shape[1]));
  }
  if (a.type != b.type || a.type != c.type) {
    throw Error(fmt::format("matmul: A, B and C are {}, {} and {}; they must be of one type", name_of(a.type),
                            name_of(b.type), name_of(c.type)));
  }
}

void check_address(const TensorView& tensor, const char* name) {
  if (tensor.data == nullptr || reinterpret_cast<std::uintptr_t>(tensor.data) % kAlignment != 0) {
    throw Error(fmt::format("matmul: the address of {} is {}, not one aligned to {} bytes", name, fmt::ptr(tensor.data),
                            kAlignment));
  }
}

Problem problem_of(const std::array<std::int64_t, 3>& dimensions, ElementType type) {
  return {"matmul", {{"M", dimensions[0]}, {"N", dimensions[1]}, {"K", dimensions[2]}}, {{"STORAGE", type}}};
}

}  // namespace

void matmul(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& c) {
  check_shapes(a, b, c);
  const std::array<std::int64_t, 3> dimensions{a.shape[0], b.shape[0], a.shape[1]};
  if (dimensions[0] == 0 || dimensions[1] == 0) {
    return;
  }
  if (dimensions[2] == 0) {
    throw Error("matmul: K is 0, the product would be all zeros; fill C instead");
  }
  check_address(a, "A");
  check_address(b, "B");
  check_address(c, "C");
  const std::array<ElementType, 1> types{a.type};
  const Prepared* prepared = dispatcher.find(dispatcher.kernel("matmul"), dimensions, types);
  if (prepared == nullptr) {
    prepared = &dispatcher.prepare(problem_of(dimensions, a.type));
  }
  const std::array<void*, 3> buffers{a.data, b.data, c.data};
  dispatcher.launch(*prepared, buffers);
}

}  // namespace pascaline::ops
