#include "runtime/convert/split_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {
namespace {

using nlohmann::json;

// Settings without effect on how text is split.
constexpr std::string_view kOffsetKey = "trim_offsets";

json bytes_step(bool splits) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", splits}};
}

json splitting_step(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

// The steps of a family, in the order of files of its models.
json steps_of(const PreTokenizer& family) {
  if (family.name == "gpt-2") {
    return json::array({bytes_step(true)});
  }
  if (family.name == "smollm") {
    return json::array({{{"type", "Digits"}, {"individual_digits", true}}, bytes_step(true)});
  }
  json steps = json::array();
  for (const std::string_view pattern : family.patterns) {
    steps.push_back(splitting_step(pattern));
  }
  steps.push_back(bytes_step(false));
  return steps;
}

json without_offsets(json step) {
  step.erase(kOffsetKey);
  return step;
}

// Steps as they are compared: of a sequence, or the one that there is.
json compared_steps(const json& pre_tokenizer) {
  const bool is_sequence = pre_tokenizer.is_object() && pre_tokenizer.value("type", "") == "Sequence" &&
                           pre_tokenizer.contains("pretokenizers") && pre_tokenizer["pretokenizers"].is_array();
  json steps = json::array();
  for (const json& step : is_sequence ? pre_tokenizer["pretokenizers"] : json::array({pre_tokenizer})) {
    steps.push_back(step.is_object() ? without_offsets(step) : step);
  }
  return steps;
}

bool takes_whole_pieces(const JsonNode& root) {
  const JsonNode model = root.at("model");
  return model.has_value("ignore_merges") && model.at("ignore_merges").boolean();
}

bool normalises(const JsonNode& root) {
  if (!root.has_value("normalizer")) {
    return false;
  }
  const JsonNode normalizer = root.at("normalizer");
  if (normalizer.at("type").text() != "NFC") {
    normalizer.fail("no family of GGUF files normalises text like this, only by NFC or not at all");
  }
  return true;
}

}  // namespace

json normalizer_of(const PreTokenizer& family) {
  return family.normalises ? json::object({{"type", "NFC"}}) : json(nullptr);
}

json pre_tokenizer_of(const PreTokenizer& family) {
  json steps = steps_of(family);
  return steps.size() == 1 ? steps.front() : json::object({{"type", "Sequence"}, {"pretokenizers", steps}});
}

const PreTokenizer& family_of(const JsonNode& root) {
  const json steps = compared_steps(root.at("pre_tokenizer").value());
  const bool normal = normalises(root);
  const bool whole = takes_whole_pieces(root);
  const auto families = pre_tokenizers();
  const auto found = std::find_if(families.begin(), families.end(), [&](const PreTokenizer& family) {
    return family.normalises == normal && family.whole_pieces == whole &&
           compared_steps(pre_tokenizer_of(family)) == steps;
  });
  if (found == families.end()) {
    std::vector<std::string_view> names;
    for (const PreTokenizer& family : families) {
      names.push_back(family.name);
    }
    root.at("pre_tokenizer")
        .fail(
            fmt::format("GGUF has no name for this way to split text; known are those of {}", fmt::join(names, ", ")));
  }
  return *found;
}

}  // namespace pascaline
