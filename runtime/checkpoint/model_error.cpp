#include "runtime/checkpoint/model_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "core/util/paths.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxQuoted = 96;
constexpr std::size_t kMaxListed = 3;

// The first GGUF file of a folder that is no projector.
std::optional<std::filesystem::path> gguf_in(const std::filesystem::path& folder) {
  std::optional<std::filesystem::path> first;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::filesystem::path& file = entry.path();
    if (file.extension() == ".gguf" && entry.is_regular_file(ignored) &&
        !file.filename().string().starts_with("mmproj") && (!first || file < *first)) {
      first = file;
    }
  }
  return first;
}

}  // namespace

std::string quoted_name(std::string_view name) {
  std::size_t length = std::min(name.size(), kMaxQuoted);
  // A character of several bytes is kept whole or left out.
  while (length > 0 && length < name.size() && (static_cast<unsigned char>(name[length]) & 0xC0U) == 0x80U) {
    --length;
  }
  std::string text(name.substr(0, length));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == '\x7F'; }, '?');
  return fmt::format("'{}{}'", text, length < name.size() ? "..." : "");
}

std::string quoted_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) {
    text += (i > 0 ? ", " : "") + quoted_name(names[i]);
  }
  return names.size() > kMaxListed ? fmt::format("{} and {} more", text, names.size() - kMaxListed) : text;
}

std::string read_model_file(const std::filesystem::path& file, std::uintmax_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    const std::filesystem::path folder = file.parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
      const bool is_there = std::filesystem::exists(folder, error);
      throw ModelError(fmt::format("{}: {}; give a model's folder, which has its config.json, or a GGUF file",
                                   folder.string(),
                                   is_there ? "this is neither a folder nor a GGUF file" : "there is no such folder"));
    }
    if (const std::optional<std::filesystem::path> model = gguf_in(folder)) {
      throw ModelError(
          fmt::format("{}: the folder lacks this file, but it has GGUF files, of which one is a model: name "
                      "that one, as {}",
                      file.string(), model->string()));
    }
    if (folder.extension() == ".gguf") {
      throw ModelError(
          fmt::format("{}: this is a folder, and no GGUF file; give the file, or a model's folder", folder.string()));
    }
    throw ModelError(fmt::format("{}: the model folder lacks this file; download the model completely", file.string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw ModelError(fmt::format("{}: this is not a regular file", file.string()));
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (!error && bytes > max_bytes) {
    throw ModelError(
        fmt::format("{}: {} bytes are too many for this file (at most {})", file.string(), bytes, max_bytes));
  }
  try {
    return read_file(file);
  } catch (const Error& fault) {
    throw ModelError(fmt::format("{}: {}", file.string(), fault.what()), fault.code());
  }
}

}  // namespace pascaline
