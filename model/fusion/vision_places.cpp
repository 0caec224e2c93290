#include <array>

#include "model/fusion/place_list.hpp"
#include "model/fusion/place_steps.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/vision_qkv.hpp"

// The places of the vision tower.
namespace pascaline {
namespace {

ops::Layernorm norm1_of(const VisionAttentionPlace& place) {
  return {.x = place.hidden, .weight = place.norm.weight, .bias = place.norm.bias, .y = place.normed};
}

ops::Matmul vision_qkv_of(const VisionAttentionPlace& place) {
  const auto& heads = place.attended.shape;
  return {.a = place.normed,
          .b = place.qkv_weight.weight,
          .c = reshaped(place.qkv, {heads[0], 3 * heads[1] * heads[2]}),
          .bias = place.qkv_weight.bias,
          .epilogue = ops::Epilogue::bias};
}

ops::RopeVision vision_rotation_of(const VisionAttentionPlace& place) {
  return {.qkv = place.qkv, .cosine = place.cosine, .sine = place.sine, .positions = place.positions};
}

ops::AttentionPrefill vision_attention_of(const VisionAttentionPlace& place) {
  const auto& heads = place.attended.shape;
  const std::int64_t width = heads[1] * heads[2];
  const auto part = [&](std::int64_t which) {
    void* const data = static_cast<float*>(place.qkv.data) + which * width;
    return TensorView(data, ElementType::float32, {heads[0], heads[1], heads[2]}).with_row_stride(3 * width);
  };
  return {.q = part(0),
          .k = part(1),
          .v = part(2),
          .out = place.attended,
          .segment_starts = place.segment_starts,
          .causal = false};
}

ops::Matmul vision_projection_of(const VisionAttentionPlace& place) {
  const auto& heads = place.attended.shape;
  return {.a = reshaped(place.attended, {heads[0], heads[1] * heads[2]}),
          .b = place.projection.weight,
          .c = place.hidden,
          .bias = place.projection.bias,
          .residual = place.hidden,
          .epilogue = ops::Epilogue::bias_residual};
}

// What follows queries, keys and values that are turned.
void attend_to_patches(LinearLayers& linear, const VisionAttentionPlace& place) {
  linear.executor().run(vision_attention_of(place));
  linear.run(vision_projection_of(place));
}

void single_vision_attention(LinearLayers& linear, const VisionAttentionPlace& place) {
  linear.run_normed(norm1_of(place), vision_qkv_of(place));
  linear.executor().run(vision_rotation_of(place));
  attend_to_patches(linear, place);
}

void normed_vision_attention(LinearLayers& linear, const VisionAttentionPlace& place) {
  run_normalising(linear, norm1_of(place), vision_qkv_of(place));
  linear.executor().run(vision_rotation_of(place));
  attend_to_patches(linear, place);
}

// Queries, keys and values of rows that were normalised.
ops::VisionQkv turned_qkv_of(const VisionAttentionPlace& place) {
  return {.a = place.normed,
          .b = place.qkv_weight.weight,
          .bias = place.qkv_weight.bias,
          .qkv = place.qkv,
          .cosine = place.cosine,
          .sine = place.sine,
          .positions = place.positions};
}

void turned_vision_attention(LinearLayers& linear, const VisionAttentionPlace& place) {
  linear.executor().run(norm1_of(place));
  linear.executor().run(turned_qkv_of(place));
  attend_to_patches(linear, place);
}

void normed_turned_vision_attention(LinearLayers& linear, const VisionAttentionPlace& place) {
  const ops::RowStatistics rows = statistics_of(norm1_of(place));
  linear.executor().run(rows);
  ops::VisionQkv product = turned_qkv_of(place);
  product.a = rows.x;
  product.norm = place.norm.weight;
  product.norm_bias = place.norm.bias;
  product.statistics = rows.statistics;
  linear.executor().run(product);
  attend_to_patches(linear, place);
}

bool normalises_patches(const PlaceKey& key) { return can_normalise(type_of(key, "QKV"), dimension_of(key, "ROWS")); }

constexpr std::array kVisionAttentions{
    Alternative<VisionAttentionPlace>{kSingle, "each operation by itself", always, nothing_more,
                                      single_vision_attention},
    Alternative<VisionAttentionPlace>{"turned", "queries and keys turned by the projection that they come from",
                                      normalises_patches, nothing_more, turned_vision_attention},
    Alternative<VisionAttentionPlace>{"normed", "the norm by the projection after it", normalises_patches,
                                      more_for_normalising, normed_vision_attention},
    Alternative<VisionAttentionPlace>{"normed_turned", "norm, projection and positions", normalises_patches,
                                      more_for_normalising, normed_turned_vision_attention}};

ops::Layernorm norm2_of(const VisionMlpPlace& place) {
  return {.x = place.hidden, .weight = place.norm.weight, .bias = place.norm.bias, .y = place.input};
}

ops::Matmul fc1_of(const VisionMlpPlace& place) {
  return {.a = place.input,
          .b = place.fc1.weight,
          .c = place.wide,
          .bias = place.fc1.bias,
          .epilogue = ops::Epilogue::bias_gelu_tanh};
}

ops::Matmul fc2_of(const VisionMlpPlace& place) {
  return {.a = place.wide,
          .b = place.fc2.weight,
          .c = place.hidden,
          .bias = place.fc2.bias,
          .residual = place.hidden,
          .epilogue = ops::Epilogue::bias_residual};
}

void single_vision_mlp(LinearLayers& linear, const VisionMlpPlace& place) {
  linear.run_normed(norm2_of(place), fc1_of(place));
  linear.run(fc2_of(place));
}

void normed_vision_mlp(LinearLayers& linear, const VisionMlpPlace& place) {
  run_normalising(linear, norm2_of(place), fc1_of(place));
  linear.run(fc2_of(place));
}

bool normalises_fc1(const PlaceKey& key) { return can_normalise(type_of(key, "FC1"), dimension_of(key, "ROWS")); }

constexpr std::array kVisionMlps{
    Alternative<VisionMlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_vision_mlp},
    Alternative<VisionMlpPlace>{"normed", "the norm by the product after it", normalises_fc1, more_for_normalising,
                                normed_vision_mlp}};

// Patches that become one token follow each other: merging them is another view.
ops::Layernorm merger_norm_of(const MergerPlace& place) {
  const std::int64_t tokens = place.wide.shape[0];
  const std::int64_t merged = place.wide.shape[1];
  return {.x = place.merged_first ? reshaped(place.hidden, {tokens, merged}) : place.hidden,
          .weight = place.norm.weight,
          .bias = place.norm.bias,
          .y = place.merged_first ? reshaped(place.input, {tokens, merged}) : place.input};
}

ops::Matmul merger_fc1_of(const MergerPlace& place) {
  return {.a = reshaped(place.input, {place.wide.shape[0], place.wide.shape[1]}),
          .b = place.fc1.weight,
          .c = place.wide,
          .bias = place.fc1.bias,
          .epilogue = ops::Epilogue::bias_gelu_erf};
}

ops::Matmul merger_fc2_of(const MergerPlace& place) {
  return {
      .a = place.wide, .b = place.fc2.weight, .c = place.out, .bias = place.fc2.bias, .epilogue = ops::Epilogue::bias};
}

void single_merger(LinearLayers& linear, const MergerPlace& place) {
  linear.executor().run(merger_norm_of(place));
  linear.run(merger_fc1_of(place));
  linear.run(merger_fc2_of(place));
}

void normed_merger(LinearLayers& linear, const MergerPlace& place) {
  run_normalising(linear, merger_norm_of(place), merger_fc1_of(place));
  linear.run(merger_fc2_of(place));
}

// Where patches are normalised one by one, a row of the product has several of them, which are to be four.
bool normalises_merged(const PlaceKey& key) {
  constexpr std::int64_t kSlice = 32;  // columns of a product's that lie in one patch, the most
  const std::int64_t hidden = dimension_of(key, "HIDDEN");
  const bool fits =
      dimension_of(key, "MERGED_FIRST") != 0 || (dimension_of(key, "MERGED") == 4 * hidden && hidden % kSlice == 0);
  return fits && can_normalise(type_of(key, "FC1"), dimension_of(key, "TOKENS"));
}

constexpr std::array kMergers{
    Alternative<MergerPlace>{kSingle, "each operation by itself", always, nothing_more, single_merger},
    Alternative<MergerPlace>{"normed", "the norm by the product after it", normalises_merged, more_for_normalising,
                             normed_merger}};

}  // namespace

const PlaceList<VisionAttentionPlace> kVisionAttention{
    "place_vision_attention", "an image's attention: norm, projection, positions, attention, projection",
    kVisionAttentions};
const PlaceList<VisionMlpPlace> kVisionMlp{"place_vision_mlp", "an image's MLP: norm, two products", kVisionMlps};
const PlaceList<MergerPlace> kMerger{"place_merger", "patches to tokens: norm, two products", kMergers};

}  // namespace pascaline
