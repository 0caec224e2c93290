#include "model/checkpoint/weight_recipe.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

constexpr const char* kRecipeEmbedding = "model.language_model.embed_tokens.weight";
constexpr const char* kRecipeQuery = "model.language_model.layers.0.self_attn.q_proj.weight";
constexpr const char* kRecipeVision = "model.visual.blocks.1.attn.qkv.weight";
constexpr const char* kRecipeMerger = "model.visual.merger.linear_fc1.weight";

class WeightRecipeTest : public ::testing::Test {
 protected:
  WeightRecipe loaded(const std::string& text) {
    folder_.write("recipe.json", text);
    return WeightRecipe::load(folder_.path() / "recipe.json");
  }
  std::string refusal(const std::string& text) {
    try {
      (void)loaded(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  // What is said of a recipe's use for a model.
  static std::string misfit(const WeightRecipe& recipe) {
    try {
      ModelWeights unused;
      const std::vector<WeightEntry> table = weight_table(testing::config_of("tiny_a"), unused);
      recipe.require_uses(table);
      for (const WeightEntry& entry : table) {
        (void)recipe.of(entry);
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "fits";
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(WeightRecipeTest, PatternsHaveAnyLettersForAStar) {
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("*", kRecipeQuery));
  EXPECT_TRUE(fits_pattern("a*b*c", "abc"));
  EXPECT_TRUE(fits_pattern("a*b*c", "a-b-b-c-c"));
  EXPECT_TRUE(fits_pattern("*.layers.0.*", kRecipeQuery));
  EXPECT_TRUE(fits_pattern("**q_proj**", kRecipeQuery));
  EXPECT_FALSE(fits_pattern("", "a"));
  EXPECT_FALSE(fits_pattern("a", "ab"));
  EXPECT_FALSE(fits_pattern("a*b", "a-b-"));
  EXPECT_FALSE(fits_pattern("*.layers.1.*", "model.layers.10.weight"));
  EXPECT_FALSE(fits_pattern("q_proj", kRecipeQuery));
  EXPECT_FALSE(fits_pattern("*?", "a"));
}

TEST_F(WeightRecipeTest, TheFirstRuleThatFitsDecides) {
  const WeightRecipe recipe = loaded(R"({"tensors": [
    {"name": "*embed_tokens.weight", "type": "q6_k"},
    {"name": "*.merger.*", "type": "float16"},
    {"name": "*visual*", "type": "q8_0"},
    {"name": "*.merger.linear_fc1.weight", "type": "q4_0"}], "others": "int4_g128"})");
  EXPECT_EQ(recipe.of(kRecipeEmbedding), ElementType::q6_k);
  EXPECT_EQ(recipe.of(kRecipeMerger), ElementType::float16);
  EXPECT_EQ(recipe.of(kRecipeVision), ElementType::q8_0);
  EXPECT_EQ(recipe.of(kRecipeQuery), ElementType::int4_g128);
  EXPECT_TRUE(recipe.has_packed_formats());
  EXPECT_EQ(recipe.rules().size(), 5U);
  EXPECT_EQ(misfit(recipe), "fits");
}

TEST_F(WeightRecipeTest, NamesAreMixes) {
  const WeightRecipe recipe = WeightRecipe::named("q4_k");
  EXPECT_EQ(recipe.of(kRecipeQuery), ElementType::q4_k);
  EXPECT_EQ(recipe.of(kRecipeEmbedding), ElementType::q6_k);
  EXPECT_EQ(recipe.of("lm_head.weight"), ElementType::q6_k);
  EXPECT_EQ(recipe.of(kRecipeVision), ElementType::q8_0);
  EXPECT_EQ(WeightRecipe::named("int8").of(kRecipeQuery), ElementType::int8_row);
  for (const std::string_view name : WeightRecipe::names()) {
    EXPECT_EQ(misfit(WeightRecipe::named(name)), "fits") << name;
  }
  EXPECT_FALSE(WeightRecipe::named("float16").has_packed_formats());
  EXPECT_EQ(WeightRecipe::named("float16"), WeightRecipe(ElementType::float16));
  EXPECT_THROW((void)WeightRecipe::named("q4"), Error);
  EXPECT_THROW((void)WeightRecipe(ElementType::int32), Error);
  EXPECT_THROW((void)WeightRecipe("mine", {{"a", ElementType::q8_0}}), Error);
}

TEST_F(WeightRecipeTest, FaultsAreNamedWithTheirPlace) {
  const std::string file = (folder_.path() / "recipe.json").string();
  PASCALINE_EXPECT_SAYS(refusal("{"), file);
  PASCALINE_EXPECT_SAYS(refusal("{}"), "'others'");
  PASCALINE_EXPECT_SAYS(refusal(R"({"others": "q8_0", "other": 1})"), "'other'");
  PASCALINE_EXPECT_SAYS(refusal(R"({"tensors": {}, "others": "q8_0"})"), file + ":/tensors");
  PASCALINE_EXPECT_SAYS(refusal(R"({"tensors": [{"name": "a"}], "others": "q8_0"})"), "'type'");
  PASCALINE_EXPECT_SAYS(refusal(R"({"tensors": [{"name": "a", "type": "q8_0", "x": 1}], "others": "q8_0"})"), "'x'");
  PASCALINE_EXPECT_SAYS(refusal(R"({"others": "q4k"})"),
                        file + ":/others: no weight can be kept as 'q4k' (did you mean 'q4_k'?); known are float32");
  PASCALINE_EXPECT_SAYS(refusal(R"({"others": "int8"})"), "no weight can be kept as 'int8' (did you mean 'int8_row'?)");
  PASCALINE_EXPECT_SAYS(refusal(R"({"others": "bfloat16"})"), "no weight can be kept as 'bfloat16'");
}

TEST_F(WeightRecipeTest, APatternThatFitsNoMatrixIsRefused) {
  const WeightRecipe recipe = loaded(R"({"tensors": [{"name": "layers.0.*", "type": "q8_0"}], "others": "float16"})");
  PASCALINE_EXPECT_SAYS(misfit(recipe),
                        "'layers.0.*' fits no matrix of this model, which has e.g. model.language_model");
  const WeightRecipe norm = loaded(R"({"tensors": [{"name": "*norm.weight", "type": "q8_0"}], "others": "float16"})");
  PASCALINE_EXPECT_SAYS(misfit(norm), "'*norm.weight' fits no matrix");
}

TEST_F(WeightRecipeTest, APatternThatDecidesNothingIsHidden) {
  ModelWeights unused;
  std::vector<TensorSpec> tensors;
  for (const WeightEntry& entry : weight_table(testing::config_of("qwen3_vl_2b"), unused)) {
    tensors.insert(tensors.end(), entry.tensors.begin(), entry.tensors.end());
  }
  const WeightRecipe hidden = loaded(R"({"tensors": [{"name": "*visual*", "type": "q8_0"},
    {"name": "*visual.blocks*", "type": "float16"}, {"name": "*embed*", "type": "q8_0"}], "others": "q4_0"})");
  EXPECT_EQ(hidden.hidden_patterns(tensors), (std::vector<std::string>{"*visual.blocks*"}));
  const WeightRecipe narrower_first = loaded(R"({"tensors": [{"name": "*visual.blocks*", "type": "float16"},
    {"name": "*visual*", "type": "q8_0"}], "others": "q4_0"})");
  EXPECT_TRUE(narrower_first.hidden_patterns(tensors).empty());
  EXPECT_TRUE(WeightRecipe::named("q4_k").hidden_patterns(tensors).empty());
}

