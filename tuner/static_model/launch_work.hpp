#pragma once

#include <optional>

#include "core/space/space.hpp"

namespace pascaline {

/// What one launch has to do in all, without its machine code.
struct LaunchWork {
  double flops = 0;             ///< executed by all threads, 2 an FFMA or dp4a, waste of ragged tiles included
  double global_bytes = 0;      ///< that all blocks ask of L2 and memory, repeated reads included
  double compulsory_bytes = 0;  ///< that memory must move at least
  double output_bytes = 0;      ///< of the results
  double blocks = 1;            ///< that have work
  double imbalance = 1;         ///< work of the block with most of it over the mean
  int threads = 1;              ///< of a block
  double grid_threads = 1;      ///< of all blocks with work
  int dynamic_shared_bytes = 0;
  /// Bytes of shared memory's bandwidth that all threads use, with bank conflicts and with words that lanes share;
  /// nothing if the space does not tell.
  std::optional<double> shared_bytes;
};

/// The work of a configuration, from the space's launch and its section `model`, or without that from the problem's
/// operations and bytes. Throws Error if an expression has no value or `config` is not of the space.
[[nodiscard]] LaunchWork launch_work(const BoundSpace& space, const Config& config);

}  // namespace pascaline
