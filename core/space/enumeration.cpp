#include "core/space/enumeration.hpp"

#include <algorithm>
#include <utility>

namespace pascaline {
namespace {

// Constraints sorted by the depth at which all their parameters are set: 0 = none needed, i + 1 = parameter i last.
std::vector<std::vector<const Expression*>> checks_by_depth(const Space& space, bool parameters_only) {
  const auto parameters = static_cast<int>(space.parameters.size());
  std::vector<std::vector<const Expression*>> checks(space.parameters.size() + 1);
  for (const Constraint& constraint : space.constraints) {
    const auto& used = constraint.require.used_slots();
    if (parameters_only && !used.empty() && used.back() >= parameters) {
      continue;
    }
    int depth = 0;
    for (const int slot : used) {
      depth = slot < parameters ? std::max(depth, slot + 1) : depth;
    }
    checks[static_cast<std::size_t>(depth)].push_back(&constraint.require);
  }
  return checks;
}

bool all_hold(const std::vector<const Expression*>& checks, std::span<const std::int64_t> slots) {
  return std::all_of(checks.begin(), checks.end(), [&](const Expression* check) {
    const auto value = check->try_evaluate(slots);
    return value && *value != 0;
  });
}

bool one_within_limits(const Launch& launch, const DeviceLimits& limits, std::span<const std::int64_t> slots) {
  const std::int64_t most = limits.max_threads_per_block;
  const std::int64_t block_limits[3] = {most, most, std::min(most, kMaxBlockZ)};
  const std::int64_t grid_limits[3] = {limits.max_grid_x, limits.max_grid_y, limits.max_grid_z};
  std::int64_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto block = launch.block[i].try_evaluate(slots);
    const auto grid = launch.grid[i].try_evaluate(slots);
    if (!block || !grid || *block < 1 || *grid < 1 || *grid > grid_limits[i] || *block > block_limits[i]) {
      return false;
    }
    threads *= *block;
  }
  const auto shared = launch.shared_bytes.try_evaluate(slots);
  return threads <= most && shared && *shared >= 0 && *shared <= limits.max_shared_bytes_per_block;
}

}  // namespace

std::int64_t integer_of(const Value& value) noexcept {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return *number;
  }
  const auto* flag = std::get_if<bool>(&value);
  return flag != nullptr && *flag ? 1 : 0;
}

bool launch_within_limits(const BoundSpace& space, std::span<const std::int64_t> slots) {
  return std::ranges::all_of(space.space().launches,
                             [&](const Launch& launch) { return one_within_limits(launch, space.limits(), slots); });
}

Enumerator::Enumerator(const BoundSpace& space, StopCheck check)
    : space_(&space),
      slots_(space.base_slots()),
      asked_(space.base_slots()),
      checks_(checks_by_depth(space.space(), false)),
      steps_(std::move(check)) {}

bool Enumerator::holds_at(std::size_t depth) {
  ++considered_;
  steps_.step();
  return all_hold(checks_[depth], slots_);
}

std::uint64_t Enumerator::for_each(const std::function<bool(std::span<const std::uint16_t>)>& visit) {
  const auto& values = space_->integer_values();
  const std::size_t count = values.size();
  std::vector<std::uint16_t> indices(count, 0);
  std::uint64_t visited = 0;
  considered_ = 0;
  slots_ = space_->base_slots();
  if (!holds_at(0)) {
    return 0;
  }
  if (count == 0) {
    if (launch_within_limits(*space_, slots_)) {
      visit(indices);
      ++visited;
    }
    return visited;
  }
  std::size_t depth = 0;
  for (;;) {
    if (indices[depth] == values[depth].size()) {
      if (depth == 0) {
        return visited;
      }
      ++indices[--depth];
      continue;
    }
    slots_[depth] = values[depth][indices[depth]];
    if (!holds_at(depth + 1)) {
      ++indices[depth];
    } else if (depth + 1 < count) {
      indices[++depth] = 0;
    } else {
      if (launch_within_limits(*space_, slots_)) {
        ++visited;
        if (!visit(indices)) {
          return visited;
        }
      }
      ++indices[depth];
    }
  }
}

bool Enumerator::valid(std::span<const std::uint16_t> indices) {
  steps_.step();
  const auto& values = space_->integer_values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    asked_[i] = values[i][indices[i]];
  }
  return std::all_of(checks_.begin(), checks_.end(), [&](const auto& checks) { return all_hold(checks, asked_); }) &&
         launch_within_limits(*space_, asked_);
}

std::optional<std::size_t> broken_by_parameters(const Space& space, std::span<const std::uint16_t> indices) {
  std::vector<std::int64_t> slots(space.symbols.names().size(), 0);
  const std::size_t count = space.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    slots[i] = integer_of(space.parameters[i].values[indices[i]]);
  }
  for (std::size_t i = 0; i < space.constraints.size(); ++i) {
    const Expression& require = space.constraints[i].require;
    const auto& used = require.used_slots();
    if (!used.empty() && static_cast<std::size_t>(used.back()) >= count) {
      continue;
    }
    const auto value = require.try_evaluate(slots);
    if (!value || *value == 0) {
      return i;
    }
  }
  return std::nullopt;
}

bool any_valid_by_parameters(const Space& space) {
  const auto checks = checks_by_depth(space, true);
  std::vector<std::int64_t> slots(space.symbols.names().size(), 0);
  const std::size_t count = space.parameters.size();
  std::vector<std::size_t> indices(count, 0);
  if (!all_hold(checks[0], slots)) {
    return false;
  }
  constexpr int kMaxSteps = 1'000'000;  // a search without end is answered "perhaps"
  std::size_t depth = 0;
  for (int step = 0; depth < count && step < kMaxSteps; ++step) {
    if (indices[depth] == space.parameters[depth].values.size()) {
      if (depth == 0) {
        return false;
      }
      ++indices[--depth];
      continue;
    }
    slots[depth] = integer_of(space.parameters[depth].values[indices[depth]]);
    if (!all_hold(checks[depth + 1], slots)) {
      ++indices[depth];
    } else if (++depth < count) {
      indices[depth] = 0;
    }
  }
  return true;
}

}  // namespace pascaline
