#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/piece_work.hpp"
#include "model/checkpoint/weight_source.hpp"

namespace pascaline {

/// A tensor of a model that is written.
struct WrittenTensor {
  std::size_t index = 0;              ///< in the source of weights
  GgufType type{};                    ///< of what is written
  std::optional<std::int64_t> frame;  ///< only this one, of the patches' embedding
  RowOrder order = {};                ///< of the rows that are written
};

/// How tensors are written.
struct ConvertSettings {
  int threads = 0;  ///< 0: one for each processor
  /// Called from one thread, a few times a second; false ends it.
  std::function<bool(const TensorProgress&)> goes_on;
  /// Called before anything is written, with a line that says where that is not what was asked for; may be empty.
  std::function<void(const std::string& line)> tell;
};

/// The writing of a model's tensors to one file or several, of which the progress is counted together. Not to be
/// moved.
class TensorWriting {
 public:
  /// Takes bytes of a planned tensor, from its byte `offset` on; called from any thread.
  using Write = std::function<void(std::size_t planned, std::uint64_t offset, std::span<const std::byte> bytes)>;

  /// `source` must outlive it. `stored_bytes` is how many bytes each tensor of it takes where it is read from.
  TensorWriting(const WeightSource& source, std::vector<std::uint64_t> stored_bytes, ConvertSettings settings);

  /// Writes tensors, in memory that is bounded whatever their size. False if `goes_on` ended it. Throws ModelError
  /// naming the tensor for values that the type cannot hold, and what `write` throws.
  [[nodiscard]] bool write(std::span<const WrittenTensor> tensors, const Write& write);

  /// What was done so far, with the bytes of files that were added.
  [[nodiscard]] const TensorProgress& progress() const noexcept { return progress_; }
  void add_file(std::uint64_t bytes) noexcept { progress_.written_bytes += bytes; }

 private:
  const WeightSource* source_;
  std::vector<std::uint64_t> stored_bytes_;
  ConvertSettings settings_;
  TensorProgress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace pascaline
