#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/sized_file.hpp"

namespace pascaline {

/// Keys and values of a GGUF file to be written, in the order they were added.
class GgufKeys {
 public:
  GgufKeys& integer(std::string_view key, std::uint32_t value);
  GgufKeys& real(std::string_view key, float value);
  GgufKeys& boolean(std::string_view key, bool value);
  GgufKeys& text(std::string_view key, std::string_view value);
  // Arrays.
  GgufKeys& integers(std::string_view key, std::span<const std::int32_t> values);
  GgufKeys& reals(std::string_view key, std::span<const float> values);
  GgufKeys& booleans(std::string_view key, const std::vector<bool>& values);
  GgufKeys& texts(std::string_view key, std::span<const std::string> values);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// As the format has them.
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void begin(std::string_view key, GgufValueType type);
  void begin_array(std::string_view key, GgufValueType type, std::uint64_t count);

  std::uint64_t count_ = 0;
  std::string bytes_;
};

/// A tensor to be written.
struct GgufTensorForm {
  std::string name;
  GgufType type{};
  std::vector<std::int64_t> shape;  ///< innermost first; rows are whole blocks of the type

  [[nodiscard]] std::uint64_t bytes() const noexcept;
};

/// A GGUF file that is written piece by piece, by any number of threads; see SizedFile.
class GgufStream {
 public:
  /// Writes what stands before the tensors' bytes and takes the room that all of it needs. Throws ModelError for names
  /// that the format cannot have, or that occur twice, and Error as SizedFile.
  GgufStream(const std::filesystem::path& file, const GgufKeys& keys, std::span<const GgufTensorForm> tensors);

  /// Writes bytes of tensor `index` from its byte `offset` on. Throws Error with the errno if they cannot be written,
  /// or are not within the tensor.
  void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// To be called once after all was written: waits until the disk has it. Throws Error as `write`.
  void finish() { out_->finish(); }
  /// Of the whole file.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return out_->bytes(); }

 private:
  struct Extent {
    std::uint64_t begin;
    std::uint64_t bytes;
  };

  std::vector<Extent> extents_;  // of each tensor, in the file
  std::optional<SizedFile> out_;
};

}  // namespace pascaline
