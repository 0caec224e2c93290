#include "model/checkpoint/model_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/util/foreign_text.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/given_model.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxQuoted = 96;
constexpr std::size_t kMaxListed = 3;

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
    throw ModelError(reason_not_a_model(file.parent_path(), file.filename().string()));
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
    return foreign_text(read_file(file), file.string());
  } catch (const SpaceError& fault) {
    throw ModelError(fault.what());
  } catch (const Error& fault) {
    throw ModelError(fmt::format("{}: {}", file.string(), fault.what()), fault.code());
  }
}

}  // namespace pascaline
