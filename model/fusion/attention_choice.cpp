#include "model/fusion/attention_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "runtime/ops/block_choice.hpp"

namespace pascaline {
namespace {

constexpr const char* kForms =
    "give dense, window=N with sinks=M if wanted, strided=K with window=N, sinks=M and block=B if wanted, or topk=F "
    "with block=B if wanted";

// What a choice is made of, as it was given.
struct AttentionParts {
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> sinks;
  std::optional<std::int64_t> strided;
  std::optional<std::int64_t> block;
  std::optional<double> topk;
};

std::int64_t count_of(std::string_view text, std::string_view key, std::string_view value, std::int64_t least) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (fault != std::errc() || end != value.data() + value.size() || number > std::int64_t{1} << 30) {
    throw Error(fmt::format("{}: '{}' is not a whole number up to 2^30, as {} needs it", text, value, key));
  }
  if (number < least) {
    throw Error(fmt::format("{}: {} is {}; give {} or more", text, key, number, least));
  }
  return number;
}

double part_of(std::string_view text, std::string_view value) {
  const bool percent = value.ends_with('%');
  const std::string_view digits = value.substr(0, value.size() - (percent ? 1 : 0));
  double number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const double part = percent ? number / 100 : number;
  if (fault != std::errc() || end != digits.data() + digits.size() || !(part > 0 && part < 1)) {
    throw Error(fmt::format("{}: '{}' is not a part of the blocks between 0 and 1, such as 25% or 0.25", text, value));
  }
  return part;
}

template <typename T>
void set_once(std::string_view text, std::string_view key, std::optional<T>& part, T value) {
  if (part) {
    throw Error(fmt::format("{}: {} is given twice", text, key));
  }
  part = value;
}

void read_part(std::string_view text, std::string_view part, AttentionParts& parts) {
  const std::size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
  if (key == "topk") {
    return set_once(text, key, parts.topk, part_of(text, value));
  }
  const std::array<std::pair<std::string_view, std::optional<std::int64_t>*>, 4> counts{
      {{"window", &parts.window}, {"sinks", &parts.sinks}, {"strided", &parts.strided}, {"block", &parts.block}}};
  for (const auto& [name, count] : counts) {
    if (key == name) {
      return set_once(text, key, *count, count_of(text, key, value, key == "sinks" ? 0 : 1));
    }
  }
  throw Error(fmt::format("{}: '{}' is not a part of a mask; {}", text, part, kForms));
}

void check_together(std::string_view text, const AttentionParts& parts) {
  if (parts.topk && (parts.window || parts.sinks || parts.strided)) {
    throw Error(fmt::format("{}: topk chooses blocks by itself: leave out window, sinks and strided", text));
  }
  if (!parts.topk && !parts.window && !parts.strided) {
    throw Error(fmt::format("{}: without a window tokens would not see themselves; {}", text, kForms));
  }
  if (parts.block && !parts.strided && !parts.topk) {
    throw Error(fmt::format("{}: a window and sinks are exact to the token: leave out block", text));
  }
}

}  // namespace

std::int64_t AttentionChoice::part() const noexcept {
  return std::max<std::int64_t>(1, std::llround(top_part * static_cast<double>(ops::ChooseBlocks::kAll)));
}

std::string AttentionChoice::name() const {
  if (is_dense()) {
    return "dense";
  }
  const ops::SparseMask usual;
  const std::string block = mask.block == usual.block ? std::string() : fmt::format(",block={}", mask.block);
  if (chooses_blocks()) {
    return fmt::format("topk={}%{}", top_part * 100, block);
  }
  return fmt::format("{}window={}{}{}", mask.stride > 0 ? fmt::format("strided={},", mask.stride) : std::string(),
                     mask.window, mask.sinks > 0 ? fmt::format(",sinks={}", mask.sinks) : std::string(), block);
}

AttentionChoice parse_attention(std::string_view text) {
  AttentionChoice choice;
  if (text == "dense") {
    return choice;
  }
  if (text.empty()) {
    throw Error(fmt::format("it says nothing; {}", kForms));
  }
  AttentionParts parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    read_part(text, text.substr(begin, end - begin), parts);
    begin = end + 1;
  }
  check_together(text, parts);
  choice.mask.block = parts.block.value_or(choice.mask.block);
  choice.top_part = parts.topk.value_or(0);
  if (!parts.topk) {
    choice.mask.stride = parts.strided.value_or(0);
    choice.mask.window = parts.window.value_or(choice.mask.block);
    choice.mask.sinks = parts.sinks.value_or(0);
  }
  try {
    ops::check_mask(choice.mask);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", text, error.what()));
  }
  return choice;
}

std::int64_t shortest_sparse(const AttentionChoice& choice) noexcept {
  if (choice.is_dense()) {
    return 0;
  }
  if (choice.chooses_blocks()) {  // the first block and the last ones count always
    std::int64_t blocks = 3;
    constexpr std::int64_t kAll = ops::ChooseBlocks::kAll;
    while ((choice.part() * blocks + kAll - 1) / kAll >= blocks && blocks < kAll) {
      ++blocks;
    }
    return (blocks - 1) * choice.mask.block + 1;
  }
  const ops::SparseMask& mask = choice.mask;
  if (mask.stride == 0) {
    return mask.window + mask.sinks + 1;
  }
  // The first block that no stride meets, after the sinks.
  const std::int64_t first = mask.sinks / mask.block;
  const std::int64_t left_out = first % mask.stride == 0 ? first + 1 : first;
  return mask.stride == 1 ? std::int64_t{1} << 30 : left_out * mask.block + 1 + mask.window;
}

void check_attention(const AttentionChoice& choice, std::int64_t context) {
  const std::int64_t shortest = shortest_sparse(choice);
  const std::int64_t most = ops::ChooseBlocks::kMaxBlocks * choice.mask.block;
  if (choice.chooses_blocks() && context > most) {
    throw Error(
        fmt::format("--attention {}: a context of {} tokens has too many blocks of {} to choose from; give "
                    "larger blocks, or a --context of at most {}",
                    choice.name(), context, choice.mask.block, most));
  }
  if (shortest <= context) {
    return;
  }
  if (choice.mask.stride == 1) {
    throw Error(
        fmt::format("--attention {}: a stride of 1 leaves nothing out: give a larger one, or dense", choice.name()));
  }
  throw Error(
      fmt::format("--attention {}: it leaves nothing out of a context of {} tokens, only of {} or more: give "
                  "{}, a larger --context, or dense",
                  choice.name(), context, shortest,
                  choice.chooses_blocks() ? "smaller blocks" : "a smaller window or fewer sinks"));
}

}  // namespace pascaline
