#include "tuner/search/constraint_groups.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/space/enumeration.hpp"

namespace pascaline {
namespace {

// A condition on some parameters: an expression that is not 0, or the launch within the device's limits.
struct Condition {
  std::vector<std::size_t> axes;
  std::vector<const Expression*> must_hold;
  bool launch = false;
};

void add_axes(const Expression& expression, std::size_t parameters, std::vector<std::size_t>& axes) {
  for (const int slot : expression.used_slots()) {
    if (static_cast<std::size_t>(slot) < parameters) {
      axes.push_back(static_cast<std::size_t>(slot));
    }
  }
}

void make_unique(std::vector<std::size_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<Condition> conditions_of(const Space& space) {
  const std::size_t count = space.parameters.size();
  std::vector<Condition> conditions;
  for (const Constraint& constraint : space.constraints) {
    Condition condition;
    condition.must_hold.push_back(&constraint.require);
    add_axes(constraint.require, count, condition.axes);
    conditions.push_back(std::move(condition));
  }
  Condition launch;
  launch.launch = true;
  for (const Launch& one : space.launches) {
    for (std::size_t i = 0; i < 3; ++i) {
      add_axes(one.block[i], count, launch.axes);
      add_axes(one.grid[i], count, launch.axes);
    }
    add_axes(one.shared_bytes, count, launch.axes);
  }
  make_unique(launch.axes);
  conditions.push_back(std::move(launch));
  return conditions;
}

class Lister {
 public:
  Lister(const BoundSpace& space, std::size_t most, StopCheck check)
      : space_(space),
        most_(most),
        conditions_(conditions_of(space.space())),
        slots_(space.base_slots()),
        steps_(std::move(check)) {}

  ConstraintGroups run() {
    ConstraintGroups out;
    if (!constants_hold()) {
      out.groups.push_back({{0}, {}});
      return out;
    }
    for (const std::vector<std::size_t>& axes : components()) {
      list(axes, out);
    }
    return out;
  }

 private:
  [[nodiscard]] std::size_t values_of(std::size_t axis) const { return space_.integer_values()[axis].size(); }

  [[nodiscard]] bool holds(const Condition& condition) const {
    if (condition.launch) {
      return launch_within_limits(space_, slots_);
    }
    const auto value = condition.must_hold.front()->try_evaluate(slots_);
    return value && *value != 0;
  }

  [[nodiscard]] bool constants_hold() const {
    return std::all_of(conditions_.begin(), conditions_.end(),
                       [&](const Condition& condition) { return !condition.axes.empty() || holds(condition); });
  }

  // Parameters that conditions connect, each list ascending.
  [[nodiscard]] std::vector<std::vector<std::size_t>> components() const {
    const std::size_t count = space_.space().parameters.size();
    std::vector<std::size_t> parent(count);
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t axis) {
      while (parent[axis] != axis) {
        axis = parent[axis];
      }
      return axis;
    };
    for (const Condition& condition : conditions_) {
      for (const std::size_t axis : condition.axes) {
        const std::size_t one = root(axis);
        const std::size_t other = root(condition.axes.front());
        parent[std::max(one, other)] = std::min(one, other);
      }
    }
    std::vector<std::vector<std::size_t>> found;
    std::vector<std::size_t> place(count, count);
    for (std::size_t axis = 0; axis < count; ++axis) {
      const std::size_t top = root(axis);
      if (place[top] == count) {
        place[top] = found.size();
        found.emplace_back();
      }
      found[place[top]].push_back(axis);
    }
    return found;
  }

  // The parameter after which the most conditions can be tested; among equals the one that stands in the most
  // conditions begun, then the one with the fewest values.
  [[nodiscard]] std::size_t next_axis(const std::vector<std::size_t>& left, const std::vector<bool>& placed) const {
    std::size_t best = left.front();
    double best_score = -1;
    for (const std::size_t axis : left) {
      double score = 0;
      for (const Condition& condition : conditions_) {
        if (std::find(condition.axes.begin(), condition.axes.end(), axis) != condition.axes.end()) {
          const auto missing = std::count_if(condition.axes.begin(), condition.axes.end(),
                                             [&](std::size_t other) { return other != axis && !placed[other]; });
          score += missing == 0 ? 100 : 10.0 / static_cast<double>((missing + 1) * (missing + 1));
        }
      }
      score -= 0.01 * static_cast<double>(values_of(axis));
      if (score > best_score || best_score == -1) {
        best_score = score;
        best = axis;
      }
    }
    return best;
  }

  // Conditions that `axis` is the last parameter of, given those placed before.
  [[nodiscard]] std::vector<const Condition*> decided_by(std::size_t axis, const std::vector<bool>& placed) const {
    std::vector<const Condition*> decided;
    for (const Condition& condition : conditions_) {
      const bool uses = std::find(condition.axes.begin(), condition.axes.end(), axis) != condition.axes.end();
      const bool ready = std::all_of(condition.axes.begin(), condition.axes.end(),
                                     [&](std::size_t other) { return other == axis || placed[other]; });
      if (uses && ready) {
        decided.push_back(&condition);
      }
    }
    return decided;
  }

  // Every tuple of `order` (as placed) with every value of `axis` that the conditions decided allow; nothing if that
  // were too many.
  [[nodiscard]] std::optional<std::vector<std::uint16_t>> extend(const std::vector<std::size_t>& order,
                                                                 const std::vector<std::uint16_t>& tuples,
                                                                 std::size_t axis,
                                                                 const std::vector<const Condition*>& decided) {
    const std::size_t width = order.size();
    const std::size_t count = width == 0 ? 1 : tuples.size() / width;
    const std::size_t most_looked_at = 8 * most_;
    if (count * values_of(axis) > most_looked_at) {
      return std::nullopt;
    }
    std::vector<std::uint16_t> longer;
    for (std::size_t tuple = 0; tuple < count; ++tuple) {
      for (std::size_t i = 0; i < width; ++i) {
        slots_[order[i]] = space_.integer_values()[order[i]][tuples[tuple * width + i]];
      }
      for (std::size_t value = 0; value < values_of(axis); ++value) {
        steps_.step();
        slots_[axis] = space_.integer_values()[axis][value];
        if (!std::all_of(decided.begin(), decided.end(), [&](const Condition* each) { return holds(*each); })) {
          continue;
        }
        const auto begin = tuples.begin() + static_cast<std::ptrdiff_t>(tuple * width);
        longer.insert(longer.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
        longer.push_back(static_cast<std::uint16_t>(value));
      }
      if (longer.size() / (width + 1) > most_) {
        return std::nullopt;
      }
    }
    return longer;
  }

  void list(const std::vector<std::size_t>& axes, ConstraintGroups& out) {
    std::vector<std::size_t> left = axes;
    std::vector<std::size_t> order;
    std::vector<bool> placed(space_.space().parameters.size(), false);
    std::vector<std::uint16_t> tuples;
    while (!left.empty()) {
      const std::size_t axis = next_axis(left, placed);
      auto longer = extend(order, tuples, axis, decided_by(axis, placed));
      if (!longer) {
        break;
      }
      tuples = std::move(*longer);
      order.push_back(axis);
      placed[axis] = true;
      std::erase(left, axis);
      if (tuples.empty()) {
        left.clear();
      }
    }
    if (!order.empty()) {
      out.groups.push_back(sorted(order, tuples));
    }
    for (const std::size_t axis : left) {
      TupleList loose{{axis}, {}};
      loose.indices.resize(values_of(axis));
      std::iota(loose.indices.begin(), loose.indices.end(), std::uint16_t{0});
      out.groups.push_back(std::move(loose));
      out.exact = false;
    }
  }

  // With the parameters, and by them the tuples, in the space's order.
  static TupleList sorted(const std::vector<std::size_t>& order, const std::vector<std::uint16_t>& tuples) {
    TupleList list;
    list.axes = order;
    std::sort(list.axes.begin(), list.axes.end());
    const std::size_t width = order.size();
    std::vector<std::vector<std::uint16_t>> rows(width == 0 ? 0 : tuples.size() / width);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows[row].resize(width);
      for (std::size_t i = 0; i < width; ++i) {
        const auto place = std::lower_bound(list.axes.begin(), list.axes.end(), order[i]) - list.axes.begin();
        rows[row][static_cast<std::size_t>(place)] = tuples[row * width + i];
      }
    }
    std::sort(rows.begin(), rows.end());
    list.indices.reserve(tuples.size());
    for (const auto& row : rows) {
      list.indices.insert(list.indices.end(), row.begin(), row.end());
    }
    return list;
  }

  const BoundSpace& space_;
  std::size_t most_;
  std::vector<Condition> conditions_;
  std::vector<std::int64_t> slots_;
  CheckedSteps steps_;
};

}  // namespace

ConstraintGroups constraint_groups(const BoundSpace& space, std::size_t most_tuples, StopCheck check) {
  return Lister(space, most_tuples, std::move(check)).run();
}

}  // namespace pascaline
