#include "model/text/tokenizer_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "model/text/pre_tokenizer.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kExpectedKind = "expected a byte-level BPE tokenizer";

[[noreturn]] void refuse_type(const JsonNode& node, std::string_view expected) {
  node.at("type").fail(
      fmt::format("'{}' is not supported: {}, with {} here", node.at("type").text(), kExpectedKind, expected));
}

void require_type(const JsonNode& node, std::string_view type) {
  if (node.at("type").text() != type) {
    refuse_type(node, fmt::format("'{}'", type));
  }
}

void require_false(const JsonNode& node, std::string_view key) {
  if (node.at(key).boolean()) {
    node.at(key).fail(fmt::format("true is not supported: {}, with false here", kExpectedKind));
  }
}

// The member is missing or one of the values that change nothing.
void require_unused(const JsonNode& node, std::string_view key, std::initializer_list<nlohmann::json> unused) {
  if (node.has_value(key) && std::find(unused.begin(), unused.end(), node.at(key).value()) == unused.end()) {
    node.at(key).fail(fmt::format("is set, which is not supported: {}, without it", kExpectedKind));
  }
}

// Steps of a sequence, or the one that there is.
std::vector<JsonNode> steps_in(const JsonNode& node, std::string_view list) {
  if (node.at("type").text() != "Sequence") {
    return {node};
  }
  const JsonNode steps = node.at(list);
  std::vector<JsonNode> out;
  for (std::size_t i = 0; i < steps.array_size(); ++i) {
    out.push_back(steps.at(i));
  }
  return out;
}

TextSplitting::Pattern split_of(const JsonNode& step) {
  const JsonNode behavior = step.at("behavior");
  if (behavior.text() != "Isolated") {
    behavior.fail(fmt::format("'{}' is not supported, only 'Isolated'", behavior.text()));
  }
  require_false(step, "invert");
  const JsonNode pattern = step.at("pattern").at("Regex");
  return {pattern.text(), pattern.pointer()};
}

TextSplitting::Pattern digits_of(const JsonNode& step) {
  return {step.at("individual_digits").boolean() ? R"(\p{N})" : R"(\p{N}+)", step.pointer()};
}

// Whether there is one; sequences may be empty, and within each other.
bool read_normalizer(const JsonNode& normalizer) {
  if (normalizer.at("type").text() != "Sequence") {
    require_type(normalizer, "NFC");
    return true;
  }
  const JsonNode steps = normalizer.at("normalizers");
  bool normalises = false;
  for (std::size_t i = 0; i < steps.array_size(); ++i) {
    normalises = read_normalizer(steps.at(i)) || normalises;
  }
  return normalises;
}

// The last step, which may split into GPT-2's words before it makes bytes of them.
void add_byte_level(const JsonNode& step, TextSplitting& splitting) {
  require_false(step, "add_prefix_space");
  if (!step.has("use_regex") || step.at("use_regex").boolean()) {
    splitting.patterns.push_back({std::string(find_pre_tokenizer("gpt-2")->patterns.front()), step.pointer()});
  }
}

std::int64_t added_token(const JsonNode& processor, const JsonNode& piece) {
  const std::string name = piece.at("SpecialToken").at("id").text();
  const JsonNode ids = processor.at("special_tokens").at(name).at("ids");
  if (ids.array_size() != 1) {
    ids.fail(fmt::format("expected one token, found {}", ids.array_size()));
  }
  return ids.at(std::size_t{0}).integer();
}

// What a text that stands alone becomes: itself, or a token and then itself.
std::optional<std::int64_t> beginning_of(const JsonNode& processor) {
  const JsonNode pieces = processor.at("single");
  const std::size_t count = pieces.array_size();
  const bool ends_with_text = count > 0 && pieces.at(count - 1).has("Sequence");
  if (!ends_with_text || count > 2 || (count == 2 && !pieces.at(std::size_t{0}).has("SpecialToken"))) {
    pieces.fail("expected a text, with at most one token before it");
  }
  return count == 2 ? std::optional(added_token(processor, pieces.at(std::size_t{0}))) : std::nullopt;
}

void check_model(const JsonNode& model) {
  require_type(model, "BPE");
  require_unused(model, "dropout", {0, 0.0});
  require_unused(model, "continuing_subword_prefix", {""});
  require_unused(model, "end_of_word_suffix", {""});
  for (const char* key : {"fuse_unk", "byte_fallback"}) {
    require_unused(model, key, {false});
  }
  for (const char* key : {"vocab", "merges"}) {
    if (!model.at(key).value().is_null()) {
      model.at(key).fail(fmt::format("expected {}, found {}", key[0] == 'v' ? "an object" : "an array",
                                     model.at(key).value().type_name()));
    }
  }
}

}  // namespace

TextSplitting read_text_splitting(const JsonNode& root) {
  TextSplitting splitting;
  if (root.has_value("normalizer")) {
    splitting.normalises = read_normalizer(root.at("normalizer"));
  }
  const JsonNode model = root.at("model");
  splitting.whole_pieces = model.has_value("ignore_merges") && model.at("ignore_merges").boolean();
  const JsonNode pre_tokenizer = root.at("pre_tokenizer");
  const std::vector<JsonNode> steps = steps_in(pre_tokenizer, "pretokenizers");
  if (steps.empty()) {
    pre_tokenizer.at("pretokenizers").fail("expected steps of which the last is ByteLevel, found 0");
  }
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const std::string type = steps[i].at("type").text();
    if (type == "Split") {
      splitting.patterns.push_back(split_of(steps[i]));
    } else if (type == "Digits") {
      splitting.patterns.push_back(digits_of(steps[i]));
    } else {
      refuse_type(steps[i], "'Split' or 'Digits'");
    }
  }
  require_type(steps.back(), "ByteLevel");
  add_byte_level(steps.back(), splitting);
  return splitting;
}

std::optional<std::int64_t> read_beginning(const JsonNode& root) {
  std::optional<std::int64_t> beginning;
  if (!root.has_value("post_processor")) {
    return beginning;
  }
  for (const JsonNode& step : steps_in(root.at("post_processor"), "processors")) {
    if (step.at("type").text() == "ByteLevel") {
      continue;
    }
    require_type(step, "TemplateProcessing");
    if (const auto token = beginning_of(step)) {
      if (beginning) {
        step.fail("a text begins with two tokens, which is not supported");
      }
      beginning = token;
    }
  }
  return beginning;
}

void check_bpe_settings(const JsonNode& root) {
  require_unused(root, "version", {"1.0"});
  check_model(root.at("model"));
  require_type(root.at("decoder"), "ByteLevel");
}

void check_no_unknown_token(const JsonNode& root) {
  const JsonNode model = root.at("model");
  if (model.has_value("unk_token")) {
    model.at("unk_token").fail("is set, and some bytes have no token, for which it would stand; this is not supported");
  }
}

}  // namespace pascaline
