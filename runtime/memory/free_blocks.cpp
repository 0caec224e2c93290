#include "runtime/memory/free_blocks.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

PoolBlock taken_front(std::deque<FreeBlock>& blocks, PoolEvents& events) {
  FreeBlock first = std::move(blocks.front());
  blocks.pop_front();
  events.give_back(std::move(first.event));
  return first.block;
}

// Whether the work before is done; where no event was recorded when it was freed, one is recorded now, which comes
// later than needed but is behind that work all the same.
bool work_is_done(FreeBlock& free, PoolEvents& events) {
  if (!free.event) {
    try {
      free.event = events.record(free.stream);
    } catch (const Error&) {
      // Another thread may have ended the stream just now, and waited for its work.
      if (events.memory().is_live(free.stream)) {
        throw;
      }
      return true;
    }
  }
  return events.memory().is_done(free.event);
}

}  // namespace

Event PoolEvents::record(StreamId stream) {
  Event event;
  if (spare_.empty()) {
    event = memory_.make_event();
  } else {
    event = std::move(spare_.back());
    spare_.pop_back();
  }
  memory_.record(event, stream);
  return event;
}

void PoolEvents::give_back(Event event) {
  if (event) {
    spare_.push_back(std::move(event));
  }
}

std::optional<FreeBlocks::Taken> FreeBlocks::take(const SizeClass& wanted, StreamId stream, PoolEvents& events) {
  const auto begin = sizes_.lower_bound(wanted.block_bytes);
  const auto end = sizes_.upper_bound(wanted.most_bytes);
  for (const Reuse reuse : {Reuse::same_stream, Reuse::unused, Reuse::ready, Reuse::waited}) {
    for (auto at = begin; at != end; ++at) {
      std::optional<PoolBlock> block;
      switch (reuse) {
        case Reuse::same_stream:
          block = take_of_stream(at->second, stream, events);
          break;
        case Reuse::unused:
          block = take_unused(at->second);
          break;
        case Reuse::ready:
          block = take_ready(at->second, events);
          break;
        case Reuse::waited:
          block = take_waiting(at->second, stream, events);
          break;
      }
      if (block) {
        return Taken{*block, reuse};
      }
    }
  }
  return std::nullopt;
}

std::optional<PoolBlock> FreeBlocks::take_of_stream(SizeBlocks& blocks, StreamId stream, PoolEvents& events) {
  for (StreamBlocks& of : blocks.used) {
    if (of.stream == stream && !of.blocks.empty()) {
      FreeBlock last = std::move(of.blocks.back());
      of.blocks.pop_back();
      events.give_back(std::move(last.event));
      return last.block;
    }
  }
  return std::nullopt;
}

std::optional<PoolBlock> FreeBlocks::take_unused(SizeBlocks& blocks) {
  if (blocks.unused.empty()) {
    return std::nullopt;
  }
  const PoolBlock block = blocks.unused.back();
  blocks.unused.pop_back();
  return block;
}

// A stream works in order, so it is enough to look at what it freed first.
std::optional<PoolBlock> FreeBlocks::take_ready(SizeBlocks& blocks, PoolEvents& events) {
  for (StreamBlocks& of : blocks.used) {
    if (!of.blocks.empty() && work_is_done(of.blocks.front(), events)) {
      return taken_front(of.blocks, events);
    }
  }
  return std::nullopt;
}

std::optional<PoolBlock> FreeBlocks::take_waiting(SizeBlocks& blocks, StreamId stream, PoolEvents& events) {
  for (StreamBlocks& of : blocks.used) {
    if (!of.blocks.empty()) {
      events.memory().wait(stream, of.blocks.front().event);
      return taken_front(of.blocks, events);
    }
  }
  return std::nullopt;
}

void FreeBlocks::add(FreeBlock block) {
  std::list<StreamBlocks>& used = sizes_[block.block.chunk->block_bytes].used;
  const auto found =
      std::find_if(used.begin(), used.end(), [&](const StreamBlocks& of) { return of.stream == block.stream; });
  if (found != used.end()) {
    found->blocks.push_back(std::move(block));
    return;
  }
  used.push_back({block.stream, {}});
  used.back().blocks.push_back(std::move(block));
}

void FreeBlocks::add_unused(PoolBlock block) { sizes_[block.chunk->block_bytes].unused.push_back(block); }

void FreeBlocks::remove(const PoolChunk& chunk, PoolEvents& events) {
  SizeBlocks& blocks = sizes_[chunk.block_bytes];
  for (StreamBlocks& of : blocks.used) {
    for (FreeBlock& free : of.blocks) {
      if (free.block.chunk == &chunk && !work_is_done(free, events)) {
        events.memory().synchronize(free.event);
      }
    }
  }
  std::erase_if(blocks.unused, [&](const PoolBlock& block) { return block.chunk == &chunk; });
  for (StreamBlocks& of : blocks.used) {
    for (FreeBlock& free : of.blocks) {
      if (free.block.chunk == &chunk) {
        events.give_back(std::move(free.event));
      }
    }
    std::erase_if(of.blocks, [&](const FreeBlock& free) { return free.block.chunk == &chunk; });
  }
  std::erase_if(blocks.used, [](const StreamBlocks& of) { return of.blocks.empty(); });
  if (blocks.used.empty() && blocks.unused.empty()) {
    sizes_.erase(chunk.block_bytes);
  }
}

}  // namespace pascaline
