#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/operands.hpp"
#include "runtime/ops/quick_checks.hpp"

namespace pascaline::ops {

/// The checks that ops share. Each throws an Error that names the op, the tensor, what it is and what it must be, and
/// neither allocates nor formats anything if all is well.
class Checks {
 public:
  /// `op` must outlive it.
  explicit constexpr Checks(const char* op) noexcept : op_(op) {}

  /// The tensor has one of `types` and exactly `extents`, each from 0 to kMaxExtent, and its bytes can be counted.
  /// Its rows follow each other.
  void dense(Operand operand, std::initializer_list<ElementType> types, std::initializer_list<Extent> extents) const {
    if (!is_plainly_dense(*operand.tensor, types, extents)) [[unlikely]] {
      strided(operand, types, extents);
      packed(operand);
    }
  }
  /// As `dense`, but rows may lie farther apart.
  void strided(Operand operand, std::initializer_list<ElementType> types, std::initializer_list<Extent> extents) const;
  /// Dense, of one of `types` and of the shape of `other`, of any rank from 1 up.
  void same_shape(Operand operand, std::initializer_list<ElementType> types, Operand other) const;
  /// Nothing was given where the op would not look at it.
  void absent(Operand operand, const char* reason) const {
    if (operand.tensor->rank != 0 || operand.tensor->data != nullptr) [[unlikely]] {
      fail_as_given(operand, reason);
    }
  }
  /// `extent` is at least 1.
  void at_least_one(Extent extent) const;
  /// Throws `problem` under the op's name unless `holds`.
  void require(bool holds, const char* problem) const {
    if (!holds) [[unlikely]] {
      fail(problem);
    }
  }

  /// Each tensor that has elements has an address that is aligned: to kAlignment, or to the element for integers but
  /// int8. What is written shares no byte with any other tensor, but may be one that is read in place: same address and
  /// element type. All were found dense or strided before.
  void memory(std::span<const UsedOperand> operands) const;

 private:
  [[noreturn]] void fail(const std::string& problem) const;
  void shaped(Operand operand, std::initializer_list<ElementType> types, std::initializer_list<Extent> extents) const;
  void typed(Operand operand, std::initializer_list<ElementType> types) const;
  void countable(Operand operand) const;
  void packed(Operand operand) const;
  void address(Operand operand) const;
  void apart(Operand written, const UsedOperand& other) const;
  [[noreturn]] void fail_as_given(Operand operand, const char* reason) const;

  const char* op_;
};

/// The scales of a cache of keys or values: [rows, heads] in float32 if that is int8, else nothing.
void check_scales(const Checks& check, Operand scales, const TensorView& cache, Extent rows, Extent heads);

/// What a norm adds is within its range.
inline void check_epsilon(const Checks& check, NormEpsilon epsilon) {
  check.require(epsilon.nano >= 1 && epsilon.nano <= NormEpsilon::kMaxNano,
                "the norm's epsilon is not 1 to 10^9 billionths");
}

/// Elements from one row to the next.
[[nodiscard]] std::int64_t row_stride(const TensorView& tensor) noexcept;
/// Elements of a row: the product of all extents but the first; 1 for a vector.
[[nodiscard]] std::int64_t row_length(const TensorView& tensor) noexcept;
/// Whether an extent is 0, or there is no tensor.
[[nodiscard]] inline bool is_empty(const TensorView& tensor) noexcept {
  bool empty = tensor.rank < 1;
  for (int i = 0; i < tensor.rank; ++i) {
    empty = empty || tensor.shape[static_cast<std::size_t>(i)] == 0;
  }
  return empty;
}

}  // namespace pascaline::ops
