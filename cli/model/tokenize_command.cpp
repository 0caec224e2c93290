#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "model/checkpoint/model_location.hpp"
#include "model/session/gguf_text.hpp"
#include "model/text/tokenizer.hpp"

namespace pascaline::cli {
namespace {

constexpr const char* kInput = "standard input";

struct TokenizeOptions {
  std::string model;
  bool as_json = false;
  bool as_text = false;

  [[nodiscard]] AddedTokens added() const { return as_text ? AddedTokens::ignore : AddedTokens::match; }
};

void check_input() {
  if (std::cin.bad()) {
    throw Error("cannot read standard input");
  }
}

// A tokenizer, and what texts begin with.
struct TextEncoder {
  Tokenizer tokenizer;
  std::optional<TokenId> beginning;
  AddedTokens added;

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const {
    std::vector<TokenId> tokens = tokenizer.encode(text, added);
    if (beginning && (tokens.empty() || tokens.front() != *beginning)) {
      tokens.insert(tokens.begin(), *beginning);
    }
    return tokens;
  }
};

TextEncoder load_encoder(const std::filesystem::path& model, AddedTokens added) {
  if (!is_gguf_path(model)) {
    Tokenizer tokenizer = Tokenizer::load(model / "tokenizer.json");
    const std::optional<TokenId> beginning = tokenizer.beginning();
    return {std::move(tokenizer), beginning, added};
  }
  GgufTokenizer text = load_gguf_tokenizer(GgufFile::open(model).metadata());
  return {std::move(text.tokenizer), text.adds_bos ? text.bos : std::nullopt, added};
}

void tokenize_lines(const TextEncoder& encoder) {
  for (std::string line; std::getline(std::cin, line);) {
    fmt::print("{}\n", fmt::join(encoder.encode(line), " "));
  }
  check_input();
}

void tokenize_json(const TextEncoder& encoder) {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  check_input();
  const std::string name = kInput;
  const nlohmann::json document = parse_json(input, name);
  const JsonNode texts(document, name);
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t i = 0; i < texts.array_size(); ++i) {
    out.push_back(encoder.encode(texts.at(i).text()));
  }
  fmt::print("{}\n", out.dump());
}

int tokenize(const TokenizeOptions& options) {
  const TextEncoder encoder = load_encoder(ModelLocation(options.model).path, options.added());
  if (options.as_json) {
    tokenize_json(encoder);
  } else {
    tokenize_lines(encoder);
  }
  return kSuccess;
}

void add_tokenize_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into a model's token ids");
  const auto options = std::make_shared<TokenizeOptions>();
  command
      ->add_option("-m,--model", options->model, "Folder of the model, which holds its tokenizer.json, or a GGUF file")
      ->required();
  command->add_flag("--as-text", options->as_text, "Added tokens such as <|im_end|> are text like any other");
  command->add_flag("--json", options->as_json, "Read a JSON list of texts, print a JSON list of lists of ids");
  command->footer(
      "Reads standard input: each line is a text, and becomes a line of ids, which begin with the token of beginning\n"
      "where the model's texts do.\n\nExamples:\n"
      "  echo 'Hello world' | pascaline tokenize --model Qwen3-VL-2B-Instruct\n"
      "  echo '[\"two\\nlines\"]' | pascaline tokenize --model Qwen3-VL-2B-Instruct --json");
  command->callback([&action, options] { action = [options] { return tokenize(*options); }; });
}

const Command kTokenizeCommand(Heading::models, 9, add_tokenize_command);

}  // namespace

}  // namespace pascaline::cli
