#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/formats/float16x.hpp"

namespace pascaline {

/// The search for the float16x of least squared error for finite values, which may come in parts. It tries of each
/// width the biases whose largest number is just above the largest value, a half and a quarter of that (a few values
/// then saturate), and two that hold all of float16 and all of bfloat16, which the result is therefore never worse
/// than.
class Float16xSearch {
 public:
  /// Sums of squared errors, of each candidate.
  using Errors = std::array<double, 17>;

  /// Of values of which none is larger in magnitude.
  explicit Float16xSearch(float largest);
  [[nodiscard]] const std::vector<Float16x>& candidates() const noexcept { return candidates_; }
  /// Adds those of some values. Any thread may call it.
  void add(std::span<const float> values, Errors& errors) const noexcept;
  /// The candidate of the least error, of equals the first; {5, 15} if there are no values but zeros.
  [[nodiscard]] Float16x best(const Errors& errors) const noexcept;

 private:
  void add_block(std::span<const float> values, Errors& errors) const noexcept;

  std::vector<Float16x> candidates_;
};

/// What the search finds for values that are all there.
[[nodiscard]] Float16x best_float16x(std::span<const float> values);

/// Writes finite values of a tensor from its element `first` on, as many as `out` holds.
using ReadValues = std::function<void(std::size_t tensor, std::int64_t first, std::span<float> out)>;
/// What it finds for all values of tensors with so many elements, which are read in parts, from all processors at once;
/// the same whatever their number. They are read twice, or once if float16 or bfloat16 holds all exactly, as it does
/// where a checkpoint is in one of them. Throws what `read` throws.
[[nodiscard]] Float16x best_float16x(std::span<const std::int64_t> tensors, const ReadValues& read);

}  // namespace pascaline