TEST_F(WeightRecipeTest, TheDocumentedOneFitsTheModelThatItIsFor) {
  const std::string page = read_file(PASCALINE_CHECKPOINT_DATA "/../../../../docs/guides/fewer_bits.md");
  const std::size_t begin = page.find("{\n  \"tensors\"");
  ASSERT_NE(begin, std::string::npos);
  const WeightRecipe recipe = loaded(page.substr(begin, page.find("```", begin) - begin));
  ModelWeights unused;
  const std::vector<WeightEntry> table = weight_table(testing::config_of("qwen3_vl_2b"), unused);
  EXPECT_NO_THROW(recipe.require_uses(table));
  for (const WeightEntry& entry : table) {
    EXPECT_NO_THROW((void)recipe.of(entry)) << entry.tensors.front().name;
  }
  EXPECT_EQ(recipe.of(kRecipeMerger), ElementType::float16);
}

TEST_F(WeightRecipeTest, TensorsWhoseRowsTakeTurnsNeedOneType) {
  const WeightRecipe gate =
      loaded(R"({"tensors": [{"name": "*.1.*gate_proj.weight", "type": "q8_0"}], "others": "q4_k"})");
  PASCALINE_EXPECT_SAYS(misfit(gate),
                        "layers.1.mlp.up_proj.weight are one matrix here and need one type, not q8_0 and q4_k");
}

TEST_F(WeightRecipeTest, StackedTensorsAreAWeightForEachRunOfOneType) {
  const ModelConfig config = testing::config_of("tiny_a");
  const auto runs = [&](const char* rules) {
    ModelWeights places;
    const WeightRecipe recipe = loaded(rules);
    std::vector<std::size_t> tensors;
    std::size_t names = 0;
    for (const WeightEntry& entry : weight_table(config, places, recipe)) {
      names += entry.tensors.size();
      if (entry.tensors.front().name.find("layers.0.self_attn") != std::string::npos &&
          entry.tensors.front().name.find("_proj") != std::string::npos) {
        EXPECT_NO_THROW((void)recipe.of(entry));
        if (entry.tensors.front().name.find("o_proj") == std::string::npos) {
          EXPECT_EQ(entry.place, &places.text.layers[0].qkv.parts.at(tensors.size()));
          tensors.push_back(entry.tensors.size());
        }
      }
    }
    EXPECT_EQ(names, required_tensors(config).size());
    return tensors;
  };
  using Runs = std::vector<std::size_t>;
  EXPECT_EQ(runs(R"({"others": "q4_k"})"), Runs({3}));
  EXPECT_EQ(runs(R"({"tensors": [{"name": "*.v_proj.weight", "type": "q6_k"}], "others": "q4_k"})"), Runs({2, 1}));
  EXPECT_EQ(runs(R"({"tensors": [{"name": "*.q_proj.weight", "type": "q6_k"}], "others": "q4_k"})"), Runs({1, 2}));
  EXPECT_EQ(runs(R"({"tensors": [{"name": "*.k_proj.weight", "type": "q6_k"}], "others": "q4_k"})"), Runs({1, 1, 1}));
}

}  // namespace
}  // namespace pascaline
