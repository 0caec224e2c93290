#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// What an operation does with a tensor.
enum class Use : std::uint8_t {
  read,
  read_in_place,  ///< read element by element as the result is written, which may be this very tensor
  write,          ///< every element, whatever it held before
  change,         ///< read and written
};

[[nodiscard]] constexpr bool is_written(Use use) noexcept { return use == Use::write || use == Use::change; }
[[nodiscard]] constexpr bool is_read(Use use) noexcept { return use != Use::write; }

/// One tensor of a call, under the name that messages give it.
struct Operand {
  const char* name;
  const TensorView* tensor;
};

/// The same with what is done with it.
struct UsedOperand {
  Operand operand;
  Use use;
};

/// Whether an operand that may be left out is there.
[[nodiscard]] constexpr bool is_given(const TensorView& tensor) noexcept {
  return tensor.rank != 0 || tensor.data != nullptr;
}

/// Stands for a buffer that the kernel takes and the operation does not have.
inline const TensorView kNoTensor;

/// The operands of one call, in the order of the kernel's buffers. It refers to the operation and allocates nothing.
class Operands {
 public:
  static constexpr std::size_t kMax = 16;

  template <typename Op>
  explicit Operands(const Op& op) {
    Op::operands(op, [this](const char* name, const TensorView& tensor, Use use) { add({{name, &tensor}, use}); });
  }

  [[nodiscard]] std::span<const UsedOperand> all() const noexcept { return {all_.data(), count_}; }

 private:
  void add(const UsedOperand& operand) {
    if (count_ == kMax) [[unlikely]] {
      throw Error("an operation has more operands than ops::Operands::kMax; raise it");
    }
    all_[count_++] = operand;
  }

  std::size_t count_ = 0;
  std::array<UsedOperand, kMax> all_;  // the first `count_`
};

}  // namespace pascaline::ops
