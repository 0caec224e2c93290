#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"
#include "core/util/sanitizer.hpp"
#include "tuner/search/search_domain.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline::testing {

/// A space of one dimension N without parameters and constraints, for tests to add theirs.
[[nodiscard]] nlohmann::json bare_space();
/// Adds a parameter whose default is the first of its values.
void add_parameter(nlohmann::json& space, const std::string& name, const nlohmann::json& values);
/// Adds a constraint that nothing but the problem's size can hide from the parser, so that any default will do.
void add_constraint(nlohmann::json& space, const std::string& require);
/// The parameters A, B, C and D of 4 to 6 values with a chance handful of constraints; the same seed gives the same.
[[nodiscard]] nlohmann::json chance_space(std::uint64_t seed);

/// A domain with the space it is made of.
struct BoundDomain {
  explicit BoundDomain(const nlohmann::json& text, std::size_t most_tuples = SearchDomain::kMaxTuples);
  BoundDomain(const BoundDomain&) = delete;
  BoundDomain& operator=(const BoundDomain&) = delete;
  ~BoundDomain() = default;

  Space space;
  BoundSpace bound;
  SearchDomain domain;
};

/// Every combination of that many values each, as a recorded space has it: parameter P0 has the values 0, 1, 2, ...
[[nodiscard]] SearchDomain full_domain(const std::vector<int>& sizes);

/// The valid configurations as the Enumerator finds them, in order.
[[nodiscard]] std::vector<Point> enumerated(const BoundSpace& space);
/// What the domain's numbers stand for, sorted; fails the test if one stands for two numbers.
[[nodiscard]] std::vector<Point> numbered(const SearchDomain& domain);
[[nodiscard]] std::string point_text(const Point& point);

/// Chi-squared of counts that should be equal; `classes` are all there are, those never seen included.
[[nodiscard]] double chi_squared(const std::map<Point, int>& counts, std::size_t classes, double draws);
/// What a chi-squared of that many degrees of freedom exceeds once in ten thousand times (Wilson and Hilferty).
[[nodiscard]] double chi_squared_limit(double degrees);

using Outcome = std::function<Observation(const Point&)>;
/// Proposes and observes until nothing more is proposed or `most` have been; what was proposed, in order. Fails the
/// test if a proposal is invalid, was made before, or more are made than were asked for.
[[nodiscard]] std::vector<Point> run_search(Searcher& searcher, const SearchDomain& domain, const Outcome& outcome,
                                            std::size_t most, std::size_t batch = 1);
/// The same with a searcher of that name.
[[nodiscard]] std::vector<Point> run_search(std::string_view name, const SearchDomain& domain, const Outcome& outcome,
                                            std::uint64_t seed, std::size_t most, std::size_t batch = 1);

/// exp of a bowl with its least value, 1 ms, at `best`.
[[nodiscard]] double bowl_us(const Point& point, const Point& best);
/// Trials until `run` holds the point, or one more than there are.
[[nodiscard]] double trials_until(const std::vector<Point>& run, const Point& best);
[[nodiscard]] double median_of(std::vector<double> values);

}  // namespace pascaline::testing
