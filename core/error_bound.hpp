#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/element_limits.hpp"
#include "core/space/space.hpp"

namespace pascaline {

/// How far the elements of one output may be from the reference's, by what its search space says of them: see
/// "Verification" in docs/search_spaces.md.
class ErrorBound {
 public:
  /// For an output of that type whose elements must be `expected`. `slack`, where it is not empty, is what each may be
  /// off besides. Throws what BoundSpace::tolerance throws.
  ErrorBound(const BoundSpace& space, ElementType type, std::span<const double> expected,
             std::vector<double> slack = {});
  /// For one whose elements have these types in turn, as members of a structure; each has its own scale.
  ErrorBound(const BoundSpace& space, std::span<const ElementType> types, std::span<const double> expected,
             std::vector<double> slack = {});

  /// |value - expected| / (|expected| + u), u being the root mean square of the reference's finite elements or the
  /// space's floor, whichever is larger. 0 where both are NaN or equal, infinite where `value` alone is NaN. The place
  /// matters where elements have several types.
  [[nodiscard]] double error(double value, double expected, std::size_t at = 0) const noexcept;
  /// The most that `error` may be for these two, the element at that place, which matters where there is slack, too.
  [[nodiscard]] double tolerance(double value, double expected, std::size_t at = 0) const noexcept;

  /// One element of those compared.
  struct Verdict {
    double error = 0;
    double tolerance = 0;
    std::size_t at = 0;
    double value = 0;
    bool within = true;
    /// Whether this one says more of an output: the furthest beyond its bound, or the largest error if none is.
    [[nodiscard]] bool worse_than(const Verdict& other) const noexcept;
    /// Takes the other's place if that says more, or the same of an element before.
    void keep_worse(const Verdict& other) noexcept;
  };
  /// The bound as numbers, where no element has slack and all have one type. By them an element is within its bound if
  /// it equals what it must be, or both are NaN, or both are finite and no further apart than `largest_distance`. Of
  /// the rest, which are infinities to which a number was rounded or wrong, `compare` decides.
  [[nodiscard]] std::optional<ElementLimits> limits() const noexcept;

  /// The verdict that says most, and the first of those that say the same. Uses all processors.
  [[nodiscard]] Verdict compare(std::span<const double> values, std::span<const double> expected) const;
  /// The same of a part: the elements of that type that lie in `bytes` are those of `expected` from `first` on.
  [[nodiscard]] Verdict compare(ElementType type, std::span<const std::byte> bytes, std::span<const double> expected,
                                std::size_t first = 0) const;

 private:
  // The bound of the elements of one type.
  struct OfType {
    ElementLimits limits;  ///< without slack
    double overflow = 0;   ///< least magnitude that becomes infinite
  };
  static OfType of_type(const BoundSpace& space, ElementType type, std::span<const double> expected);
  [[nodiscard]] const OfType& type_at(std::size_t place) const noexcept {
    return types_.size() == 1 ? types_.front() : types_[place % types_.size()];
  }
  [[nodiscard]] double distance(double value, double expected, std::size_t at) const noexcept;
  [[nodiscard]] double largest_distance(double value, double expected, std::size_t at) const noexcept;
  [[nodiscard]] double slack(std::size_t at) const noexcept { return slack_.empty() ? 0 : slack_[at]; }
  [[nodiscard]] Verdict verdict(double value, double expected, std::size_t at) const noexcept;
  void compare_range(std::span<const double> values, std::span<const double> expected, std::size_t first,
                     Verdict& worst) const noexcept;

  std::vector<OfType> types_;  ///< of the elements in turn
  std::vector<double> slack_;  ///< of each element, or none
};

}  // namespace pascaline
