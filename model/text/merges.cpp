#include "model/text/merges.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace pascaline {
namespace {

constexpr std::uint32_t kNoSymbol = std::numeric_limits<std::uint32_t>::max();
// Up to this length looking at every pair each time is faster than a heap.
constexpr std::size_t kShortPiece = 48;

std::uint64_t pair_of(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(std::size_t merges) : slots_(std::bit_ceil(2 * merges + 2)) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const noexcept {
  // Fibonacci hashing; the high bits are the well mixed ones.
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (((pair * 0x9E3779B97F4A7C15U) >> 32U) ^ pair) & mask;
  while (slots_[slot].merge.rank != kNoRank && slots_[slot].pair != pair) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

bool MergeTable::add(TokenId left, TokenId right, TokenId result) {
  const std::uint64_t pair = pair_of(left, right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.merge.rank != kNoRank) {
    return false;
  }
  slot = {pair, {static_cast<std::uint32_t>(size_++), result}};
  return true;
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const noexcept {
  return slots_[slot_of(pair_of(left, right))].merge;
}

std::uint32_t PieceEncoder::rank_at(std::uint32_t left) const noexcept {
  const Symbol& symbol = symbols_[left];
  return symbol.next == kNoSymbol ? MergeTable::kNoRank : merges_->find(symbol.id, symbols_[symbol.next].id).rank;
}

// Puts the merge of a symbol and its next in the place of the symbol.
void PieceEncoder::merge_at(std::uint32_t left) {
  Symbol& symbol = symbols_[left];
  Symbol& gone = symbols_[symbol.next];
  symbol.id = merges_->find(symbol.id, gone.id).result;
  symbol.next = gone.next;
  gone.rank = MergeTable::kNoRank;
  if (symbol.next != kNoSymbol) {
    symbols_[symbol.next].previous = left;
  }
  symbol.rank = rank_at(left);
  if (symbol.previous != kNoSymbol) {
    symbols_[symbol.previous].rank = rank_at(symbol.previous);
  }
}

void PieceEncoder::merge_short() {
  while (true) {
    const auto best = std::min_element(symbols_.begin(), symbols_.end(),
                                       [](const Symbol& a, const Symbol& b) { return a.rank < b.rank; });
    if (best->rank == MergeTable::kNoRank) {
      return;
    }
    merge_at(static_cast<std::uint32_t>(best - symbols_.begin()));
  }
}

void PieceEncoder::queue(std::uint32_t left) {
  if (left != kNoSymbol && symbols_[left].rank != MergeTable::kNoRank) {
    queue_.push_back(std::uint64_t{symbols_[left].rank} << 32U | left);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
}

void PieceEncoder::merge_long() {
  queue_.clear();
  for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
    if (symbols_[i].rank != MergeTable::kNoRank) {
      queue_.push_back(std::uint64_t{symbols_[i].rank} << 32U | i);
    }
  }
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const std::uint64_t entry = queue_.back();
    queue_.pop_back();
    const auto left = static_cast<std::uint32_t>(entry);
    if (symbols_[left].rank == entry >> 32U) {
      merge_at(left);
      queue(left);
      queue(symbols_[left].previous);
    }
  }
}

void PieceEncoder::append(std::string_view piece, std::vector<TokenId>& out) {
  symbols_.clear();
  for (const char c : piece) {
    const TokenId id = (*bytes_)[static_cast<unsigned char>(c)];
    if (id != kNoToken) {
      const auto i = static_cast<std::uint32_t>(symbols_.size());
      symbols_.push_back({id, MergeTable::kNoRank, i == 0 ? kNoSymbol : i - 1, i + 1});
    }
  }
  if (symbols_.empty()) {
    return;
  }
  symbols_.back().next = kNoSymbol;
  const auto count = static_cast<std::uint32_t>(symbols_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols_[i].rank = rank_at(i);
  }
  if (count <= kShortPiece) {
    merge_short();
  } else {
    merge_long();
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = symbols_[i].next) {
    out.push_back(symbols_[i].id);
  }
}

}  // namespace pascaline
