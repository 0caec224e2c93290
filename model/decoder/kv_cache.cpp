#include "model/decoder/kv_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

std::size_t whole_pages(std::size_t bytes, std::size_t page) { return (bytes + page - 1) / page * page; }

// In which the device puts memory behind addresses.
std::size_t page_size(DeviceMemory& memory) { return std::max<std::size_t>(1, memory.reserve(1).reserved_bytes()); }

std::size_t row_bytes_of(const TextConfig& config, ElementType type) {
  return bytes_of(type, static_cast<std::size_t>(config.kv_heads * config.head_dim));
}

// Of one token's keys or values in a layer.
std::size_t scale_bytes_of(const TextConfig& config, ElementType type) noexcept {
  return type == ElementType::int8 ? static_cast<std::size_t>(config.kv_heads) * sizeof(float) : 0;
}

// The scales of so many tokens' keys or values in a layer, from where those of others begin.
std::size_t scales_apart(std::size_t scale_bytes, std::int64_t tokens) noexcept {
  return whole_pages(static_cast<std::size_t>(tokens) * scale_bytes, DeviceMemory::kAlignment);
}

// What would take less memory.
const char* smaller_types(ElementType type) noexcept {
  switch (type) {
    case ElementType::float32:
      return ", or with --kv-cache float16, which needs half of it, or int8, which needs little more than a quarter";
    case ElementType::float16:
      return ", or with --kv-cache int8, which needs little more than half of it";
    default:
      return "";
  }
}

std::int64_t room_for(std::int64_t tokens, std::int64_t context) {
  std::int64_t room = KvCache::kStep;
  while (room < tokens) {
    room += room < KvCache::kMaxDoubled ? room : KvCache::kLongStep;
  }
  return std::min(room, context);
}

}  // namespace

KvCache::KvCache(DeviceMemory& memory, const TextConfig& config, ElementType type, std::int64_t context,
                 std::int64_t layers)
    : memory_(&memory),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      type_(type),
      context_(context),
      row_bytes_(row_bytes_of(config, type)),
      scale_bytes_(scale_bytes_of(config, type)) {
  if (context < 1) {
    throw Error(fmt::format("a context of {} tokens holds nothing", context));
  }
  const auto count = static_cast<std::size_t>(2 * layers);
  const std::size_t bytes = static_cast<std::size_t>(context) * row_bytes_;
  places_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (memory.can_reserve()) {
      places_[i] = growing_.emplace_back(memory.reserve(bytes)).data();
    } else {
      places_[i] = whole_.emplace_back(memory.allocate_raw(bytes)).data();
    }
  }
  if (memory.can_reserve()) {
    page_bytes_ = page_size(memory);
  } else {
    move_scales(context);
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
  const std::int64_t room = room_for(tokens, context_);
  if (take(room, room) || take(tokens, context_)) {
    return;
  }
  const std::uint64_t needed = missing_bytes(tokens);
  const std::uint64_t free = memory_->state().free_bytes;
  throw OutOfMemoryError(
      fmt::format("the cache of keys and values needs {} MiB more for {} tokens, and the device has {} MiB free; begin "
                  "again with a shorter conversation{}",
                  (needed + kMebibyte - 1) / kMebibyte, tokens, free / kMebibyte, smaller_types(type_)),
      needed, free);
}

// What room for so many tokens takes of the device. Scales that move are held twice meanwhile.
std::uint64_t KvCache::missing_bytes(std::int64_t tokens) const {
  std::uint64_t sum = places_.size() * scales_apart(scale_bytes_, tokens);
  const std::size_t bytes = whole_pages(static_cast<std::size_t>(tokens) * row_bytes_, page_bytes_);
  for (const GrowingBuffer& buffer : growing_) {
    sum += bytes > buffer.mapped_bytes() ? bytes - buffer.mapped_bytes() : 0;
  }
  return sum;
}

// Makes room for so many tokens, and for as many up to `most` as the pages hold; false if the device has too little
// memory.
bool KvCache::take(std::int64_t tokens, std::int64_t most) {
  if (missing_bytes(tokens) > memory_->state().free_bytes || !map(tokens)) {
    return false;
  }
  std::size_t mapped = growing_.front().mapped_bytes();
  for (const GrowingBuffer& buffer : growing_) {
    mapped = std::min(mapped, buffer.mapped_bytes());
  }
  const std::int64_t filled = std::min(most, static_cast<std::int64_t>(mapped / row_bytes_));
  for (const std::int64_t room : {filled, tokens}) {
    try {
      move_scales(room);
      capacity_ = room;
      return true;
    } catch (const Error& error) {
      if (!is_out_of_memory(error)) {
        throw;
      }
    }
  }
  return false;
}

// To a buffer for so many tokens, if there are scales.
void KvCache::move_scales(std::int64_t tokens) {
  if (scale_bytes_ == 0) {
    return;
  }
  const std::size_t from = scales_apart(scale_bytes_, capacity_);
  const std::size_t to = scales_apart(scale_bytes_, tokens);
  RawBuffer larger = memory_->allocate_raw(places_.size() * to);
  if (capacity_ > 0) {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      memory_->copy({}, larger.span().slice(place * to, from), scales_.span().slice(place * from, from));
    }
    memory_->synchronize(StreamId{});
  }
  scales_ = std::move(larger);
}

// False if the device has too little memory.
bool KvCache::map(std::int64_t tokens) {
  try {
    for (GrowingBuffer& buffer : growing_) {
      buffer.grow_to(static_cast<std::size_t>(tokens) * row_bytes_);
    }
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
    return false;
  }
  return true;
}

std::uint64_t KvCache::bytes_for(DeviceMemory& memory, const TextConfig& config, ElementType type, std::int64_t context,
                                 std::int64_t tokens) {
  const std::size_t row = row_bytes_of(config, type);
  const std::size_t scale = scale_bytes_of(config, type);
  const auto buffers = static_cast<std::uint64_t>(2 * config.layers);
  if (!memory.can_reserve()) {
    return buffers * (static_cast<std::uint64_t>(context) * row + scales_apart(scale, context));
  }
  const std::int64_t room = room_for(std::min(tokens, context), context);
  return buffers * (whole_pages(static_cast<std::size_t>(room) * row, page_size(memory)) + scales_apart(scale, room));
}

TensorView KvCache::view(std::size_t place) const {
  return {places_.at(place), type_, {capacity_, kv_heads_, head_dim_}};
}

TensorView KvCache::keys(std::int64_t layer) const { return view(2 * static_cast<std::size_t>(layer)); }
TensorView KvCache::values(std::int64_t layer) const { return view(2 * static_cast<std::size_t>(layer) + 1); }

TensorView KvCache::scales(std::size_t place) const {
  if (scale_bytes_ == 0) {
    return {};
  }
  const std::size_t offset = place * scales_apart(scale_bytes_, capacity_);
  return {static_cast<std::byte*>(scales_.data()) + offset, ElementType::float32, {capacity_, kv_heads_}};
}

TensorView KvCache::key_scales(std::int64_t layer) const { return scales(2 * static_cast<std::size_t>(layer)); }
TensorView KvCache::value_scales(std::int64_t layer) const { return scales(2 * static_cast<std::size_t>(layer) + 1); }

std::uint64_t KvCache::bytes() const noexcept {
  std::uint64_t sum = scales_.bytes();
  for (const GrowingBuffer& buffer : growing_) {
    sum += buffer.mapped_bytes();
  }
  for (const RawBuffer& buffer : whole_) {
    sum += buffer.bytes();
  }
  return sum;
}

}  // namespace pascaline
