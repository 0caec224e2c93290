#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/logit_divergence.hpp"
#include "model/session/session.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

/// `validate` against the model in float32.
class CliValidateTest : public CliModelFixture {
 protected:
  [[nodiscard]] std::string write_text(const std::string& text) const {
    write_bytes(folder_ / "text.txt", text);
    return (folder_ / "text.txt").string();
  }
  [[nodiscard]] json compare(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const ProgramResult result = on_cpu("validate", more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json_of(result);
  }
  [[nodiscard]] std::vector<TokenId> tokens_of(const std::string& text) const {
    return Tokenizer::load(std::filesystem::path(model_) / "tokenizer.json").encode(text, AddedTokens::ignore);
  }
  // Sets one value of a token's embedding, which is also its row of the output layer: with a very large one the token's
  // logit overflows where that value of the last hidden state is above a little.
  void enlarge_embedding(TokenId token, std::size_t index, float value) const {
    const std::filesystem::path file = std::filesystem::path(model_) / "model.safetensors";
    std::string bytes = read_file(file);
    const SafetensorsContent content = parse_safetensors(std::as_bytes(std::span(bytes)), file.string());
    const auto found = std::find_if(content.tensors.begin(), content.tensors.end(), [](const StoredTensor& tensor) {
      return tensor.name.ends_with("embed_tokens.weight");
    });
    ASSERT_NE(found, content.tensors.end());
    const auto columns = static_cast<std::size_t>(found->shape[1]);
    const auto begin = static_cast<std::size_t>(found->bytes.data() - std::as_bytes(std::span(bytes)).data());
    std::memcpy(bytes.data() + begin + (static_cast<std::size_t>(token) * columns + index) * sizeof(float), &value,
                sizeof value);
    write_bytes(file, bytes);
  }
  // Number of the first token whose logits are not finite, in windows of that length; 0 if there is none.
  [[nodiscard]] std::size_t first_not_finite(const std::vector<TokenId>& tokens, std::size_t window) const {
    ModelSession session(float32_options());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i % window == 0) {
        session.model().clear();
      }
      session.model().append({std::span(&tokens[i], 1), {}});
      const std::vector<float> logits = session.model().logits();
      if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
        return i + 1;
      }
    }
    return 0;
  }
  [[nodiscard]] ModelSessionOptions float32_options() const {
    ModelSessionOptions options;
    options.model = model_;
    options.device = "cpu";
    options.options.weights = options.options.cache = ElementType::float32;
    return options;
  }
};

const std::string kText =
    "It was a bright cold day in April, and the clocks were striking thirteen.\n"
    "<|im_start|> is text here; so are \u00fcml\u00e4uts.\n";

TEST_F(CliValidateTest, Float32IsWhatItIs) {
  const json same = compare({"--text", write_text(kText), "--window", "16"});
  EXPECT_EQ(same["kl_mean"], 0);
  EXPECT_EQ(same["kl_p99"], 0);
  EXPECT_EQ(same["top1_agreement"], 1);
  EXPECT_EQ(same["perplexity_ratio"], 1);
  EXPECT_EQ(same["weights"], "float32");
  EXPECT_EQ(same["window"], 16);
  const std::size_t tokens = tokens_of(kText).size();
  EXPECT_EQ(same["tokens"], tokens);
  EXPECT_EQ(same["predicted_tokens"], tokens - 1);
}

TEST_F(CliValidateTest, NarrowerTypesAreALittleFurtherAway) {
  const std::string file = write_text(kText);
  const json half = compare({"--text", file, "--weights", "float16", "--kv-cache", "float16"});
  const json int8 = compare({"--text", file, "--weights", "int8"});
  EXPECT_EQ(int8["weights"], "int8");
  EXPECT_EQ(int8["kv_cache"], "float32");
  EXPECT_EQ(half["kv_cache"], "float16");
  EXPECT_GT(half["kl_mean"], 0);
  EXPECT_GT(int8["kl_mean"], half["kl_mean"]);
  EXPECT_LT(int8["kl_mean"], 0.01);
  EXPECT_GT(int8["kl_p99"], int8["kl_mean"]);
  EXPECT_EQ(int8["float32_perplexity"], half["float32_perplexity"]);
  EXPECT_DOUBLE_EQ(int8["perplexity_ratio"].get<double>(),
                   int8["perplexity"].get<double>() / int8["float32_perplexity"].get<double>());
  EXPECT_NEAR(int8["perplexity_ratio"], 1, 0.05);
}

