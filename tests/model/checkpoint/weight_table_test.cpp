#include "model/checkpoint/weight_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "model/checkpoint/tensor_names.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::config_of;

struct Counts {
  const char* config;
  std::size_t tensors;
  std::int64_t parameters;
};

TEST(WeightTableTest, CountsAreThoseOfTheModels) {
  const std::array<Counts, 7> models{{{"qwen3_vl_2b", 625, 2'127'532'032},
                                      {"qwen3_vl_4b", 713, 4'437'815'808},
                                      {"qwen3_vl_8b", 750, 8'767'123'696},
                                      {"tiny_a", 63, 177'440},
                                      {"tiny_b", 92, 4'279'552},
                                      {"qwen3_0.6b", 310, 596'049'920},
                                      {"qwen3_1.7b", 310, 1'720'574'976}}};
  for (const Counts& model : models) {
    const ModelConfig config = config_of(model.config);
    const std::vector<TensorSpec> tensors = required_tensors(config);
    EXPECT_EQ(tensors.size(), model.tensors) << model.config;
    EXPECT_EQ(parameter_count(config), model.parameters) << model.config;
    std::set<std::string> names;
    for (const TensorSpec& tensor : tensors) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      EXPECT_EQ(official_tensor_name(tensor.name, config.family), tensor.name);
    }
  }
}

TEST(WeightTableTest, ShapesFollowTheConfiguration) {
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

TEST(WeightTableTest, AnUntiedModelHasAHead) {
  ModelConfig config = config_of("tiny_a");
  config.text.tied = false;
  const std::vector<TensorSpec> tensors = required_tensors(config);
  ASSERT_EQ(tensors.size(), 64U);
  EXPECT_EQ(tensors.back(), (TensorSpec{"lm_head.weight", {512, 64}}));
  EXPECT_EQ(parameter_count(config), 177'440 + 512 * 64);
}

TEST(WeightTableTest, ATextOnlyModelHasTheDecoderAlone) {
  ModelConfig config = config_of("qwen3_0.6b");
  std::vector<TensorSpec> tensors = required_tensors(config);
  EXPECT_EQ(tensors.front(), (TensorSpec{"model.embed_tokens.weight", {151936, 1024}}));
  EXPECT_EQ(tensors[1], (TensorSpec{"model.layers.0.input_layernorm.weight", {1024}, TensorKind::norm}));
  EXPECT_EQ(tensors[2], (TensorSpec{"model.layers.0.self_attn.q_proj.weight", {2048, 1024}}));
  EXPECT_EQ(tensors.back(), (TensorSpec{"model.norm.weight", {1024}, TensorKind::norm}));
  config.text.tied = false;
  tensors = required_tensors(config);
  EXPECT_EQ(tensors.back(), (TensorSpec{"lm_head.weight", {151936, 1024}}));
}

// What is made of several tensors, or is not kept as it is stored.
TEST(WeightTableTest, LayoutsAreThoseThatOperationsTake) {
  const ModelConfig config = config_of("tiny_b");
  ModelWeights places;
  const std::vector<WeightEntry> table = weight_table(config, places);
  ASSERT_EQ(places.text.layers.size(), 3U);
  ASSERT_EQ(places.vision.blocks.size(), 3U);
  ASSERT_EQ(places.vision.deepstack.size(), 2U);
  const auto entry_of = [&](const TensorView* place) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const WeightEntry& entry) { return entry.place == place; });
    EXPECT_NE(found, table.end());
    return found == table.end() ? WeightEntry{} : *found;
  };
  const WeightEntry qkv = entry_of(&places.text.layers[1].qkv.parts[0]);
  ASSERT_EQ(qkv.tensors.size(), 3U);
  EXPECT_EQ(qkv.tensors[2].name, "model.language_model.layers.1.self_attn.v_proj.weight");
  EXPECT_EQ(qkv.layout, WeightLayout::stacked);
  EXPECT_EQ(qkv.rows(), (4 + 2 * 2) * 128);
  EXPECT_EQ(qkv.width(), 256);
  EXPECT_EQ(qkv.most_matrices, 3U);
  const WeightEntry gate_up = entry_of(&places.text.layers[2].gate_up);
  ASSERT_EQ(gate_up.tensors.size(), 2U);
  EXPECT_EQ(gate_up.layout, WeightLayout::interleaved);
  EXPECT_EQ(gate_up.rows(), 1024);
  EXPECT_EQ(gate_up.most_matrices, 1U);
  EXPECT_EQ(entry_of(&places.vision.blocks[0].qkv.weight).layout, WeightLayout::head_rows);
  EXPECT_EQ(entry_of(&places.vision.blocks[0].qkv.bias).layout, WeightLayout::head_rows);
  EXPECT_EQ(entry_of(&places.vision.blocks[0].projection.weight).layout, WeightLayout::head_columns);
  EXPECT_EQ(entry_of(&places.vision.blocks[0].projection.bias).layout, WeightLayout::stacked);
  EXPECT_EQ(entry_of(&places.vision.patch_embed.weight).width(), 3 * 2 * 16 * 16);
  EXPECT_EQ(entry_of(&places.vision.positions).kind(), TensorKind::positions);
  EXPECT_EQ(entry_of(&places.vision.merger.norm.bias).kind(), TensorKind::bias);
  EXPECT_EQ(entry_of(&places.text.norm).kind(), TensorKind::norm);
}

TEST(WeightTableTest, PartsOfTheTowerAreNumberedInOrderOfUse) {
  const ModelConfig config = config_of("tiny_b");
  const VisionConfig& vision = config.vision.value();
  ASSERT_EQ(vision.deepstack_indexes, (std::vector<std::int64_t>{0, 2}));
  const VisionParts parts(vision);
  EXPECT_EQ(parts.count(), 7U);
  EXPECT_EQ(parts.block(0), 1U);
  EXPECT_EQ(parts.deepstack(0), 2U);
  EXPECT_EQ(parts.block(1), 3U);
  EXPECT_EQ(parts.block(2), 4U);
  EXPECT_EQ(parts.deepstack(1), 5U);
  EXPECT_EQ(parts.merger(), 6U);
  EXPECT_TRUE(parts.takes_merged(5) && parts.takes_merged(6));
  EXPECT_FALSE(parts.takes_merged(0) || parts.takes_merged(4));
  ModelWeights places;
  const auto expect_part = [&](auto& weights, std::size_t part, const std::vector<WeightEntry>& table) {
    for (const TensorView* const view : views_of(weights)) {
      const auto found = std::count_if(table.begin(), table.end(), [&](const WeightEntry& entry) {
        return entry.place == view && entry.part == WeightPart{PartKind::vision, part};
      });
      EXPECT_EQ(found, 1) << part;
    }
  };
  const std::vector<WeightEntry> table = weight_table(config, places);
  expect_part(static_cast<PatchWeights&>(places.vision), VisionParts::kEmbedding, table);
  for (std::size_t i = 0; i < 3; ++i) {
    expect_part(places.vision.blocks[i], parts.block(i), table);
  }
  expect_part(places.vision.deepstack[0], 2, table);
  expect_part(places.vision.deepstack[1], 5, table);
  expect_part(places.vision.merger, 6, table);
  EXPECT_EQ(std::count_if(table.begin(), table.end(),
                          [](const WeightEntry& entry) { return entry.part.kind == PartKind::vision; }),
            3 + 3 * 12 + 3 * 6)
      << "nothing of the tower is left out";
}

// Every view of a model is filled by one row of the table, but for the head that is the embedding.
TEST(WeightTableTest, EveryTensorIsOfOneRow) {
  for (const char* name : {"qwen3_vl_8b", "tiny_a", "qwen3_1.7b"}) {
    const ModelConfig config = config_of(name);
    ModelWeights places;
    std::set<std::string> names;
    std::set<const void*> filled;
    for (const WeightEntry& entry : weight_table(config, places)) {
      EXPECT_TRUE(filled.insert(entry.place).second);
      for (const TensorSpec& tensor : entry.tensors) {
        EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
        EXPECT_EQ(tensor.kind, entry.kind()) << tensor.name;
        EXPECT_EQ(tensor.elements() / tensor.shape.front(), entry.width()) << tensor.name;
      }
    }
    EXPECT_EQ(names.size(), required_tensors(config).size());
    EXPECT_EQ(filled.contains(&places.text.head), !config.text.tied);
  }
}

TEST(WeightTableTest, ElementCountsDoNotOverflow) {
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
    EXPECT_EQ(official_tensor_name(stored, ModelFamily::qwen3_vl), official);
  }
}

TEST(TensorNamesTest, SchemesOfATextOnlyModelBecomeItsOwn) {
  const std::array<std::pair<const char*, const char*>, 6> names{
      {{"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
       {"layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
       {"embed_tokens.weight", "model.embed_tokens.weight"},
       {"norm.weight", "model.norm.weight"},
       {"lm_head.weight", "lm_head.weight"},
       {"visual.pos_embed.weight", "visual.pos_embed.weight"}}};
  for (const auto& [stored, official] : names) {
    EXPECT_EQ(official_tensor_name(stored, ModelFamily::qwen3), official);
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
