#include "runtime/checkpoint/weight_recipe.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A file with that text, gone afterwards.
class RecipeFile {
 public:
  explicit RecipeFile(const std::string& text)
      : path_(std::filesystem::path(::testing::TempDir()) / "weight_recipe_test.json") {
    std::ofstream(path_) << text;
  }
  ~RecipeFile() { std::filesystem::remove(path_); }
  RecipeFile(const RecipeFile&) = delete;
  RecipeFile& operator=(const RecipeFile&) = delete;

  [[nodiscard]] WeightRecipe load() const { return WeightRecipe::load(path_); }
  [[nodiscard]] std::string refusal() const {
    return message_of([&] { static_cast<void>(load()); });
  }

 private:
  std::filesystem::path path_;
};

TEST(WeightRecipeTest, PatternsFitNames) {
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("*.weight", "model.norm.weight"));
  EXPECT_TRUE(fits_pattern("*layers.*.down*", "model.layers.17.mlp.down_proj.weight"));
  EXPECT_TRUE(fits_pattern("a**b", "ab"));
  EXPECT_TRUE(fits_pattern("*ab*ab", "abaab"));
  EXPECT_FALSE(fits_pattern("", "a"));
  EXPECT_FALSE(fits_pattern("*.weight", "model.norm.bias"));
  EXPECT_FALSE(fits_pattern("model", "model.norm"));
  EXPECT_FALSE(fits_pattern("a*b", "ac"));
}

TEST(WeightRecipeTest, NamedMixesKeepSomeMatricesFiner) {
  const WeightRecipe recipe = WeightRecipe::named("q4_k");
  EXPECT_EQ(recipe.name(), "q4_k");
  EXPECT_EQ(recipe.of("model.language_model.layers.3.mlp.up_proj.weight"), ElementType::q4_k);
  EXPECT_EQ(recipe.of("model.language_model.embed_tokens.weight"), ElementType::q6_k);
  EXPECT_EQ(recipe.of("lm_head.weight"), ElementType::q6_k);
  EXPECT_EQ(recipe.of("model.visual.blocks.0.attn.qkv.weight"), ElementType::q8_0);
  EXPECT_TRUE(recipe.has_formats());
  EXPECT_FALSE(WeightRecipe::named("float16").has_formats());
  for (const std::string_view name : WeightRecipe::names()) {
    EXPECT_EQ(WeightRecipe::named(name).name(), name);
  }
  EXPECT_NE(message_of([] { static_cast<void>(WeightRecipe::named("q4_kk")); }).find("q4_k"), std::string::npos);
}

TEST(WeightRecipeTest, TheFirstRuleThatFitsDecides) {
  const RecipeFile file(
      R"({"tensors": [{"name": "*layers.1.*", "type": "float16"}, {"name": "*down_proj*", "type": "q6_k"}],
                            "others": "q4_0"})");
  const WeightRecipe recipe = file.load();
  EXPECT_EQ(recipe.of("layers.1.down_proj"), ElementType::float16);
  EXPECT_EQ(recipe.of("layers.2.down_proj"), ElementType::q6_k);
  EXPECT_EQ(recipe.of("layers.2.up_proj"), ElementType::q4_0);
  recipe.require_uses(std::vector<std::string>{"layers.1.up_proj", "layers.2.down_proj"});
  EXPECT_NE(message_of([&] { recipe.require_uses(std::vector<std::string>{"layers.1.up_proj"}); }).find("*down_proj*"),
            std::string::npos);
}

TEST(WeightRecipeTest, FilesThatSayNoTypeAreRefused) {
  EXPECT_NE(RecipeFile(R"({"others": "int32"})").refusal().find("no weight can be kept as 'int32'"), std::string::npos);
  EXPECT_NE(RecipeFile(R"({"others": "bfloat16"})").refusal().find("known are float32, float16, q8_0"),
            std::string::npos);
  EXPECT_NE(RecipeFile(R"({"tensors": []})").refusal().find("others"), std::string::npos);
  EXPECT_NE(RecipeFile(R"({"other": "q4_0", "others": "q4_0"})").refusal().find("other"), std::string::npos);
  EXPECT_NE(RecipeFile(R"({"tensors": [{"name": "*"}], "others": "q4_0"})").refusal().find("type"), std::string::npos);
}

TEST(WeightRecipeTest, TypesThatNoMatrixIsKeptInAreRefused) {
  EXPECT_THROW(WeightRecipe(ElementType::int8), Error);
  EXPECT_THROW(WeightRecipe("mine", {}), Error);
  EXPECT_THROW(WeightRecipe("mine", {{"*.weight", ElementType::q8_0}}), Error) << "nothing for all others";
}

}  // namespace
}  // namespace pascaline::testing
