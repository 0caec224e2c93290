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

struct GgufTypeEntry {
  GgufType type;
  std::string_view name;
  std::int64_t values;
  std::int64_t bytes;
};

constexpr std::array<GgufTypeEntry, 9> kGgufTypes{{{GgufType::F32, "F32", 1, 4},
                                                   {GgufType::F16, "F16", 1, 2},
                                                   {GgufType::Q4_0, "Q4_0", 32, 18},
                                                   {GgufType::Q4_1, "Q4_1", 32, 20},
                                                   {GgufType::Q8_0, "Q8_0", 32, 34},
                                                   {GgufType::Q4_K, "Q4_K", 256, 144},
                                                   {GgufType::Q5_K, "Q5_K", 256, 176},
                                                   {GgufType::Q6_K, "Q6_K", 256, 210},
                                                   {GgufType::BF16, "BF16", 1, 2}}};

const GgufTypeEntry& gguf_entry_of(GgufType type) noexcept {
  const auto* const found = std::find_if(kGgufTypes.begin(), kGgufTypes.end(),
                                         [type](const GgufTypeEntry& entry) { return entry.type == type; });
  return found == kGgufTypes.end() ? kGgufTypes.front() : *found;
}

GgufContent content_of(const MappedFile& file) { return parse_gguf(file.bytes(), file.path().string()); }

}  // namespace

std::string_view name_of(GgufType type) noexcept { return gguf_entry_of(type).name; }

std::int64_t block_values(GgufType type) noexcept { return gguf_entry_of(type).values; }

std::int64_t block_bytes(GgufType type) noexcept { return gguf_entry_of(type).bytes; }

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
