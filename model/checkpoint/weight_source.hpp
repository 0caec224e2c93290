#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// Where a model's weights come from, and a record of which were used: one `take` a tensor, then `require_all_taken`.
/// Taking is for one thread; reading is for any number of them.
class WeightSource {
 public:
  /// Writes the elements of tensor `index` from `first` on as `type`, as many as `out` holds; called from any thread.
  using Read = std::function<void(std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out)>;
  /// Told that a tensor will be read soon, or not again.
  using Announce = std::function<void(std::size_t index)>;
  /// A matrix that is stored in a format: its rows' bytes in that order in their file form (docs/formats.md).
  struct Rows {
    StoredFormat format;
    std::span<const std::byte> bytes;  ///< empty where rows are not stored one by one
    RowOrder order = {};
    /// Writes a row in its file form; there is one if `bytes` is empty. Called from any thread.
    std::function<void(std::int64_t row, std::span<std::byte> out)> unpack = {};
  };
  /// Those of a tensor, or nothing of one that is stored as numbers.
  using StoredRows = std::function<std::optional<Rows>(std::size_t index)>;
  /// How messages name a tensor.
  using Where = std::function<std::string(std::size_t index)>;

  /// Throws Error if two tensors have the same name. Without `read` the tensors have names and shapes only.
  WeightSource(std::vector<TensorSpec> tensors, Read read, Announce announce = {}, StoredRows rows = {},
               Announce forget = {}, Where where = {});

  /// All tensors under their official names.
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const noexcept { return tensors_; }
  /// Their elements.
  [[nodiscard]] std::int64_t parameters() const noexcept { return parameters_; }

  /// The tensor of that name, now used. Throws ModelError if the model has none of that name or it was taken before.
  const TensorSpec& take(std::string_view name);
  /// Throws ModelError that counts and names tensors that were never taken.
  void require_all_taken() const;

  [[nodiscard]] bool has_values() const noexcept { return static_cast<bool>(read_); }
  /// Writes elements of a tensor of `tensors()` from `first` on, as many as `out` holds, as float32, float16 or
  /// bfloat16. Throws ModelError for an unknown name or without values, and for weights that the type cannot hold, NaN
  /// and infinities among them; Error for another type or a range outside the tensor.
  void read(const TensorSpec& tensor, ElementType type, std::int64_t first, std::span<std::byte> out) const;
  /// The rows of a tensor of `tensors()` as they are stored, if that is in a format of matrices; they live as long as
  /// the source. Throws ModelError for an unknown name.
  [[nodiscard]] std::optional<Rows> rows(const TensorSpec& tensor) const;
  /// How messages begin that tell of a tensor of `tensors()`: with its file and its name there, if it is of one.
  /// Throws ModelError for an unknown name.
  [[nodiscard]] std::string where(const TensorSpec& tensor) const;
  /// Says that the tensor will be read soon, so that a file's part is fetched in the background; returns at once.
  void announce(const TensorSpec& tensor) const;
  /// Says that it will not, so that a file's part of it leaves the memory free.
  void forget(const TensorSpec& tensor) const;

 private:
  [[nodiscard]] std::size_t index_of(std::string_view name) const;

  std::vector<TensorSpec> tensors_;
  Read read_;
  Announce announce_;
  StoredRows rows_;
  Announce forget_;
  Where where_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<bool> taken_;
  std::int64_t parameters_ = 0;
};

/// The weights of a checkpoint.
[[nodiscard]] WeightSource checkpoint_weights(Checkpoint checkpoint);

/// Weights that are a hash of their name and place, exact in every type: 8 bits of SplitMix64 over FNV-1a. Models of
/// any configuration without a file, for comparing one implementation with another.
[[nodiscard]] WeightSource hash_weights(const ModelConfig& config);
/// Element `index` of that tensor, hashed.
[[nodiscard]] float hash_weight(const TensorSpec& tensor, std::uint64_t index) noexcept;
/// Element `index` of patches hashed likewise, in [-1, 1).
[[nodiscard]] float hash_pixel(std::uint64_t index) noexcept;

/// Random weights for benchmarks, the same for the same seed on every machine and exact in every type: matrices and
/// biases uniform with the deviation 0.018, norms between 0.88 and 1.12.
[[nodiscard]] WeightSource random_weights(const ModelConfig& config, std::uint64_t seed);

/// The tensors of that configuration without values: their memory on the device is left as it is.
[[nodiscard]] WeightSource weights_without_values(const ModelConfig& config);

}  // namespace pascaline
