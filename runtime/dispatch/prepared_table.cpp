#include "runtime/dispatch/prepared_table.hpp"

#include <algorithm>
#include <bit>

namespace pascaline {
namespace {

constexpr std::size_t kFirstCount = 256;

// Shapes differ in few bits, which must reach the low ones: a multiplication carries them up, the final mixing (of
// splitmix64; Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) down.
std::uint64_t hash_of(KernelHandle kernel, std::span<const std::int64_t> dimensions,
                      std::span<const ElementType> types) noexcept {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio
  std::uint64_t hash = (kernel.index + 1) * kFactor;
  for (const std::int64_t value : dimensions) {
    hash = (std::rotl(hash, 29) ^ static_cast<std::uint64_t>(value)) * kFactor;
  }
  std::uint64_t kinds = 0;
  for (const ElementType type : types) {
    kinds = 16 * kinds + static_cast<std::uint64_t>(type) + 1;
  }
  hash ^= kinds;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  return hash ^ (hash >> 31);
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
