#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/element_type.hpp"
#include "model/checkpoint/mapped_file.hpp"

namespace pascaline {

/// Types of tensors with ggml's numbers; of blocks of formats of matrices also FormatTraits::gguf has them.
enum class GgufType : std::uint32_t { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q8_0 = 8, Q4_K = 12, Q6_K = 14, BF16 = 30 };

/// ggml's name of the type (`Q4_K`), empty if the number has none; of a type that is read values of a block (1 of
/// numbers), and a block's size in bytes.
[[nodiscard]] std::string_view name_of(GgufType type) noexcept;
[[nodiscard]] std::int64_t block_values(GgufType type) noexcept;
[[nodiscard]] std::int64_t block_bytes(GgufType type) noexcept;
/// All types that are read.
[[nodiscard]] std::vector<GgufType> read_gguf_types();
/// The type of blocks of that format, and the format of such blocks; nothing for another.
[[nodiscard]] std::optional<GgufType> gguf_type_of(ElementType format) noexcept;
[[nodiscard]] std::optional<ElementType> format_of(GgufType type) noexcept;

/// Types of metadata, with the numbers of the format.
enum class GgufValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  text,
  array,
  uint64,
  int64,
  float64
};

/// A value of the metadata as it lies in the file: checked, but not copied.
struct GgufValue {
  GgufValueType type{};   ///< of the elements, for an array
  bool is_array = false;  ///< never of arrays
  std::size_t count = 1;  ///< elements
  /// Little-endian, unaligned. A single text is its characters; in an array, each follows its length of 64 bits.
  std::span<const std::byte> bytes;
};

/// Keys and values of a GGUF file; they point into its bytes. Getters throw ModelError naming file and key if the key
/// is missing, has another type, or does not fit what is returned; those named `find` give nothing for a missing key.
class GgufMetadata {
 public:
  /// `file` begins every complaint.
  GgufMetadata(std::string file, std::map<std::string_view, GgufValue> values)
      : file_(std::move(file)), values_(std::move(values)) {}

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] const std::map<std::string_view, GgufValue>& values() const noexcept { return values_; }
  [[nodiscard]] bool has(std::string_view key) const noexcept { return values_.contains(key); }

  /// Of any type of integers.
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view key) const;
  /// Of float32 or float64.
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] std::optional<double> find_real(std::string_view key) const;
  /// Of any type of numbers.
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] std::optional<bool> find_boolean(std::string_view key) const;
  /// UTF-8; it lives as long as the file.
  [[nodiscard]] std::string_view text(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> find_text(std::string_view key) const;

  /// A text for people: U+FFFD stands for what is not UTF-8; empty if the key is missing or of another type.
  [[nodiscard]] std::string description(std::string_view key) const;

  // Arrays.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<double> reals(std::string_view key) const;
  [[nodiscard]] std::vector<bool> booleans(std::string_view key) const;

  /// Throws ModelError: `file: key 'key': problem`.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  [[nodiscard]] const GgufValue* find(std::string_view key) const noexcept;
  [[nodiscard]] const GgufValue& at(std::string_view key) const;
  [[nodiscard]] const GgufValue& array(std::string_view key) const;

  std::string file_;
  std::map<std::string_view, GgufValue> values_;
};

/// A tensor in a GGUF file.
struct GgufTensor {
  std::string_view name;  ///< UTF-8, in the file's bytes
  GgufType type{};
  std::vector<std::int64_t> shape;   ///< innermost first, as the format has it; one to four extents
  std::span<const std::byte> bytes;  ///< not owned
};

/// What a GGUF file says.
struct GgufContent {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  ///< in the file's order
};

/// Reads the bytes of a GGUF file of version 3, whose metadata and tensors then point into them; values of tensors are
/// not touched. Throws ModelError, which begins with `file` and names key or tensor, for what is cut off, counts and
/// lengths beyond the file, keys and names that occur twice or are not UTF-8 (texts may be in any encoding), types that
/// are not known or not supported, arrays of arrays, impossible extents and alignments, and bytes outside the file or
/// shared by tensors.
[[nodiscard]] GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& file);

/// A GGUF file, mapped, or all files of a model that is split into several: their tensors, with the metadata of the
/// first. Move-only; what its metadata and tensors point to lives as long as it does.
class GgufFile {
 public:
  /// Opens all files that `file` is one of (see `gguf_parts`). Throws ModelError as MappedFile and `parse_gguf` do, and
  /// for files that do not belong together.
  [[nodiscard]] static GgufFile open(const std::filesystem::path& file);

  /// Of the first file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return files_.front().path(); }
  [[nodiscard]] const GgufMetadata& metadata() const noexcept { return content_.metadata; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const noexcept { return content_.tensors; }
  /// The tensor of that name, or null.
  [[nodiscard]] const GgufTensor* find(std::string_view name) const noexcept;

 private:
  GgufFile(std::vector<MappedFile> files, GgufContent content);

  std::vector<MappedFile> files_;
  GgufContent content_;
  std::map<std::string_view, std::size_t> index_;
};

/// What a GGUF file begins with.
inline constexpr std::string_view kGgufMagic = "GGUF";

/// Whether a model is given as a GGUF file and not as a folder: by the ending `.gguf` of a path that is no folder or,
/// as in stores that name files by their hash, by what a file begins with.
[[nodiscard]] bool is_gguf_path(const std::filesystem::path& path);

}  // namespace pascaline
