#pragma once

#include <optional>

#include "tuner/search/search_domain.hpp"

namespace pascaline {

/// What a search has seen of its domain, and uniform draws from the rest.
class FreshPoints {
 public:
  FreshPoints(const SearchDomain& domain, std::uint64_t seed) : domain_(&domain), random_(seed) {}

  [[nodiscard]] const SearchDomain& domain() const noexcept { return *domain_; }
  [[nodiscard]] SearchRandom& random() noexcept { return random_; }
  [[nodiscard]] bool seen(const Point& point) const { return seen_.contains(point); }
  [[nodiscard]] std::size_t seen() const noexcept { return seen_.size(); }
  /// Notes a point; false if it was noted before.
  bool note(const Point& point);
  /// A valid point not noted before, uniform among them; nothing once there is none. Where draws find none (very few of
  /// very many combinations are valid), a neighbour of a noted point, if there is one.
  [[nodiscard]] std::optional<Point> draw();
  /// As `draw`, and notes it. A search that only takes goes on in the same order after it was told what it had taken.
  [[nodiscard]] std::optional<Point> take();

 private:
  [[nodiscard]] std::optional<Point> draw_neighbour();

  const SearchDomain* domain_;
  SearchRandom random_;
  PointSet seen_;
  std::vector<Point> noted_;         ///< in order, of a domain that is not listed
  std::size_t centre_ = 0;           ///< among those: whose neighbours are looked at
  std::vector<std::uint64_t> left_;  ///< numbers not drawn yet, once few are
  bool listed_ = false;
};

}  // namespace pascaline
