#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "model/text/byte_level.hpp"
#include "model/text/gguf_tokenizer.hpp"
#include "model/text/known_templates.hpp"
#include "model/text/pre_tokenizer.hpp"
#include "model/text/tokenizer.hpp"

namespace {

using pascaline::AddedTokens;
using pascaline::GgufTokenizer;
using pascaline::GgufTokenizerData;
using pascaline::TokenId;
using pascaline::Tokenizer;

// Uses a tokenizer; a special token out of plain text is a fault.
void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const TokenId id : tokenizer.encode(text, AddedTokens::ignore)) {
    if (tokenizer.is_special(id)) {
      std::abort();
    }
  }
  (void)tokenizer.decode(tokenizer.encode(text, AddedTokens::match), pascaline::SpecialTokens::keep);
}

// Tokens of all bytes, and then what the lines say: a token after its type (a digit), a merge after 'm', a number of an
// id after 'b', 'e' or 'p'; any other line is text that is encoded.
void try_gguf(std::uint8_t splitting, std::string_view lines) {
  std::vector<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    spellings.push_back(pascaline::spelling_of_bytes(std::string(1, static_cast<char>(byte))));
  }
  GgufTokenizerData data;
  data.model = "gpt2";
  data.pre = pascaline::pre_tokenizers()[splitting % pascaline::pre_tokenizers().size()].name;
  data.add_bos = false;
  data.tokens.emplace(spellings.begin(), spellings.end());
  data.types.emplace(spellings.size(), 1);
  data.merges.emplace();
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    const char kind = line.empty() ? '\0' : line.front();
    const std::string_view rest = line.substr(line.empty() ? 0 : 1);
    if (kind >= '0' && kind <= '9') {
      data.types->push_back(kind - '0');
      data.tokens->push_back(rest);
    } else if (kind == 'm') {
      data.merges->push_back(rest);
    } else if (kind == 'b' || kind == 'e' || kind == 'p') {
      (kind == 'b'   ? data.bos
       : kind == 'e' ? data.eos
                     : data.pad) = std::strtoll(std::string(rest).c_str(), nullptr, 10);
    } else {
      text += line;
      text += '\n';
    }
  }
  const GgufTokenizer built = pascaline::build_gguf_tokenizer(data, "fuzz.gguf");
  for (const TokenId id : built.ends) {
    (void)built.tokenizer.bytes(id);
  }
  use(built.tokenizer, text);
}

}  // namespace

/// Any bytes are a tokenizer (in tokenizer.json, or as a GGUF file tells of it) and a chat template, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] == '{') {
      use(Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "fuzz.json"), "a 12\n\xFF'll <|im_end|>");
    } else {
      try_gguf(data[0], rest);
    }
  } catch (const pascaline::Error&) {
  }
  try {
    (void)pascaline::gguf_chat_template(rest, {}, "fuzz.gguf");
  } catch (const pascaline::Error&) {
  }
  return 0;
}
