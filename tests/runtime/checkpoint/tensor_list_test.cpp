#include "runtime/checkpoint/tensor_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "runtime/checkpoint/tensor_names.hpp"
#include "tests/runtime/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::config_of;

struct Counts {
  const char* config;
  std::size_t tensors;
  std::int64_t parameters;
};

TEST(TensorListTest, CountsAreThoseOfTheModels) {
  const std::array<Counts, 5> models{{{"qwen3_vl_2b", 625, 2'127'532'032},
                                      {"qwen3_vl_4b", 713, 4'437'815'808},
                                      {"qwen3_vl_8b", 750, 8'767'123'696},
                                      {"tiny_a", 63, 177'440},
                                      {"tiny_b", 92, 4'279'552}}};
  for (const Counts& model : models) {
    const ModelConfig config = config_of(model.config);
    const std::vector<TensorSpec> tensors = required_tensors(config);
    EXPECT_EQ(tensors.size(), model.tensors) << model.config;
    EXPECT_EQ(parameter_count(config), model.parameters) << model.config;
    std::set<std::string> names;
    for (const TensorSpec& tensor : tensors) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      EXPECT_EQ(official_tensor_name(tensor.name), tensor.name);
    }
  }
}

TEST(TensorListTest, ShapesFollowTheConfiguration) {
  const auto shape_of = [tensors = required_tensors(config_of("tiny_b"))](const std::string& name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const TensorSpec& tensor) { return tensor.name == name; });
    return found == tensors.end() ? std::vector<std::int64_t>{-1} : found->shape;
  };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape_of("model.language_model.layers.2.self_attn.q_proj.weight"), (Shape{512, 256}));
  EXPECT_EQ(shape_of("model.language_model.layers.2.self_attn.k_proj.weight"), (Shape{256, 256}));
  EXPECT_EQ(shape_of("model.language_model.layers.0.self_attn.o_proj.weight"), (Shape{256, 512}));
  EXPECT_EQ(shape_of("model.language_model.layers.0.self_attn.k_norm.weight"), (Shape{128}));
  EXPECT_EQ(shape_of("model.visual.patch_embed.proj.weight"), (Shape{128, 3, 2, 16, 16}));
  EXPECT_EQ(shape_of("model.visual.merger.norm.weight"), (Shape{128}));
  EXPECT_EQ(shape_of("model.visual.deepstack_merger_list.1.norm.bias"), (Shape{512}));
  EXPECT_EQ(shape_of("model.visual.deepstack_merger_list.1.linear_fc2.weight"), (Shape{256, 512}));
  EXPECT_EQ(shape_of("model.visual.deepstack_merger_list.2.norm.bias"), (Shape{-1}));
  EXPECT_EQ(shape_of("lm_head.weight"), (Shape{-1}));
}

TEST(TensorListTest, AnUntiedModelHasAHead) {
  ModelConfig config = config_of("tiny_a");
  config.text.tied = false;
  const std::vector<TensorSpec> tensors = required_tensors(config);
  ASSERT_EQ(tensors.size(), 64U);
  EXPECT_EQ(tensors.back(), (TensorSpec{"lm_head.weight", {512, 64}}));
  EXPECT_EQ(parameter_count(config), 177'440 + 512 * 64);
}

TEST(TensorListTest, ElementCountsDoNotOverflow) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{3, 5}), 15);
  EXPECT_EQ(element_count(Shape{3, 0, 5}), 0);
  EXPECT_EQ(element_count(Shape{std::numeric_limits<std::int64_t>::max()}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(element_count(Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}), -1);
  EXPECT_EQ(element_count(Shape{0, -1}), -1);
  EXPECT_EQ(element_count(Shape{-2, -2}), -1);
}

TEST(TensorNamesTest, SchemesBecomeTheOfficialOne) {
  const std::array<std::pair<const char*, const char*>, 16> names{
      {{"model.language_model.layers.0.mlp.up_proj.weight", "model.language_model.layers.0.mlp.up_proj.weight"},
       {"language_model.layers.0.mlp.up_proj.weight", "model.language_model.layers.0.mlp.up_proj.weight"},
       {"language_model.model.layers.0.mlp.up_proj.weight", "model.language_model.layers.0.mlp.up_proj.weight"},
       {"model.layers.0.mlp.up_proj.weight", "model.language_model.layers.0.mlp.up_proj.weight"},
       {"model.embed_tokens.weight", "model.language_model.embed_tokens.weight"},
       {"language_model.model.embed_tokens.weight", "model.language_model.embed_tokens.weight"},
       {"model.norm.weight", "model.language_model.norm.weight"},
       {"language_model.model.norm.weight", "model.language_model.norm.weight"},
       {"model.visual.pos_embed.weight", "model.visual.pos_embed.weight"},
       {"visual.pos_embed.weight", "model.visual.pos_embed.weight"},
       {"vision_tower.pos_embed.weight", "model.visual.pos_embed.weight"},
       {"lm_head.weight", "lm_head.weight"},
       {"language_model.lm_head.weight", "lm_head.weight"},
       {"transformer.h.0.weight", "transformer.h.0.weight"},
       {"", ""},
       {"model.", "model."}}};
  for (const auto& [stored, official] : names) {
    EXPECT_EQ(official_tensor_name(stored), official);
  }
}

TEST(TensorNamesTest, QuantisationIsKnownByItsTensors) {
  for (const char* name :
       {"model.layers.0.mlp.up_proj.weight_scale", "model.layers.0.mlp.up_proj.weight_scale_inv",
        "language_model.model.layers.0.mlp.up_proj.scales", "language_model.model.layers.0.mlp.up_proj.biases",
        "model.layers.0.mlp.up_proj.qweight", "model.layers.0.mlp.up_proj.weight.absmax",
        "model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4"}) {
    EXPECT_TRUE(is_quantisation_tensor(name)) << name;
  }
  for (const TensorSpec& tensor : required_tensors(config_of("tiny_a"))) {
    EXPECT_FALSE(is_quantisation_tensor(tensor.name)) << tensor.name;
  }
}

}  // namespace
}  // namespace pascaline
