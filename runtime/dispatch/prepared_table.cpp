#include "runtime/dispatch/prepared_table.hpp"

#include <algorithm>

namespace pascaline {
namespace {

constexpr std::size_t kFirstCount = 256;

// The finalizer of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): shapes
// differ in few bits, which must reach the low ones.
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(KernelHandle kernel, std::span<const std::int64_t> dimensions,
                      std::span<const ElementType> types) noexcept {
  std::uint64_t hash = mix(kernel.index + 1);
  for (const std::int64_t value : dimensions) {
    hash = mix(hash + static_cast<std::uint64_t>(value));
  }
  for (const ElementType type : types) {
    hash = mix(hash + static_cast<std::uint64_t>(type));
  }
  return hash;
}

}  // namespace

PreparedTable::PreparedTable() {
  generations_.push_back(std::make_unique<Cells>(kFirstCount));
  current_.store(generations_.back().get(), std::memory_order_release);
}

const Prepared* PreparedTable::find(KernelHandle kernel, std::span<const std::int64_t> dimensions,
                                    std::span<const ElementType> types) const noexcept {
  const Cells& cells = *current_.load(std::memory_order_acquire);
  for (std::size_t i = hash_of(kernel, dimensions, types);; ++i) {
    const Prepared* entry = cells.slots[i & cells.mask].load(std::memory_order_acquire);
    if (entry == nullptr) {
      return nullptr;
    }
    const ProblemKey& key = entry->key;
    if (key.kernel == kernel && std::ranges::equal(key.dimensions, dimensions) &&
        std::ranges::equal(key.types, types)) {
      return entry;
    }
  }
}

void PreparedTable::insert(Cells& cells, const Prepared& entry) noexcept {
  std::size_t i = hash_of(entry.key.kernel, entry.key.dimensions, entry.key.types);
  while (cells.slots[i & cells.mask].load(std::memory_order_relaxed) != nullptr) {
    ++i;
  }
  cells.slots[i & cells.mask].store(&entry, std::memory_order_release);
}

void PreparedTable::publish(const Prepared& entry) {
  const Cells& old = *generations_.back();
  if (2 * (size_ + 1) > old.mask) {  // half full: probes stay short and always meet an empty cell
    auto grown = std::make_unique<Cells>(2 * (old.mask + 1));
    for (std::size_t i = 0; i <= old.mask; ++i) {
      if (const Prepared* held = old.slots[i].load(std::memory_order_relaxed)) {
        insert(*grown, *held);
      }
    }
    generations_.push_back(std::move(grown));
  }
  insert(*generations_.back(), entry);
  ++size_;
  current_.store(generations_.back().get(), std::memory_order_release);
}

void PreparedTable::clear() {
  generations_.push_back(std::make_unique<Cells>(kFirstCount));
  size_ = 0;
  current_.store(generations_.back().get(), std::memory_order_release);
}

}  // namespace pascaline
