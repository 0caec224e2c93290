#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "runtime/device/device_memory.hpp"
#include "runtime/memory/size_class.hpp"

namespace pascaline {

/// One allocation of the device, whole or cut into equal blocks.
struct PoolChunk {
  RawBuffer memory;
  std::size_t block_bytes = 0;
  std::size_t blocks = 0;
  std::size_t free_blocks = 0;
};

/// A part of a chunk.
struct PoolBlock {
  PoolChunk* chunk = nullptr;
  void* data = nullptr;
};

/// A block that nobody has, and what it was last used for.
struct FreeBlock {
  PoolBlock block;
  StreamId stream;  ///< whose work may still use it
  Event event;      ///< behind that work, if one was recorded
};

/// Why a free block may be used on a stream.
enum class Reuse {
  same_stream,  ///< the work before comes first anyway
  unused,       ///< there is no work before
  ready,        ///< the work before, on another stream, is done
  waited,       ///< the stream waits for the work before
};

/// Spare events, and what a pool does with them.
class PoolEvents {
 public:
  explicit PoolEvents(DeviceMemory& memory) : memory_(memory) {}
  /// An event behind what the stream was given so far.
  [[nodiscard]] Event record(StreamId stream);
  void give_back(Event event);
  [[nodiscard]] DeviceMemory& memory() noexcept { return memory_; }

 private:
  DeviceMemory& memory_;
  std::vector<Event> spare_;
};

/// Free blocks by size and stream. Not thread-safe.
class FreeBlocks {
 public:
  struct Taken {
    PoolBlock block;
    Reuse reuse = Reuse::unused;
  };

  /// Takes a block for use on the stream: of those that fit, one of the best kind of reuse, the smallest of these; on
  /// the same stream the one freed last, whose lines may still be in a cache, of other streams the one freed first.
  /// Makes the stream wait where needed.
  [[nodiscard]] std::optional<Taken> take(const SizeClass& wanted, StreamId stream, PoolEvents& events);
  void add(FreeBlock block);
  /// A block without work before.
  void add_unused(PoolBlock block);
  /// Waits for the work of the chunk's blocks, all of them free, and forgets them.
  void remove(const PoolChunk& chunk, PoolEvents& events);

 private:
  struct StreamBlocks {
    StreamId stream;
    std::deque<FreeBlock> blocks;  // in the order of freeing
  };
  struct SizeBlocks {
    std::vector<PoolBlock> unused;
    std::list<StreamBlocks> used;
  };
  using Sizes = std::map<std::size_t, SizeBlocks>;

  [[nodiscard]] static std::optional<PoolBlock> take_of_stream(SizeBlocks& blocks, StreamId stream, PoolEvents& events);
  [[nodiscard]] static std::optional<PoolBlock> take_unused(SizeBlocks& blocks);
  [[nodiscard]] static std::optional<PoolBlock> take_ready(SizeBlocks& blocks, PoolEvents& events);
  [[nodiscard]] static std::optional<PoolBlock> take_waiting(SizeBlocks& blocks, StreamId stream, PoolEvents& events);

  Sizes sizes_;
};

}  // namespace pascaline
