#include "model/checkpoint/gguf/gguf_file.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "model/checkpoint/gguf/gguf_split.hpp"

namespace pascaline {
namespace {

// By ggml's numbers; some were withdrawn.
constexpr std::array<std::string_view, 42> kGgmlTypes{
    "F32",   "F16",    "Q4_0",  "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",    "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16",  "",       "",
    "",      "TQ1_0",  "TQ2_0", "",     "",     "",        "MXFP4",  "NVFP4",   "Q1_0"};

struct GgufBlock {
  std::size_t values;
  std::size_t bytes;
};

GgufBlock gguf_block_of(GgufType type) noexcept {
  if (const auto format = format_of(type)) {
    const FormatTraits& traits = kElementTypes[static_cast<std::size_t>(*format)];
    return {traits.block.values, traits.block.bytes};
  }
  return type == GgufType::F32 ? GgufBlock{1, 4} : GgufBlock{1, 2};
}

GgufContent content_of(const MappedFile& file) { return parse_gguf(file.bytes(), file.path().string()); }

}  // namespace

std::string_view name_of(GgufType type) noexcept {
  const auto number = static_cast<std::size_t>(type);
  return number < kGgmlTypes.size() ? kGgmlTypes[number] : std::string_view();
}

std::int64_t block_values(GgufType type) noexcept { return static_cast<std::int64_t>(gguf_block_of(type).values); }

std::int64_t block_bytes(GgufType type) noexcept { return static_cast<std::int64_t>(gguf_block_of(type).bytes); }

std::vector<GgufType> read_gguf_types() {
  std::vector<GgufType> types{GgufType::F32, GgufType::F16, GgufType::BF16};
  for (const FormatTraits& format : packed_formats()) {
    if (format.gguf.type != 0) {
      types.push_back(static_cast<GgufType>(format.gguf.type));
    }
  }
  return types;
}

std::optional<GgufType> gguf_type_of(ElementType format) noexcept {
  const std::uint32_t type = kElementTypes[static_cast<std::size_t>(format)].gguf.type;
  return type != 0 ? std::optional(static_cast<GgufType>(type)) : std::nullopt;
}

std::optional<ElementType> format_of(GgufType type) noexcept {
  for (const FormatTraits& format : packed_formats()) {
    if (gguf_type_of(format.type) == type) {
      return format.type;
    }
  }
  return std::nullopt;
}

GgufFile::GgufFile(std::vector<MappedFile> files, GgufContent content)
    : files_(std::move(files)), content_(std::move(content)) {
  for (std::size_t i = 0; i < content_.tensors.size(); ++i) {
    index_.emplace(content_.tensors[i].name, i);
  }
}

GgufFile GgufFile::open(const std::filesystem::path& file) {
  std::vector<MappedFile> files;
  files.emplace_back(file);
  GgufContent given = content_of(files.front());
  const std::vector<std::filesystem::path> parts = gguf_parts(file, given.metadata);
  if (parts.size() == 1) {
    return {std::move(files), std::move(given)};
  }
  files.clear();
  files.emplace_back(parts.front());
  GgufContent all = content_of(files.front());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MappedFile& part = i == 0 ? files.front() : files.emplace_back(parts[i]);
    add_gguf_part(all, content_of(part), i, parts.size());
  }
  check_gguf_parts(all, parts.size());
  return {std::move(files), std::move(all)};
}

const GgufTensor* GgufFile::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &content_.tensors[found->second];
}

bool is_gguf_path(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.extension() == ".gguf") {
    return !std::filesystem::is_directory(path, ignored);
  }
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return false;
  }
  std::string begin(kGgufMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kGgufMagic;
}

}  // namespace pascaline
