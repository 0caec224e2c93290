#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/mapped_file.hpp"
#include "model/checkpoint/sized_file.hpp"

namespace pascaline {

/// Element types of the safetensors format, under its names.
enum class StoredType : std::uint8_t {
  BOOL,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64
};

/// The format's name of the type (`BF16`), and its size in bytes.
[[nodiscard]] std::string_view name_of(StoredType type) noexcept;
[[nodiscard]] std::size_t size_of(StoredType type) noexcept;

/// A tensor in a file, or to be written to one.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::F32;
  std::vector<std::int64_t> shape;   ///< row-major, outermost first; empty for a single value
  std::span<const std::byte> bytes;  ///< little-endian, maybe unaligned; not owned
};

/// What a safetensors file's header says.
struct SafetensorsContent {
  std::vector<StoredTensor> tensors;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Reads the bytes of a safetensors file, whose tensors then point into them. Every byte must be accounted for: throws
/// ModelError, which begins with `file` and names the tensor, for a header that is cut off, above 100 MB, not JSON or
/// not of this format, a name that occurs twice, an unknown type, impossible extents, and bytes that are missing,
/// left over, shared by tensors, or not as many as type and shape need.
[[nodiscard]] SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

/// A safetensors file, mapped. Move-only; its tensors' bytes live as long as it does.
class Safetensors {
 public:
  /// Throws ModelError as MappedFile and `parse_safetensors` do.
  explicit Safetensors(const std::filesystem::path& file);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const noexcept { return content_.tensors; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return content_.metadata; }
  /// The tensor of that name, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const noexcept;
  /// As `find`; throws ModelError if there is none.
  [[nodiscard]] const StoredTensor& at(std::string_view name) const;

 private:
  MappedFile file_;
  SafetensorsContent content_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// Writes a safetensors file beside its place and renames it there. Tensors of wide types come first, so that all are
/// aligned. Throws ModelError for a name that occurs twice or is `__metadata__`, text that is not UTF-8, or bytes that
/// do not fit type and shape; Error with the errno if the file cannot be written.
void write_safetensors(const std::filesystem::path& file, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// A safetensors file that is written piece by piece, by any number of threads. Not to be moved. It is only there under
/// its name; who wants it atomic writes it into a folder of its own.
class SafetensorsStream {
 public:
  /// Writes the header and takes the room that all of it needs; of the tensors, whose bytes do not count, wide types
  /// come first. Throws as `write_safetensors`, and Error if the disk has not as much room.
  SafetensorsStream(const std::filesystem::path& file, std::span<const StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata);

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
