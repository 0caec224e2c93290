#include "runtime/memory/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxArenaBytes = std::size_t{1} << 62;

std::size_t aligned(std::size_t bytes, std::size_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

bool live_together(const ArenaTensor& a, const ArenaTensor& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

void check_tensors(std::span<const ArenaTensor> tensors, std::size_t alignment) {
  if (!std::has_single_bit(alignment) || alignment > kMaxArenaBytes) {
    throw Error(fmt::format("cannot plan an arena: the alignment {} is not a power of two", alignment));
  }
  std::size_t left = kMaxArenaBytes;
  for (const ArenaTensor& tensor : tensors) {
    if (tensor.last_step < tensor.first_step) {
      throw Error(fmt::format("cannot plan an arena: tensor '{}' is needed from step {} to step {}", tensor.name,
                              tensor.first_step, tensor.last_step));
    }
    if (tensor.bytes > left || aligned(tensor.bytes, alignment) > left) {
      throw Error(fmt::format("cannot plan an arena: with tensor '{}' of {} bytes it has more than 2^62", tensor.name,
                              tensor.bytes));
    }
    left -= aligned(tensor.bytes, alignment);
  }
}

// The fullest step's bytes. They only rise where a tensor begins.
std::size_t fullest_step_bytes(std::span<const ArenaTensor> tensors, std::size_t alignment) {
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> changes;  // step: bytes that come, bytes that go
  for (const ArenaTensor& tensor : tensors) {
    changes[tensor.first_step].first += aligned(tensor.bytes, alignment);
    changes[std::int64_t{tensor.last_step} + 1].second += aligned(tensor.bytes, alignment);
  }
  std::size_t live = 0;
  std::size_t most = 0;
  for (const auto& [step, change] : changes) {
    live = live - change.second + change.first;
    most = std::max(most, live);
  }
  return most;
}

struct Placed {
  std::size_t offset = 0;
  std::size_t end = 0;
  std::size_t tensor = 0;
};

// The offset of the smallest gap that holds `bytes` between `placed`, which is sorted by offset and may overlap, else
// their end.
std::size_t best_gap(const std::vector<Placed>& placed, std::size_t bytes) {
  std::size_t end = 0;
  std::size_t best = 0;
  std::size_t best_bytes = std::numeric_limits<std::size_t>::max();
  for (const Placed& other : placed) {
    if (other.offset > end && other.offset - end >= bytes && other.offset - end < best_bytes) {
      best = end;
      best_bytes = other.offset - end;
    }
    end = std::max(end, other.end);
  }
  return best_bytes == std::numeric_limits<std::size_t>::max() ? end : best;
}

std::vector<std::size_t> largest_first(std::span<const ArenaTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  return order;
}

}  // namespace

ArenaLayout lay_out_arena(std::span<const ArenaTensor> tensors, std::size_t alignment) {
  check_tensors(tensors, alignment);
  ArenaLayout plan;
  plan.offsets.resize(tensors.size());
  plan.lower_bound_bytes = fullest_step_bytes(tensors, alignment);
  std::vector<Placed> placed;  // sorted by offset
  std::vector<Placed> neighbours;
  for (const std::size_t i : largest_first(tensors)) {
    const std::size_t bytes = aligned(tensors[i].bytes, alignment);
    if (bytes == 0) {
      continue;
    }
    neighbours.clear();
    std::copy_if(placed.begin(), placed.end(), std::back_inserter(neighbours),
                 [&](const Placed& other) { return live_together(tensors[i], tensors[other.tensor]); });
    const std::size_t offset = best_gap(neighbours, bytes);
    const auto after = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [](std::size_t at, const Placed& other) { return at < other.offset; });
    placed.insert(after, {offset, offset + bytes, i});
    plan.offsets[i] = offset;
    plan.total_bytes = std::max(plan.total_bytes, offset + bytes);
  }
  return plan;
}

std::optional<std::string> flaw_of(const ArenaLayout& plan, std::span<const ArenaTensor> tensors,
                                   std::size_t alignment) {
  if (plan.offsets.size() != tensors.size()) {
    return fmt::format("it has {} offsets for {} tensors", plan.offsets.size(), tensors.size());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t offset = plan.offsets[i];
    if (offset % alignment != 0) {
      return fmt::format("tensor '{}' is at {}, not a multiple of {}", tensors[i].name, offset, alignment);
    }
    if (offset > plan.total_bytes || tensors[i].bytes > plan.total_bytes - offset) {
      return fmt::format("tensor '{}' of {} bytes at {} ends beyond the {} bytes of the arena", tensors[i].name,
                         tensors[i].bytes, offset, plan.total_bytes);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (live_together(tensors[i], tensors[j]) && offset < plan.offsets[j] + tensors[j].bytes &&
          plan.offsets[j] < offset + tensors[i].bytes) {
        return fmt::format("tensors '{}' and '{}' live at the same time on the same bytes", tensors[j].name,
                           tensors[i].name);
      }
    }
  }
  return std::nullopt;
}

Arena::Arena(DeviceMemory& memory, std::vector<ArenaTensor> tensors) : tensors_(std::move(tensors)) {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  for (std::size_t i = 0; i < by_name_.size(); ++i) {
    const std::string& name = tensors_[by_name_[i]].name;
    if (name.empty() || (i > 0 && name == tensors_[by_name_[i - 1]].name)) {
      throw Error(fmt::format("cannot plan an arena: the name '{}' of a tensor is empty or a duplicate", name));
    }
  }
  plan_ = lay_out_arena(tensors_);
  if (const auto flaw = flaw_of(plan_, tensors_)) {
    throw Error(fmt::format("the plan of an arena is wrong, a fault of the program: {}", *flaw));
  }
  try {
    memory_ = memory.allocate_raw(plan_.total_bytes);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
    const MemoryState state = memory.state();
    throw OutOfMemoryError(
        fmt::format("no memory for an arena of {} bytes for {} tensors ({} bytes in use at the fullest step): {} of {} "
                    "bytes are free on the device; use a shorter sequence or free device memory",
                    plan_.total_bytes, tensors_.size(), plan_.lower_bound_bytes, state.free_bytes, state.total_bytes),
        plan_.total_bytes, state.free_bytes);
  }
}

DeviceSpan Arena::view(std::size_t tensor) const {
  if (tensor >= tensors_.size()) {
    throw Error(fmt::format("an arena of {} tensors has none at position {}", tensors_.size(), tensor));
  }
  return memory_.span().slice(plan_.offsets[tensor], tensors_[tensor].bytes);
}

DeviceSpan Arena::view(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](std::size_t i, std::string_view asked) { return tensors_[i].name < asked; });
  if (found == by_name_.end() || tensors_[*found].name != name) {
    throw Error(fmt::format("an arena has no tensor '{}'", name));
  }
  return view(*found);
}

}  // namespace pascaline
