#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"
#include "tests/runtime/ops/element_types.hpp"

namespace pascaline::testing {

/// Tensors on the emulated device, and what a reference makes of them.
class OpBench {
 public:
  OpBench();

  [[nodiscard]] Dispatcher& dispatcher() noexcept { return dispatcher_; }

  /// A tensor of drawn values in [low, high); of integers, the whole ones. Rows are `row_stride` elements apart; 0:
  /// dense. What lies between them is drawn, too.
  TensorView input(ElementType type, std::initializer_list<std::int64_t> shape, double low = -1, double high = 1,
                   std::int64_t row_stride = 0);
  /// A tensor of these values, which must be exact in `type`.
  TensorView given(ElementType type, std::initializer_list<std::int64_t> shape, const std::vector<double>& values);
  /// A dense tensor of NaN.
  TensorView output(ElementType type, std::initializer_list<std::int64_t> shape);

  /// What the tensor's memory holds; a tensor that is not there holds nothing.
  [[nodiscard]] std::vector<double> values(const TensorView& tensor);
  /// What was drawn or given.
  [[nodiscard]] const std::vector<double>& initial(const TensorView& tensor) const;

  /// Waits, and fails the test where the tensor is not as expected or a byte outside of a buffer has changed.
  void expect(const TensorView& tensor, const std::vector<double>& expected, const char* what);

 private:
  struct Held {
    Buffer buffer;
    std::vector<double> initial;
  };
  TensorView hold(ElementType type, std::initializer_list<std::int64_t> shape, std::size_t count);

  std::unique_ptr<Device> device_;
  Dispatcher dispatcher_;
  std::map<const void*, Held> held_;
  std::uint64_t seed_ = 1;
};

}  // namespace pascaline::testing
