#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "tests/cli/cli_model_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// `validate` against the float32 model of another folder.
class CliValidateReferenceTest : public CliModelFixture {
 protected:
  std::string original_ = (folder_ / "original").string();
  std::string text_ = (folder_ / "text.txt").string();

  CliValidateReferenceTest() {
    fs::copy(model_, original_);
    write_bytes(
        text_,
        "Call me Ishmael. Some years ago \u2014 never mind how long precisely \u2014 having little or no money "
        "in my purse, and nothing particular to interest me on shore, I thought I would sail about a little.\n");
  }

  // Replaces the model by itself in that format.
  void quantize(const std::string& weights) const {
    fs::remove_all(model_);
    const ProgramResult result =
        run_program(folder_.path(), {"quantize", "--model", original_, "-o", model_, "--weights", weights});
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  [[nodiscard]] ProgramResult against(const std::string& reference, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--reference", reference});
    return on_cpu("validate", more);
  }
  [[nodiscard]] json compare(const std::string& reference, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--text", text_, "--json"});
    const ProgramResult result = against(reference, more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json_of(result);
  }
  // Changes a JSON file of the original.
  void change(const char* file, const std::function<void(json&)>& how) const {
    const fs::path path = fs::path(original_) / file;
    json content = json::parse(read_file(path));
    how(content);
    write_bytes(path, content.dump());
  }
  void change_config(const std::function<void(json&)>& how) const { change("config.json", how); }
};

TEST_F(CliValidateReferenceTest, AQuantizedFolderIsAsFarAsItsOriginalQuantizedAtLoad) {
  for (const char* weights : {"q4_0", "int8"}) {
    quantize(weights);
    const json stored = compare(original_);
    EXPECT_EQ(stored["reference"], original_);
    EXPECT_EQ(stored["weights"], std::string(weights) + " (as stored)");
    const ProgramResult result =
        run_program(folder_.path(), {"validate", "--model", original_, "--device", "cpu", "--weights", weights,
                                     "--context", "256", "--text", text_, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json at_load = json_of(result);
    EXPECT_TRUE(at_load["reference"].is_null());
    EXPECT_GT(at_load["kl_mean"], 0);
    for (const char* key : {"kl_mean", "kl_p99", "top1_agreement", "perplexity", "float32_perplexity", "tokens"}) {
      EXPECT_EQ(stored[key], at_load[key]) << key << " of " << weights;
    }
  }
}

TEST_F(CliValidateReferenceTest, WhatRoundedWeightsCostShowsInFloat32) {
  quantize("q4_0");
  const json weights_alone = compare(original_, {"--weights", "float32"});
  EXPECT_EQ(weights_alone["weights"], "float32");
  EXPECT_NE(weights_alone["perplexity"], weights_alone["float32_perplexity"]);
  EXPECT_GT(weights_alone["kl_mean"], 0);

  const ProgramResult without = on_cpu("validate", {"--text", text_, "--json"});
  ASSERT_EQ(without.exit_code, 0) << without.error;
  EXPECT_NE(without.error.find("is quantized (q4_0), and is compared with its rounded weights; --reference"),
            std::string::npos)
      << without.error;
  EXPECT_EQ(json_of(without)["float32_perplexity"], weights_alone["perplexity"]);
  EXPECT_LT(json_of(without)["kl_mean"], weights_alone["kl_mean"]);
  EXPECT_EQ(against(original_).error, "");
}

TEST_F(CliValidateReferenceTest, AQuantizedReferenceWarns) {
  quantize("q8_0");
  const ProgramResult result = against(model_, {"--weights", "float32", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["kl_mean"], 0);
  EXPECT_NE(result.error.find("model is quantized itself (q8_0)"), std::string::npos) << result.error;
}

TEST_F(CliValidateReferenceTest, TheAnswerSaysWhoseFloat32ItWas) {
  const ProgramResult shown = against(original_, {"--weights", "int8", "--max-kl", "1e-9"});
  EXPECT_EQ(shown.exit_code, 3) << shown.error;
  for (const std::string& part :
       {std::string("weights int8, cache float32\n"), "weights float32 of " + original_ + ", cache float32\n",
        std::string("beyond a mean KL divergence of 1e-09")}) {
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << " in\n" << shown.out;
  }
}

TEST_F(CliValidateReferenceTest, WhatDiffersIsToldInOneLineBeforeWeightsAreRead) {
  remove_weights();
  fs::remove(fs::path(original_) / "model.safetensors");
  const auto refuse = [&](const std::vector<std::string>& parts, const std::function<void(json&)>& how) {
    const std::string before = read_file(fs::path(original_) / "config.json");
    change_config(how);
    const ProgramResult result = against(original_);
    expect_fault(result, 1, parts);
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    write_bytes(fs::path(original_) / "config.json", before);
  };
  const json own = json::parse(read_file(fs::path(model_) / "config.json"));
  const auto layers = own["text_config"]["num_hidden_layers"].get<int>();
  refuse({original_ + "/config.json: ", fmt::format("num_hidden_layers is {}, not {}, ", layers + 1, layers),
          "rope_theta is 77, not ", " as in " + model_, "the same architecture"},
         [&](json& config) {
           config["text_config"]["num_hidden_layers"] = layers + 1;
           config["text_config"]["rope_theta"] = 77;
         });
  const auto vocabulary = own["text_config"]["vocab_size"].get<int>();
  refuse({fmt::format("vocab_size is {}, not {} as in ", vocabulary + 8, vocabulary)},
         [&](json& config) { config["text_config"]["vocab_size"] = vocabulary + 8; });
  const auto inner = own["vision_config"]["intermediate_size"].get<int>();
  refuse({fmt::format("its intermediate_size is {}, not {} as in ", 2 * inner, inner)},
         [&](json& config) { config["vision_config"]["intermediate_size"] = 2 * inner; });
  expect_fault(against(original_), 1, {original_, "there is neither model.safetensors nor"});
}

TEST_F(CliValidateReferenceTest, AnotherFamilyIsRefused) {
  fs::remove_all(original_);
  fs::create_directory(original_);
  write_text_model_folder(original_);
  const ProgramResult result = against(original_);
  expect_fault(result, 1, {"model_type is qwen3, not qwen3_vl as in " + model_});
  EXPECT_EQ(result.error.find("hidden_size"), std::string::npos) << "the rest is of no interest: " << result.error;
}

TEST_F(CliValidateReferenceTest, AnotherVocabularyIsRefused) {
  change("tokenizer.json",
         [](json& tokenizer) { std::swap(tokenizer["model"]["vocab"]["!"], tokenizer["model"]["vocab"]["#"]); });
  const ProgramResult result = against(original_);
  expect_fault(result, 1, {original_ + "/tokenizer.json: token 0 is '#', not '!' as in " + model_, "same vocabulary"});
  fs::remove(fs::path(original_) / "tokenizer.json");
  EXPECT_EQ(compare(original_)["kl_mean"], 0) << "sizes are all that can be compared";
}

TEST_F(CliValidateReferenceTest, WindowsFitBothContexts) {
  change_config([](json& config) { config["text_config"]["max_position_embeddings"] = 24; });
  const auto run_without_context = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"validate",    "--model", model_,   "--device", "cpu",
                                   "--reference", original_, "--text", text_,      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(folder_.path(), words);
  };
  const ProgramResult usual = run_without_context({});
  ASSERT_EQ(usual.exit_code, 0) << usual.error;
  EXPECT_EQ(json_of(usual)["window"], 24);
  expect_fault(run_without_context({"--window", "25"}), 1, {"windows of 25 tokens exceed the context of 24"});
}

TEST_F(CliValidateReferenceTest, OptionsThatDoNotGoWithIt) {
  expect_fault(against(original_, {"--tolerance", "1"}), 2, {"--tolerance", "recorded logits"});
  expect_fault(against(original_, {"--random-weights"}), 2, {"--random-weights", "--reference"});
  for (const char* option : {"--window", "--max-kl"}) {
    expect_fault(against("none", {option, "1"}), 2, {"--reference", "none is no folder", option});
  }
  expect_fault(against("none", {"--float32-device", "cpu"}), 2, {"none is no folder", "--float32-device"});
  expect_fault(against("none"), 1, {"none", "No such file"});
  fs::create_directory(folder_ / "empty");
  expect_fault(against((folder_ / "empty").string()), 1, {"empty/config.json", "lacks this file"});
}

}  // namespace
}  // namespace pascaline::testing
