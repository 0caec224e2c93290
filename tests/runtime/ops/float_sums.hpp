#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/space/space.hpp"

namespace pascaline::testing {

/// In which order float32 numbers are added.
enum class Order : std::uint8_t { sequential, pairwise, lanes, slices };
inline constexpr Order kOrders[] = {Order::sequential, Order::pairwise, Order::lanes, Order::slices};

/// Adds float32 numbers in one order, with mistakes if asked for.
class FloatAdder {
 public:
  explicit FloatAdder(Order order) : order_(order) {}

  /// The last `count` terms of every sum are left out.
  void leave_out(std::size_t count) { left_out_ = count; }
  /// In one sum, counted from 0, one term of middling magnitude has the wrong sign.
  void negate_one(std::size_t sum) { negated_ = sum; }

  /// Of a result's terms, which are mistaken as asked.
  [[nodiscard]] float add(std::vector<float> terms);
  /// Of terms that are never mistaken.
  [[nodiscard]] float add_right(std::span<const float> terms) const;

 private:
  Order order_;
  std::size_t left_out_ = 0;
  std::size_t negated_ = static_cast<std::size_t>(-1);
  std::size_t sums_ = 0;  ///< added so far
};

using Values = std::vector<double>;

/// Whether the operation of that kernel's search space can be computed here.
[[nodiscard]] std::vector<std::string> summing_kernels();

/// What the kernel gives for these inputs, computed in float32 with sums by `adder`, and rounded to its outputs' types.
/// Inputs and outputs are those of a HostReference.
void compute_in_float(const BoundSpace& space, std::span<const Values> inputs, FloatAdder& adder,
                      std::span<Values> outputs);

}  // namespace pascaline::testing
