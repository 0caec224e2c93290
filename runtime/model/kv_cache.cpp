#include "runtime/model/kv_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "runtime/gpu/device.hpp"

namespace pascaline {

KvCache::KvCache(DeviceMemory& memory, const TextConfig& config, ElementType type, std::int64_t context)
    : memory_(&memory),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      type_(type),
      context_(context),
      row_bytes_(static_cast<std::size_t>(config.kv_heads * config.head_dim) * size_of(type)) {
  if (context < 1) {
    throw Error(fmt::format("a context of {} tokens holds nothing", context));
  }
  const auto count = static_cast<std::size_t>(2 * config.layers);
  const std::size_t bytes = static_cast<std::size_t>(context) * row_bytes_;
  places_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (memory.can_reserve()) {
      places_[i] = growing_.emplace_back(memory.reserve(bytes)).data();
    } else {
      places_[i] = whole_.emplace_back(memory.allocate_raw(bytes)).data();
    }
  }
  if (!memory.can_reserve()) {
    capacity_ = context;
  }
}

void KvCache::reserve(std::int64_t tokens) {
  if (tokens <= capacity_) {
    return;
  }
  if (tokens > context_) {
    throw Error(
        fmt::format("{} tokens do not fit the context of {}; ask for a larger one with --context", tokens, context_));
  }
  std::int64_t room = std::max(capacity_, kStep);
  while (room < tokens) {
    room *= 2;
  }
  room = std::min(room, context_);
  try {
    map(room);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
    const std::uint64_t needed = token_bytes() * static_cast<std::uint64_t>(room);
    const std::uint64_t free = memory_->state().free_bytes;
    throw OutOfMemoryError(
        fmt::format("the cache of {} tokens needs {} MiB in all, and the device has no more than {} MiB free; take a "
                    "shorter context, or --kv-cache float16",
                    room, needed >> 20, free >> 20),
        needed, free);
  }
  capacity_ = room;
}

void KvCache::map(std::int64_t tokens) {
  for (GrowingBuffer& buffer : growing_) {
    buffer.grow_to(static_cast<std::size_t>(tokens) * row_bytes_);
  }
}

TensorView KvCache::view(std::size_t place) const {
  return {places_.at(place), type_, {capacity_, kv_heads_, head_dim_}};
}

TensorView KvCache::keys(std::int64_t layer) const { return view(2 * static_cast<std::size_t>(layer)); }
TensorView KvCache::values(std::int64_t layer) const { return view(2 * static_cast<std::size_t>(layer) + 1); }

std::uint64_t KvCache::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const GrowingBuffer& buffer : growing_) {
    sum += buffer.mapped_bytes();
  }
  for (const RawBuffer& buffer : whole_) {
    sum += buffer.bytes();
  }
  return sum;
}

}  // namespace pascaline