// The float32 model still attends to all; the fewer a token sees, the further away.
TEST_F(CliValidateTest, AttentionToSomeOfTheTokensIsToldByItsDistance) {
  const std::string file = write_text(kText);
  const json wide = compare({"--text", file, "--window", "40", "--attention", "window=30,sinks=2"});
  const json narrow = compare({"--text", file, "--window", "40", "--attention", "window=4,sinks=2"});
  const json blocks = compare({"--text", file, "--window", "40", "--attention", "topk=50%,block=16"});
  EXPECT_EQ(wide["attention"], "window=30,sinks=2");
  EXPECT_GT(wide["kl_mean"], 0);
  EXPECT_GT(narrow["kl_mean"], wide["kl_mean"]);
  EXPECT_EQ(blocks["attention"], "topk=50%,block=16");
  EXPECT_GT(blocks["kl_mean"], 0);
  EXPECT_EQ(wide["float32_perplexity"], blocks["float32_perplexity"]);

  const ProgramResult short_windows =
      on_cpu("validate", {"--text", file, "--window", "32", "--attention", "window=30,sinks=2"});
  EXPECT_EQ(short_windows.exit_code, 1);
  EXPECT_EQ(short_windows.error,
            "pascaline: --attention window=30,sinks=2 leaves nothing out of windows of 32 tokens, only of 33 or more: "
            "give a larger --window, or a mask that leaves out more\n");
  // A window that the text does not fill.
  const ProgramResult short_text = on_cpu(
      "validate", {"--text", file, "--tokens", "20", "--window", "40", "--attention", "window=30", "--max-kl", "0"});
  EXPECT_EQ(short_text.exit_code, 1);
  EXPECT_EQ(short_text.error,
            "pascaline: --attention window=30 leaves nothing out of windows of 20 tokens, only of 31 or more: give a "
            "longer --text, or more of it with --tokens, or a mask that leaves out more\n");
  const ProgramResult short_context = on_cpu("generate", {"--prompt", "a", "--attention", "window=256"});
  EXPECT_EQ(short_context.exit_code, 1);
  EXPECT_NE(short_context.error.find("it leaves nothing out of a context of 256 tokens, only of 257 or more"),
            std::string::npos)
      << short_context.error;
  const ProgramResult no_window = on_cpu("generate", {"--prompt", "a", "--attention", "window=0"});
  EXPECT_EQ(no_window.exit_code, 2);
  EXPECT_NE(no_window.error.find("window is 0; give 1 or more"), std::string::npos) << no_window.error;
}

// The same windows through the library.
TEST_F(CliValidateTest, PerplexityIsThatOfTheNextTokens) {
  constexpr std::size_t kTokens = 20;
  constexpr std::size_t kWindow = 8;
  const json result =
      compare({"--text", write_text(kText), "--tokens", std::to_string(kTokens), "--window", std::to_string(kWindow)});
  ModelSession session(float32_options());
  const std::vector<TokenId> tokens = tokens_of(kText);
  double loss = 0;
  for (std::size_t i = 0; i + 1 < kTokens; ++i) {
    if (i % kWindow == 0) {
      session.model().clear();
    }
    session.model().append({std::span(&tokens[i], 1), {}});
    const std::vector<float> logits = session.model().logits();
    loss += log_sum_exp(logits) - logits[static_cast<std::size_t>(tokens[i + 1])];
  }
  EXPECT_EQ(result["tokens"], kTokens);
  EXPECT_NEAR(result["float32_perplexity"].get<double>() / std::exp(loss / (kTokens - 1)), 1, 1e-5);
}

TEST_F(CliValidateTest, WithoutATextBuiltInOnesAreTaken) {
  const json int8 = compare({"--weights", "int8"});
  EXPECT_GT(int8["tokens"], 300);
  EXPECT_EQ(int8["window"], 256) << "the context";
  EXPECT_TRUE(int8["text"].is_null());
  EXPECT_FALSE(int8.contains("perplexity"));
  EXPECT_GT(int8["kl_mean"], 0);
  const ProgramResult shown = on_cpu("validate", {"--weights", "int8"});
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  for (const char* part : {"weights int8, cache float32", "6 built-in texts; ", "99th percentile ", " % the same"}) {
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << " in\n" << shown.out;
  }
}

TEST_F(CliValidateTest, TheFloat32ModelMayRunElsewhere) {
  const json result = compare({"--text", write_text("so"), "--float32-device", "emulator"});
  EXPECT_NE(result["float32_device"], result["device"]);
  EXPECT_LT(result["kl_mean"], 1e-9);
}

