#include "cli/model/validation_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/text/utf8.hpp"

namespace pascaline::cli {
namespace {

constexpr std::size_t kMaxValidationBytes = std::size_t{1} << 30;  // what a tokenizer takes

// Prose and arithmetic in English, Python, JSON, German and Chinese.
constexpr std::array<std::string_view, 6> kTexts{
    "The quick brown fox jumps over the lazy dog. What happened next surprised everyone in the small village: the dog "
    "woke up, looked around, and began to follow the fox across the fields towards the river.",
    "Question: A train leaves at 14:35 and travels 210 km at an average speed of 84 km/h. When does it arrive?\n"
    "Answer: 210 / 84 = 2.5 hours, so it arrives at 17:05.",
    "def greatest_common_divisor(a: int, b: int) -> int:\n    while b != 0:\n        a, b = b, a % b\n    return "
    "a\n\n\n"
    "print(greatest_common_divisor(48, 36))  # 12\n",
    "{\"window\": \"Settings\", \"buttons\": [{\"label\": \"Save\", \"x\": 412, \"y\": 633}, {\"label\": \"Cancel\", "
    "\"x\": 506, \"y\": 633}], \"focused\": \"Save\"}",
    "Die Messung wurde an drei Tagen wiederholt, und jedes Mal lag das Ergebnis innerhalb der erwarteten Grenzen. "
    "Danach wurde das Ger\u00e4t ausgeschaltet und f\u00fcr den n\u00e4chsten Versuch vorbereitet.",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u4e00\u8d77\u53bb\u516c\u56ed\u6563\u6b65\u3002"
    "\u6e56\u8fb9\u6709\u5f88\u591a\u4eba\u5728\u62cd\u7167\uff0c\u5b69\u5b50\u4eec\u5728\u8349\u5730\u4e0a"
    "\u8dd1\u6765\u8dd1\u53bb\u3002"};

void require_utf8(std::string_view text, const std::string& file) {
  for (std::size_t place = 0; place < text.size();) {
    const Utf8Step step = next_utf8(text.substr(place));
    if (step.kind != Utf8Step::Kind::character) {
      throw Error(fmt::format("{}: byte {} is not UTF-8 (line {}); give a text in UTF-8", file, place + 1,
                              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n')));
    }
    place += step.bytes;
  }
}

}  // namespace

Passages read_passage(const ModelFolder& model, const std::filesystem::path& file, std::int64_t most) {
  const std::string text = read_file(file, kMaxValidationBytes);
  if (text.empty()) {
    throw Error(fmt::format("{} is empty; give a text of at least two tokens", file.string()));
  }
  require_utf8(text, file.string());
  std::vector<TokenId> tokens = model.encode_plain(text);
  if (tokens.size() < 2) {
    throw Error(fmt::format("{} has only one token, and nothing to predict; give a longer text", file.string()));
  }
  tokens.resize(static_cast<std::size_t>(std::min(most, static_cast<std::int64_t>(tokens.size()))));
  return {std::move(tokens)};
}

std::span<const std::string_view> usual_texts() noexcept { return kTexts; }

Passages usual_passages(const ModelFolder& model) {
  Passages passages;
  for (const std::string_view text : kTexts) {
    passages.push_back(model.encode_plain(text));
  }
  return passages;
}

std::int64_t count_tokens(const Passages& passages) noexcept {
  std::int64_t count = 0;
  for (const std::vector<TokenId>& passage : passages) {
    count += static_cast<std::int64_t>(passage.size());
  }
  return count;
}

std::vector<TextWindow> windows_of(const Passages& passages, std::int64_t length) {
  std::vector<TextWindow> windows;
  std::int64_t before = 0;
  for (const std::vector<TokenId>& passage : passages) {
    for (std::size_t first = 0; first < passage.size();) {
      const std::size_t count = std::min(passage.size() - first, static_cast<std::size_t>(length));
      const std::size_t end = first + count;
      windows.push_back({before + static_cast<std::int64_t>(first), std::span(passage).subspan(first, count),
                         end < passage.size() ? std::optional(passage[end]) : std::nullopt});
      first = end;
    }
    before += static_cast<std::int64_t>(passage.size());
  }
  return windows;
}

}  // namespace pascaline::cli
