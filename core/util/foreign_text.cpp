#include "core/util/foreign_text.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/utf8_check.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16Little = "\xFF\xFE";
constexpr std::string_view kUtf16Big = "\xFE\xFF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

constexpr char32_t kSurrogates = 0xD800;
constexpr char32_t kLowSurrogates = 0xDC00;
constexpr char32_t kAfterSurrogates = 0xE000;

void append_code(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

std::string from_utf16(std::string_view bytes, bool is_big) {
  const auto unit = [&](std::size_t at) -> char32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return is_big ? char32_t{first} << 8U | second : char32_t{second} << 8U | first;
  };
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    const char32_t first = unit(at);
    const char32_t second = at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (first < kSurrogates || first >= kAfterSurrogates) {
      append_code(out, first);
    } else if (first < kLowSurrogates && second >= kLowSurrogates && second < kAfterSurrogates) {
      append_code(out, 0x10000 + ((first - kSurrogates) << 10U | (second - kLowSurrogates)));
      at += 2;
    } else {
      out += kReplacement;
    }
  }
  return out;
}

// The JSON library replaces what is no UTF-8 where it writes a text, and reads it again as it is.
std::string with_replacements(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

bool is_lfs_pointer(std::string_view bytes) noexcept {
  return bytes.starts_with("version https://git-lfs.github.com/spec/") ||
         bytes.starts_with("version https://hawser.github.com/spec/");
}

std::string foreign_text(std::string bytes, const std::string& file) {
  if (is_lfs_pointer(bytes)) {
    throw SpaceError(file, "", std::string(kLfsPointer));
  }
  if (bytes.starts_with(kUtf16Little) || bytes.starts_with(kUtf16Big)) {
    return from_utf16(std::string_view(bytes).substr(2), bytes.starts_with(kUtf16Big));
  }
  if (bytes.starts_with(kUtf8Mark)) {
    bytes.erase(0, kUtf8Mark.size());
  }
  return is_utf8(bytes) ? bytes : with_replacements(bytes);
}

std::string read_foreign_text(const std::filesystem::path& file) {
  return foreign_text(read_space_file(file), file.string());
}

}  // namespace pascaline
