#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/text/tokenizer.hpp"

namespace pascaline::testing {

/// Folder with a small tokenizer.json (736 byte-pair tokens, 11 added ones) and encodings.json: what the Python
/// package tokenizers 0.23.3 makes of texts and ids with it.
inline std::filesystem::path text_data() { return PASCALINE_TEST_TEXT_DATA; }

inline const std::string& small_tokenizer_text() {
  static const std::string text = read_file(text_data() / "tokenizer.json");
  return text;
}

inline nlohmann::json small_tokenizer_json() { return nlohmann::json::parse(small_tokenizer_text()); }

inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::parse(small_tokenizer_text(), "small.json");
  return tokenizer;
}

inline const nlohmann::json& small_encodings() {
  static const nlohmann::json encodings = nlohmann::json::parse(read_file(text_data() / "encodings.json"));
  return encodings;
}

/// Message of the Error that `work` must throw; a failure of the test if it does not.
inline std::string text_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

}  // namespace pascaline::testing
