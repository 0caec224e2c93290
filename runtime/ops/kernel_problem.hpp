#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/problem.hpp"
#include "runtime/dispatch/kernel_name.hpp"

namespace pascaline::ops {

/// A dimension of a problem, under its name in the kernel's search space.
struct NamedDimension {
  const char* name;
  std::int64_t value;
};

/// The type bound to a type variable of the kernel's search space.
struct NamedType {
  const char* name;
  ElementType type;
};

/// A problem of a kernel: all dimensions and types of its search space, in that order. It allocates nothing, so that it
/// can be made for every launch.
class KernelProblem {
 public:
  static constexpr std::size_t kMaxDimensions = 16;
  static constexpr std::size_t kMaxTypes = 5;

  explicit KernelProblem(KernelName kernel) noexcept : kernel_(kernel) {}
  template <std::size_t kDimensions>
  KernelProblem(KernelName kernel, const NamedDimension (&dimensions)[kDimensions]) noexcept : kernel_(kernel) {
    static_assert(kDimensions <= kMaxDimensions, "raise kMaxDimensions");
    set_dimensions(dimensions, std::make_index_sequence<kDimensions>());
  }
  template <std::size_t kDimensions, std::size_t kTypes>
  KernelProblem(KernelName kernel, const NamedDimension (&dimensions)[kDimensions],
                const NamedType (&types)[kTypes]) noexcept
      : KernelProblem(kernel, dimensions) {
    static_assert(kTypes <= kMaxTypes, "raise kMaxTypes");
    set_types(types, std::make_index_sequence<kTypes>());
  }

  /// One more; there must be room for it.
  void add(const NamedDimension& dimension) noexcept {
    dimension_names_[dimensions_] = dimension.name;
    values_[dimensions_++] = dimension.value;
  }
  void add(const NamedType& type) noexcept {
    type_names_[types_count_] = type.name;
    types_[types_count_++] = type.type;
  }

  [[nodiscard]] KernelName kernel() const noexcept { return kernel_; }
  [[nodiscard]] std::span<const std::int64_t> dimensions() const noexcept { return {values_.data(), dimensions_}; }
  [[nodiscard]] std::span<const ElementType> types() const noexcept { return {types_.data(), types_count_}; }
  /// The same with everything named.
  [[nodiscard]] Problem named() const;

 private:
  // Without loops, so that a compiler keeps the pairs in registers: GCC copies them on the stack first, then waits for
  // what it wrote, 10 ns a launch.
  template <std::size_t kDimensions, std::size_t... kIndices>
  void set_dimensions(const NamedDimension (&dimensions)[kDimensions],
                      std::index_sequence<kIndices...> /*indices*/) noexcept {
    ((dimension_names_[kIndices] = dimensions[kIndices].name, values_[kIndices] = dimensions[kIndices].value), ...);
    dimensions_ = kDimensions;
  }
  template <std::size_t kTypes, std::size_t... kIndices>
  void set_types(const NamedType (&types)[kTypes], std::index_sequence<kIndices...> /*indices*/) noexcept {
    ((type_names_[kIndices] = types[kIndices].name, types_[kIndices] = types[kIndices].type), ...);
    types_count_ = kTypes;
  }

  // As much of each as there are dimensions and types.
  KernelName kernel_;
  std::size_t dimensions_ = 0;
  std::size_t types_count_ = 0;
  std::array<const char*, kMaxDimensions> dimension_names_;
  std::array<std::int64_t, kMaxDimensions> values_;
  std::array<const char*, kMaxTypes> type_names_;
  std::array<ElementType, kMaxTypes> types_;
};

}  // namespace pascaline::ops
