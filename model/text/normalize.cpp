#include "model/text/normalize.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

constexpr auto kComposed = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr std::size_t kLongestDecomposition = 32;

// Below U+0300, whose leading byte is CC, every text is normalised.
bool is_surely_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

std::vector<utf8proc_int32_t> decomposed(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  std::array<utf8proc_int32_t, kLongestDecomposition> buffer{};
  int boundary = 0;
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    if (step.kind != Utf8Step::Kind::character) {
      throw Error("cannot normalise text that is not valid UTF-8: make it valid first (valid_utf8)");
    }
    const auto code = static_cast<utf8proc_int32_t>(step.code);
    const auto count = utf8proc_decompose_char(code, buffer.data(), buffer.size(), kComposed, &boundary);
    if (count < 0 || count > static_cast<utf8proc_ssize_t>(buffer.size())) {
      throw Error(fmt::format("utf8proc cannot decompose U+{:04X}: {}", code,
                              count < 0 ? utf8proc_errmsg(count) : "longer than any character's decomposition"));
    }
    out.insert(out.end(), buffer.begin(), buffer.begin() + count);
    text.remove_prefix(step.bytes);
  }
  return out;
}

// Canonical order. The library's own takes quadratic time for a long run of marks.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto is_mark = [](utf8proc_int32_t code) { return combining_class(code) != 0; };
  const auto before = [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); };
  for (auto start = std::find_if(codes.begin(), codes.end(), is_mark); start != codes.end();) {
    const auto end = std::find_if_not(start, codes.end(), is_mark);
    std::stable_sort(start, end, before);
    start = std::find_if(end, codes.end(), is_mark);
  }
}

}  // namespace

std::string nfc(std::string_view text) {
  if (is_surely_nfc(text)) {
    return std::string(text);
  }
  std::vector<utf8proc_int32_t> codes = decomposed(text);
  order_marks(codes);
  const auto length = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kComposed);
  if (length < 0) {
    throw Error(fmt::format("utf8proc cannot normalise {} bytes of text: {}", text.size(), utf8proc_errmsg(length)));
  }
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace pascaline