TEST_F(CliValidateTest, AFloat32ModelThatDoesNotFitMayRunElsewhere) {
  std::vector<std::string> words{"--text", write_text(kText), "--weights", "int8", "--memory-limit", "1.1MiB"};
  expect_fault(on_cpu("validate", words), 1, {"the float32 model needs", "--float32-device"});
  words.insert(words.end(), {"--float32-device", "cpu"});
  EXPECT_GT(compare(words)["kl_mean"], 0);
}

TEST_F(CliValidateTest, TooLargeADivergenceIsANegativeAnswer) {
  const std::string file = write_text(kText);
  EXPECT_EQ(compare({"--text", file, "--weights", "int8", "--max-kl", "1"})["within_max_kl"], true);
  const ProgramResult result = on_cpu("validate", {"--text", file, "--weights", "int8", "--max-kl", "1e-9"});
  EXPECT_EQ(result.exit_code, 3) << result.error;
  EXPECT_NE(result.out.find("beyond a mean KL divergence of 1e-09"), std::string::npos) << result.out;
}

TEST_F(CliValidateTest, WhatCannotBeComparedIsToldBeforeTheWeightsAreRead) {
  remove_weights();
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_fault(on_cpu("validate", {"--text", write_text(text)}), 1, parts);
  };
  refuse("", {"text.txt is empty"});
  refuse("a", {"text.txt has only one token"});
  refuse("fine\nnot \xC3\x28 fine", {"text.txt: byte 10 is not UTF-8 (line 2)"});
  refuse("cut \xE2\x82", {"text.txt: byte 5 is not UTF-8 (line 1)"});
  const std::string file = write_text(kText);
  expect_fault(on_cpu("validate", {"--text", "none.txt"}), 1, {"none.txt", "No such file"});
  expect_fault(on_cpu("validate", {"--text", folder_.path().string()}), 1, {"Is a directory"});
  expect_fault(on_cpu("validate", {"--text", file, "--window", "257"}), 1,
               {"windows of 257 tokens exceed the context of 256", "--window", "--context"});
  expect_fault(on_cpu("validate", {"--float32-device", "gpu"}), 2, {"'gpu' is not a device"});
  expect_fault(on_cpu("validate", {"--text", file}), 1, {"model.safetensors"});
  std::filesystem::remove(std::filesystem::path(model_) / "tokenizer.json");
  expect_fault(on_cpu("validate", {"--text", file}), 1, {"tokenizer.json"});
}

TEST_F(CliValidateTest, OptionsThatDoNotGoTogether) {
  expect_fault(on_cpu("validate", {"--reference", "r", "--text", "t"}), 2, {"--reference", "--text"});
  expect_fault(on_cpu("validate", {"--tolerance", "1"}), 2, {"--tolerance", "--reference"});
  expect_fault(on_cpu("validate", {"--tokens", "5"}), 2, {"--tokens", "--text"});
  expect_fault(on_cpu("validate", {"--text", "t", "--tokens", "1"}), 2, {"--tokens", "at least 2"});
  expect_fault(on_cpu("validate", {"--window", "0"}), 2, {"--window"});
}

TEST_F(CliValidateTest, LogitsThatAreNotFiniteAreToldWithTheirToken) {
  constexpr TokenId kToken = 700;
  enlarge_embedding(kToken, 9, 2e38F);
  const std::size_t first = first_not_finite(tokens_of(kText), 4);
  ASSERT_GT(first, 4) << "not in the first window";
  expect_fault(on_cpu("validate", {"--text", write_text(kText), "--window", "4"}), 1,
               {"the model: after token " + std::to_string(first) + ", logit 700 is ", "the weights are damaged"});
}

TEST_F(CliValidateTest, AFullDiskIsToldAndNothingIsLeftBehind) {
  const std::filesystem::path temporary = folder_ / "temporary";
  std::filesystem::create_directory(temporary);
  const auto validate = [&](ProgramSetting setting, const std::filesystem::path& folder) {
    setting.environment = {{"TMPDIR", folder.string()}};
    return run_program(folder_.path(),
                       {"validate", "--model", model_, "--device", "cpu", "--text", write_text(kText), "--json"},
                       setting);
  };
  EXPECT_EQ(validate({}, temporary).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  ProgramSetting full;
  full.file_size_limit = 20'000;
  expect_fault(validate(full, temporary), 1, {temporary.string(), "MiB of logits", "TMPDIR", "--tokens"});
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  expect_fault(validate({}, folder_ / "none"), 1, {(folder_ / "none").string(), "No such file", "TMPDIR"});
}

}  // namespace
}  // namespace pascaline::testing
