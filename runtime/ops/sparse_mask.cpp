#include "runtime/ops/sparse_mask.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/error.hpp"
#include "runtime/ops/quick_checks.hpp"

namespace pascaline::ops {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

void check_block(std::int64_t block) {
  if (block < SparseMask::kMinBlock || block > SparseMask::kMaxBlock ||
      !std::has_single_bit(static_cast<std::uint64_t>(block))) {
    throw Error(fmt::format("a mask of blocks of {} keys; blocks have 16, 32, 64 or 128", block));
  }
}

// "head 2, block 5 of the queries", or without a head where there is one list for all.
std::string place_of(std::size_t head, std::size_t heads, std::size_t row) {
  return heads > 1 ? fmt::format("the list of key head {} for block {} of the queries", head, row)
                   : fmt::format("the list for block {} of the queries", row);
}

void check_list(const std::vector<std::int32_t>& list, const std::string& place, std::int64_t first_position,
                std::int64_t last_position, std::int64_t block) {
  std::int64_t before = -1;
  for (const std::int32_t entry : list) {
    if (entry < 0) {
      throw Error(fmt::format("{} names block {}; blocks of keys are counted from 0", place, entry));
    }
    if (entry == before) {
      throw Error(fmt::format("{} names block {} twice; each may be named once", place, entry));
    }
    if (entry < before) {
      throw Error(fmt::format("{} names block {} after block {}; blocks must ascend", place, entry, before));
    }
    if (entry > last_position / block) {
      throw Error(
          fmt::format("{} names block {}, of which none of its queries sees a key; the last that they see is {}", place,
                      entry, last_position / block));
    }
    before = entry;
  }
  if (list.empty()) {
    throw Error(fmt::format("{} is empty, which leaves queries without keys; name at least one block", place));
  }
  if (list.front() * block > first_position) {
    throw Error(
        fmt::format("{} begins with block {}, which leaves the query at position {} without keys; begin with "
                    "block {} or an earlier one",
                    place, list.front(), first_position, first_position / block));
  }
}

}  // namespace

void check_mask(const SparseMask& mask) {
  check_block(mask.block);
  if (mask.window < 0 || mask.sinks < 0 || mask.stride < 0) {
    throw Error(fmt::format("a mask with a window of {} keys, {} sinks and a stride of {}; none may be below 0",
                            mask.window, mask.sinks, mask.stride));
  }
  if (std::max({mask.window, mask.sinks, mask.stride}) > kMaxExtent) {
    throw Error(fmt::format("a mask with a window of {} keys, {} sinks and a stride of {}; each may be up to {}",
                            mask.window, mask.sinks, mask.stride, kMaxExtent));
  }
  if (!mask.is_pattern() && (mask.sinks > 0 || mask.stride > 0)) {
    throw Error(
        "a mask with sinks or a stride and a window of 0 keys; queries must see themselves: give a window of "
        "at least 1");
  }
  if (mask.stride > 0 && mask.sinks % mask.block != 0) {
    throw Error(
        fmt::format("a mask with a stride and {} sinks; beside strided blocks of {} keys, sinks must be a "
                    "multiple of that",
                    mask.sinks, mask.block));
  }
}

BlockLists pack_block_lists(std::span<const HeadBlocks> heads, std::int64_t queries, std::int64_t keys,
                            std::int64_t block) {
  check_block(block);
  if (queries < 1 || keys < queries) {
    throw Error(
        fmt::format("lists for {} queries at the end of {} keys; there must be at least as many keys as "
                    "queries, and one query",
                    queries, keys));
  }
  BlockLists packed;
  packed.lists = static_cast<std::int64_t>(heads.size());
  packed.rows = (queries + block - 1) / block;
  for (std::size_t head = 0; head < heads.size(); ++head) {
    if (static_cast<std::int64_t>(heads[head].size()) != packed.rows) {
      throw Error(fmt::format("{} lists of blocks for {} queries in blocks of {}; there must be {}", heads[head].size(),
                              queries, block, packed.rows));
    }
    for (std::size_t row = 0; row < heads[head].size(); ++row) {
      const std::int64_t first = keys - queries + static_cast<std::int64_t>(row) * block;
      check_list(heads[head][row], place_of(head, heads.size(), row), first, std::min(first + block, keys) - 1, block);
      packed.width = std::max(packed.width, static_cast<std::int64_t>(heads[head][row].size()));
    }
  }
  packed.entries.assign(static_cast<std::size_t>(packed.lists * packed.rows * packed.width), -1);
  auto place = packed.entries.begin();
  for (const HeadBlocks& head : heads) {
    for (const std::vector<std::int32_t>& list : head) {
      std::copy(list.begin(), list.end(), place);
      place += packed.width;
    }
  }
  return packed;
}

SeenKeys::SeenKeys(const SparseMask& mask, std::span<const std::int32_t> list, std::int64_t first, std::int64_t last,
                   std::int64_t keys)
    : mask_(mask), keys_(keys) {
  if (!mask.is_pattern()) {
    for (const std::int32_t entry : list) {
      if (entry < 0 || entry > last / mask.block) {
        break;
      }
      add(entry * mask.block, std::min((entry + 1) * mask.block, last + 1));
    }
    always_end_ = std::lower_bound(rows_.begin(), rows_.end(), first + 1) - rows_.begin();
    return;
  }
  std::int64_t window = std::max<std::int64_t>(0, first - mask.window + 1);
  // From the beginning of a strided block on, of which the window takes in the end: so a single query sees all rows.
  if (mask.stride > 0 && window / mask.block % mask.stride == 0) {
    window = window / mask.block * mask.block;
  }
  const std::int64_t sinks = std::min(mask.sinks, window);
  add(0, sinks);
  if (mask.stride > 0) {
    const std::int64_t step = mask.stride * mask.block;
    for (std::int64_t row = rounded_up(sinks, step); row + mask.block <= window; row += step) {
      add(row, row + mask.block);
    }
  }
  add(window, last + 1);
  // A window moves on with the queries: what all see of it is what the last one still sees and the first one already.
  const auto begin = static_cast<std::int64_t>(rows_.size()) - (last + 1 - window);
  always_begin_ = begin + std::max<std::int64_t>(0, last - mask.window + 1 - window);
  always_end_ = begin + first + 1 - window;
  if (last - mask.window + 1 <= window) {
    always_begin_ = 0;
  }
}

void SeenKeys::add(std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < std::min(end, keys_); ++row) {
    rows_.push_back(row);
  }
}

bool SeenKeys::sees(std::int64_t position, std::int64_t row) const noexcept {
  return row <= position && (!mask_.is_pattern() || position - row < mask_.window || row < mask_.sinks ||
                             (mask_.stride > 0 && row / mask_.block % mask_.stride == 0));
}

void SeenKeys::seen_by(std::int64_t position, std::int64_t begin, std::int64_t end, std::vector<Run>& runs) const {
  runs.clear();
  if (always_begin_ <= begin && end <= always_end_) {
    runs.push_back({begin, end});
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    if (!sees(position, rows_[static_cast<std::size_t>(i)])) {
      continue;
    }
    if (runs.empty() || runs.back().end != i) {
      runs.push_back({i, i});
    }
    runs.back().end = i + 1;
  }
}

}  // namespace pascaline::ops
