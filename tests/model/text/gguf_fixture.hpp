#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/gguf_tokenizer.hpp"
#include "tests/model/text/text_fixture.hpp"

namespace pascaline::testing {

/// A vocabulary cut out of SmolLM2's, with ids that the Python package tokenizers gives (make_gguf_fixture.py).
inline const nlohmann::json& gguf_fixture() {
  static const nlohmann::json fixture = nlohmann::json::parse(read_file(text_data() / "gguf_tokenizer.json"));
  return fixture;
}

/// They live as long as the list.
inline std::vector<std::string_view> views_of(const nlohmann::json& texts) {
  std::vector<std::string_view> out;
  for (const nlohmann::json& text : texts) {
    out.emplace_back(text.get_ref<const std::string&>());
  }
  return out;
}

/// What a GGUF file with that vocabulary would say of its tokenizer.
inline GgufTokenizerData small_gguf_data(std::string_view splitting = "smollm") {
  GgufTokenizerData data;
  data.model = "gpt2";
  data.pre = splitting;
  data.tokens = views_of(gguf_fixture()["tokens"]);
  data.types = gguf_fixture()["types"].get<std::vector<std::int64_t>>();
  data.merges = views_of(gguf_fixture()["merges"]);
  data.bos = 1;
  data.eos = 2;
  data.pad = 2;
  return data;
}

}  // namespace pascaline::testing
