#include "model/convert/split_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/tokenizer_settings.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

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

bool splits_as(const TextSplitting& splitting, const PreTokenizer& family) {
  return family.normalises == splitting.normalises && family.whole_pieces == splitting.whole_pieces &&
         std::equal(family.patterns.begin(), family.patterns.end(), splitting.patterns.begin(),
                    splitting.patterns.end(),
                    [](std::string_view ours, const TextSplitting::Pattern& theirs) { return ours == theirs.text; });
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
  const TextSplitting splitting = read_text_splitting(root);
  const auto families = pre_tokenizers();
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const PreTokenizer& family) { return splits_as(splitting, family); });
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
