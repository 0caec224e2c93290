#include "model/checkpoint/gguf/gguf_split.hpp"

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxParts = 65535;
constexpr const char* kNumberKey = "split.no";
constexpr const char* kCountKey = "split.count";
constexpr const char* kTensorsKey = "split.tensors.count";

std::string ending(std::int64_t index, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

std::int64_t part_count(const GgufMetadata& metadata) {
  const std::int64_t count = metadata.find_integer(kCountKey).value_or(1);
  if (count > kMaxParts) {
    metadata.fail(kCountKey, fmt::format("{} files are not possible (at most {})", count, kMaxParts));
  }
  return count;
}

std::int64_t part_number(const GgufMetadata& metadata, std::int64_t count) {
  const std::int64_t number = metadata.integer(kNumberKey);
  if (number < 0 || number >= count) {
    metadata.fail(kNumberKey, fmt::format("{} is not one of {} files, counted from 0", number, count));
  }
  return number;
}

}  // namespace

std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& file, const GgufMetadata& metadata) {
  const std::int64_t count = part_count(metadata);
  if (count <= 1) {
    return {file};
  }
  const std::int64_t number = part_number(metadata, count);
  const std::string name = file.filename().string();
  if (!name.ends_with(ending(number, count))) {
    throw ModelError(fmt::format(
        "{}: this is part {} of {} of a split model, but its name does not end in {}, so the other parts cannot be "
        "found; restore the original names, or join the files (llama-gguf-split --merge)",
        file.string(), number + 1, count, ending(number, count)));
  }
  const std::string stem = name.substr(0, name.size() - ending(number, count).size());
  std::vector<std::filesystem::path> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(i == number ? file : file.parent_path() / (stem + ending(i, count)));
    std::error_code unseen;
    if (!std::filesystem::exists(parts.back(), unseen)) {
      throw ModelError(
          fmt::format("{}: this is part {} of {} of a split model, and part {} is missing: put {} beside it, and all "
                      "other parts",
                      file.string(), number + 1, count, i + 1, parts.back().filename().string()));
    }
  }
  return parts;
}

void add_gguf_part(GgufContent& first, GgufContent part, std::size_t index, std::size_t count) {
  const GgufMetadata& metadata = part.metadata;
  const auto expected = static_cast<std::int64_t>(count);
  if (part_count(metadata) != expected || part_number(metadata, expected) != static_cast<std::int64_t>(index)) {
    metadata.fail(kNumberKey, fmt::format("this is part {} of {}, though it is named as part {} of {}",
                                          metadata.integer(kNumberKey) + 1, part_count(metadata), index + 1, count));
  }
  if (index == 0) {
    return;
  }
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : first.tensors) {
    names.insert(tensor.name);
  }
  for (GgufTensor& tensor : part.tensors) {
    if (names.contains(tensor.name)) {
      throw ModelError(fmt::format("{}: tensor {}: another part of the split model has it, too", metadata.file(),
                                   quoted_name(tensor.name)));
    }
    first.tensors.push_back(std::move(tensor));
  }
}

void check_gguf_parts(const GgufContent& all, std::size_t count) {
  const auto found = static_cast<std::int64_t>(all.tensors.size());
  const std::int64_t expected = all.metadata.find_integer(kTensorsKey).value_or(found);
  if (count > 1 && expected != found) {
    all.metadata.fail(kTensorsKey,
                      fmt::format("the {} parts have {} tensors together, not {}; download all of them again", count,
                                  found, expected));
  }
}

}  // namespace pascaline
