#include "model/text/split_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"
#include "model/text/pattern_translation.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kLongestPattern = 4096;

struct FreePcre {
  void operator()(pcre2_compile_context* context) const noexcept { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const noexcept { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};

// Takes ownership of what PCRE2 allocated; it gives null where memory is short.
template <class T>
std::unique_ptr<T, FreePcre> owned(T* given) {
  if (given == nullptr) {
    throw std::bad_alloc();
  }
  return std::unique_ptr<T, FreePcre>(given);
}

std::string pcre_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return {text.begin(), std::find(text.begin(), text.end(), PCRE2_UCHAR{0})};
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

void SplitPattern::FreeCode::operator()(pcre2_real_code_8* code) const noexcept { pcre2_code_free(code); }

SplitPattern::SplitPattern(const std::string& pattern, std::uint32_t match_limit) : match_limit_(match_limit) {
  if (pattern.size() > kLongestPattern) {
    throw Error(fmt::format("the split pattern has {} bytes; no tokenizer of this kind has more than {}",
                            pattern.size(), kLongestPattern));
  }
  const std::string translated = pcre_pattern(pattern);
  const auto context = owned(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int code = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(
      pcre2_compile(units(translated), translated.size(), PCRE2_UTF | PCRE2_UCP, &code, &offset, context.get()));
  if (!code_) {
    throw Error(fmt::format("PCRE2 cannot compile the split pattern '{}', at byte {}: {}", translated, offset,
                            pcre_message(code)));
  }
  std::uint32_t may_be_empty = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty != 0) {
    throw Error(fmt::format("the split pattern '{}' can match an empty text, which gives no pieces", pattern));
  }
  // Where memory may not be made executable, this fails, and matching is interpreted: slower, with the same results.
  (void)pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

std::vector<std::string_view> SplitPattern::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  const auto context = owned(pcre2_match_context_create(nullptr));
  const auto data = owned(pcre2_match_data_create(1, nullptr));
  pcre2_set_match_limit(
      context.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(match_limit_ + 4 * std::uint64_t{text.size()},
                                                                        std::numeric_limits<std::uint32_t>::max())));
  const auto match = [&](std::size_t start, std::uint32_t options) {
    return pcre2_match(code_.get(), units(text), text.size(), start, options | PCRE2_NO_UTF_CHECK, data.get(),
                       context.get());
  };
  for (std::size_t start = 0; start < text.size();) {
    int count = match(start, 0);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
      count = match(start, PCRE2_NO_JIT);
    }
    if (count == PCRE2_ERROR_NOMATCH) {
      pieces.push_back(text.substr(start));
      break;
    }
    if (count < 0) {
      throw Error(fmt::format("cannot split text of {} bytes at byte {}: PCRE2: {} (code {}); shorten the text there",
                              text.size(), start, pcre_message(count), count),
                  count);
    }
    const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(data.get());
    if (found[1] <= found[0] || found[0] < start || found[1] > text.size()) {
      throw Error(fmt::format("the split pattern matched no text at byte {}", start));
    }
    if (found[0] > start) {
      pieces.push_back(text.substr(start, found[0] - start));
    }
    pieces.push_back(text.substr(found[0], found[1] - found[0]));
    start = found[1];
  }
  return pieces;
}

}  // namespace pascaline
