#pragma once

// What a kernel compiled for the emulated device and the program that runs it agree on. Both include this file.
namespace pascaline_host {

/// Changes whenever a struct below does; an object of another version is not run.
constexpr unsigned kAbiVersion = 3;

/// Three coordinates: CUDA's uint3.
struct Index3 {
  unsigned x, y, z;
};

struct Services;

/// What device code sees of the block it runs in.
struct BlockView {
  Index3 block_index;
  Index3 block_dim;
  Index3 grid_dim;
  const Services* services;
  char* dynamic_shared;      ///< the same address in every block that one worker thread runs
  unsigned barrier_votes;    ///< non-zero predicates at the barrier that was released last
  unsigned barrier_threads;  ///< threads that took part in it
};

/// What device code sees of its own CUDA thread.
struct ThreadView {
  Index3 index;
  unsigned lane;
  BlockView* block;
};

/// What suspends a thread until others of its block arrive, and what ends it early.
struct Services {
  void (*barrier)(ThreadView*, bool vote);
  void (*sync_warp)(ThreadView*, unsigned mask);
  /// Gives `value` to the other lanes of `mask` and returns what lane `source` gave.
  unsigned long long (*shuffle)(ThreadView*, unsigned mask, unsigned long long value, unsigned source);
  /// Lanes of `mask` whose vote is true.
  unsigned (*ballot)(ThreadView*, unsigned mask, bool vote);
  /// Lanes of the warp that wait at this very `site`.
  unsigned (*active_mask)(ThreadView*, const void* site);
  void (*fail)(ThreadView*, const char* message);
};

enum class Texel : unsigned { int8, uint8, int16, uint16, int32, uint32, float16, float32 };

/// A texture object is the address of one.
struct TextureView {
  const char* texels;
  long long width;   ///< elements of a row
  long long height;  ///< rows; 0: one row, which tex1Dfetch reads
  Texel texel;       ///< of one channel of an element
  int channels;
  bool interpolates;
  bool zero_outside;
  bool unit_coordinates;
  bool unit_values;  ///< integers are read as floats from 0 to 1, signed ones from -1 to 1
};

/// The one symbol a compiled kernel exports, `pascaline_host_kernel`.
struct KernelEntry {
  unsigned abi_version;
  unsigned argument_count;
  const unsigned* argument_bytes;  ///< of each argument's value
  bool address_sanitizer;
  /// Where the calling worker thread's current CUDA thread is kept.
  ThreadView** (*current)();
  /// Runs the kernel for the current CUDA thread; `arguments[i]` points to the i-th argument's value.
  void (*run)(void* const* arguments);
};

}  // namespace pascaline_host
