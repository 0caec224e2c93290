#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

/// What a key of a model folder's configuration does.
enum class KeyEffect {
  used,     ///< results change with it
  checked,  ///< it is held against another key or file
  refused,  ///< only one value is supported
  warned,   ///< it is not known: results stay, and --strict refuses it
  none      ///< results stay
};

/// A key, changed.
struct KeyCase {
  std::string file;
  std::string pointer;
  nlohmann::json change;  ///< a merge patch of the file
  KeyEffect effect = KeyEffect::used;
  std::string says{};                              ///< part of the refusal; of a key without effect, why it has none
  std::map<std::string, nlohmann::json> beside{};  ///< merge patches of other files that go with it
};

/// Every key that is known of a model folder, at least once.
[[nodiscard]] const std::vector<KeyCase>& key_cases();
/// The same of a model that only reads text, whose config.json is another.
[[nodiscard]] const std::vector<KeyCase>& text_only_key_cases();

/// Of the family llama, what is not as with other models that only read text.
[[nodiscard]] const std::vector<KeyCase>& llama_key_cases();

/// preprocessor_config.json as it was released, and as a later version of the library writes it.
[[nodiscard]] std::vector<nlohmann::json> released_preprocessors();
/// generation_config.json as it was released.
[[nodiscard]] nlohmann::json released_generation();

}  // namespace pascaline::testing
