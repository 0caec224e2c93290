#pragma once

#include <nlohmann/json.hpp>

#include "core/util/json_reader.hpp"
#include "model/text/pre_tokenizer.hpp"

namespace pascaline {

/// `normalizer` and `pre_tokenizer` of a tokenizer.json that splits as that family does.
[[nodiscard]] nlohmann::json normalizer_of(const PreTokenizer& family);
[[nodiscard]] nlohmann::json pre_tokenizer_of(const PreTokenizer& family);

/// The family that a tokenizer.json splits as: `root` is the document, without its vocabulary. Throws SpaceError naming
/// the place if it is none that is known.
[[nodiscard]] const PreTokenizer& family_of(const JsonNode& root);

}  // namespace pascaline
