#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/space/enumeration.hpp"
#include "core/space/space.hpp"
#include "core/space/space_part.hpp"
#include "tuner/search/constraint_groups.hpp"
#include "tuner/search/point.hpp"

namespace pascaline {

/// The random numbers of a search: the same from one seed on every machine.
using SearchRandom = std::mt19937_64;

/// One parameter of a search: its values in order.
struct Axis {
  std::string name;
  std::vector<Value> values;
};

/// How far a neighbour lies.
enum class Reach : std::uint8_t {
  step,  ///< one parameter, one value up or down
  any,   ///< one parameter, any other value (64 evenly spaced ones of a parameter with more)
  pair,  ///< two parameters, one value up or down each: what constraints tie together moves together
};

/// The valid configurations of one problem: which there are, uniform draws from them, and neighbours, without listing
/// them all where they are many. One domain may be used by one thread at a time, unless it was made of points.
class SearchDomain {
 public:
  /// Tuples of parameters that are listed for each group of the space.
  static constexpr std::size_t kMaxTuples = 400'000;

  /// The valid configurations of `space`, which must outlive it. Every member may throw what `check` throws.
  explicit SearchDomain(const BoundSpace& space, std::size_t most_tuples = kMaxTuples, const StopCheck& check = {});
  /// Those of a part of it, which the first `parameters` of its parameters tell apart.
  SearchDomain(const BoundSpace& space, SpacePart part, std::size_t parameters, std::size_t most_tuples = kMaxTuples,
               const StopCheck& check = {});
  /// Exactly these points, as of a recorded space; the axes say what they mean. Throws Error if one does not fit.
  SearchDomain(std::vector<Axis> axes, const std::vector<Point>& points);

  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return axes_; }
  /// The space it was made of; nullptr for a recorded one.
  [[nodiscard]] const BoundSpace* space() const noexcept { return space_; }
  [[nodiscard]] bool contains(const Point& point) const;

  /// Numbers that `at` takes: as many as there are valid configurations if `exact`, else more. Infinite if there are
  /// over 2^63.
  [[nodiscard]] double combinations() const noexcept { return combinations_; }
  [[nodiscard]] bool exact() const noexcept { return exact_; }
  /// The configuration of that number, below `combinations`; nothing if it is not valid.
  [[nodiscard]] std::optional<Point> at(std::uint64_t number) const;
  /// A valid configuration, each with the same probability; nothing if none is found. Where combinations of tuples are
  /// hardly ever valid, it comes from a random walk from the default or the last valid one drawn: changes of one
  /// parameter to any value or of two by a step, taken where valid, which are uniform in the long run over what they
  /// reach (Metropolis et al., "Equation of State Calculations by Fast Computing Machines", 1953).
  [[nodiscard]] std::optional<Point> sample(SearchRandom& random) const;
  /// Valid configurations near a point, without itself, each once; of a great many pairs of parameters, some.
  [[nodiscard]] std::vector<Point> neighbours(const Point& point, Reach reach) const;

 private:
  [[nodiscard]] bool in_part(const Point& point) const;
  [[nodiscard]] std::optional<Point> draw_combination(SearchRandom& random) const;
  [[nodiscard]] std::optional<Point> walk(SearchRandom& random) const;
  void put(std::size_t group, std::size_t tuple, Point& point) const;

  const BoundSpace* space_ = nullptr;
  SpacePart part_;
  std::size_t part_parameters_ = 0;
  std::vector<Axis> axes_;
  std::vector<TupleList> groups_;
  bool exact_ = true;
  double combinations_ = 1;
  PointSet recorded_;
  /// How draws of combinations that have to be checked went.
  struct Draws {
    double tried = 0;
    double valid = 0;
    bool given_up = false;
    std::optional<Point> last;  ///< the last valid one, at first the default if it is valid
  };
  mutable Draws draws_;
  mutable std::optional<Enumerator> enumerator_;  ///< asks for validity; it has room for values of its own
};

/// A number from 0 to count - 1 by rejection: the same on every standard library.
[[nodiscard]] std::uint64_t below(SearchRandom& random, std::uint64_t count);
/// A number from 0 to 1, 1 left out.
[[nodiscard]] double uniform(SearchRandom& random);

}  // namespace pascaline
