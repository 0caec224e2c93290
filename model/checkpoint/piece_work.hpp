#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace pascaline {

/// How far the writing of a model's file has come.
struct TensorProgress {
  std::size_t tensors = 0;  ///< finished
  std::size_t all_tensors = 0;
  std::uint64_t read_bytes = 0;  ///< of the original
  std::uint64_t all_bytes = 0;
  std::uint64_t written_bytes = 0;  ///< of the new file, when all is done
  std::uint64_t lost_blocks = 0;    ///< written so far, all of whose values became 0 as their scale is too small
  double seconds = 0;
};

/// How pieces are worked through.
struct PieceWorkSettings {
  int threads = 0;  ///< 0: one for each processor
  /// Asked by the calling thread a few times a second; false ends it.
  std::function<bool()> goes_on;
};

/// Does `piece` for each number below `pieces`, in order, on several threads. False if `goes_on` ended it, after the
/// pieces that were begun. Throws the first exception of a piece, after which no other is begun, and std::system_error
/// if no thread can be started.
[[nodiscard]] bool work_through(std::size_t pieces, const std::function<void(std::size_t)>& piece,
                                const PieceWorkSettings& settings);

}  // namespace pascaline
