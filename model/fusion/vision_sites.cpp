#include <array>

#include "model/fusion/site_list.hpp"
#include "model/fusion/site_steps.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/vision_qkv.hpp"

// The sites of the vision tower.
namespace pascaline {
namespace {

ops::Layernorm norm1_of(const VisionAttentionSite& site) {
  return {.x = site.hidden, .weight = site.norm.weight, .bias = site.norm.bias, .y = site.normed};
}

ops::Matmul vision_qkv_of(const VisionAttentionSite& site) {
  const auto& heads = site.attended.shape;
  return {.a = site.normed,
          .b = site.qkv_weight.weight,
          .c = reshaped(site.qkv, {heads[0], 3 * heads[1] * heads[2]}),
          .bias = site.qkv_weight.bias,
          .epilogue = ops::Epilogue::bias};
}

ops::RopeVision vision_rotation_of(const VisionAttentionSite& site) {
  return {.qkv = site.qkv, .cosine = site.cosine, .sine = site.sine, .positions = site.positions};
}

ops::AttentionPrefill vision_attention_of(const VisionAttentionSite& site) {
  const auto& heads = site.attended.shape;
  const std::int64_t width = heads[1] * heads[2];
  const auto part = [&](std::int64_t which) {
    void* const data = static_cast<float*>(site.qkv.data) + which * width;
    return TensorView(data, ElementType::float32, {heads[0], heads[1], heads[2]}).with_row_stride(3 * width);
  };
  return {.q = part(0),
          .k = part(1),
          .v = part(2),
          .out = site.attended,
          .segment_starts = site.segment_starts,
          .causal = false};
}

ops::Matmul vision_projection_of(const VisionAttentionSite& site) {
  const auto& heads = site.attended.shape;
  return {.a = reshaped(site.attended, {heads[0], heads[1] * heads[2]}),
          .b = site.projection.weight,
          .c = site.hidden,
          .bias = site.projection.bias,
          .residual = site.hidden,
          .epilogue = ops::Epilogue::bias_residual};
}

// What follows queries, keys and values that are turned.
void attend_to_patches(LinearLayers& linear, const VisionAttentionSite& site) {
  linear.executor().run(vision_attention_of(site));
  linear.run(vision_projection_of(site));
}

void single_vision_attention(LinearLayers& linear, const VisionAttentionSite& site) {
  linear.run_normed(norm1_of(site), vision_qkv_of(site));
  linear.executor().run(vision_rotation_of(site));
  attend_to_patches(linear, site);
}

void normed_vision_attention(LinearLayers& linear, const VisionAttentionSite& site) {
  run_normalising(linear, norm1_of(site), vision_qkv_of(site));
  linear.executor().run(vision_rotation_of(site));
  attend_to_patches(linear, site);
}

// Queries, keys and values of rows that were normalised.
ops::VisionQkv turned_qkv_of(const VisionAttentionSite& site) {
  return {.a = site.normed,
          .b = site.qkv_weight.weight,
          .bias = site.qkv_weight.bias,
          .qkv = site.qkv,
          .cosine = site.cosine,
          .sine = site.sine,
          .positions = site.positions};
}

void turned_vision_attention(LinearLayers& linear, const VisionAttentionSite& site) {
  linear.executor().run(norm1_of(site));
  linear.executor().run(turned_qkv_of(site));
  attend_to_patches(linear, site);
}

void normed_turned_vision_attention(LinearLayers& linear, const VisionAttentionSite& site) {
  const ops::RowStatistics rows = statistics_of(norm1_of(site));
  linear.executor().run(rows);
  ops::VisionQkv product = turned_qkv_of(site);
  product.a = rows.x;
  product.norm = site.norm.weight;
  product.norm_bias = site.norm.bias;
  product.statistics = rows.statistics;
  linear.executor().run(product);
  attend_to_patches(linear, site);
}

bool normalises_patches(const SiteKey& key) { return can_normalise(type_of(key, "QKV"), dimension_of(key, "ROWS")); }

constexpr std::array kVisionAttentions{
    Alternative<VisionAttentionSite>{kSingle, "each operation by itself", always, nothing_more,
                                     single_vision_attention},
    Alternative<VisionAttentionSite>{"turned", "queries and keys turned by the projection that they come from",
                                     normalises_patches, nothing_more, turned_vision_attention},
    Alternative<VisionAttentionSite>{"normed", "the norm by the projection after it", normalises_patches,
                                     more_for_normalising, normed_vision_attention},
    Alternative<VisionAttentionSite>{"normed_turned", "norm, projection and positions", normalises_patches,
                                     more_for_normalising, normed_turned_vision_attention}};

ops::Layernorm norm2_of(const VisionMlpSite& site) {
  return {.x = site.hidden, .weight = site.norm.weight, .bias = site.norm.bias, .y = site.input};
}

ops::Matmul fc1_of(const VisionMlpSite& site) {
  return {.a = site.input,
          .b = site.fc1.weight,
          .c = site.wide,
          .bias = site.fc1.bias,
          .epilogue = ops::Epilogue::bias_gelu_tanh};
}

ops::Matmul fc2_of(const VisionMlpSite& site) {
  return {.a = site.wide,
          .b = site.fc2.weight,
          .c = site.hidden,
          .bias = site.fc2.bias,
          .residual = site.hidden,
          .epilogue = ops::Epilogue::bias_residual};
}

void single_vision_mlp(LinearLayers& linear, const VisionMlpSite& site) {
  linear.run_normed(norm2_of(site), fc1_of(site));
  linear.run(fc2_of(site));
}

void normed_vision_mlp(LinearLayers& linear, const VisionMlpSite& site) {
  run_normalising(linear, norm2_of(site), fc1_of(site));
  linear.run(fc2_of(site));
}

bool normalises_fc1(const SiteKey& key) { return can_normalise(type_of(key, "FC1"), dimension_of(key, "ROWS")); }

constexpr std::array kVisionMlps{
    Alternative<VisionMlpSite>{kSingle, "each operation by itself", always, nothing_more, single_vision_mlp},
    Alternative<VisionMlpSite>{"normed", "the norm by the product after it", normalises_fc1, more_for_normalising,
                               normed_vision_mlp}};

// Patches that become one token follow each other: merging them is another view.
ops::Layernorm merger_norm_of(const MergerSite& site) {
  const std::int64_t tokens = site.wide.shape[0];
  const std::int64_t merged = site.wide.shape[1];
  return {.x = site.merged_first ? reshaped(site.hidden, {tokens, merged}) : site.hidden,
          .weight = site.norm.weight,
          .bias = site.norm.bias,
          .y = site.merged_first ? reshaped(site.input, {tokens, merged}) : site.input};
}

ops::Matmul merger_fc1_of(const MergerSite& site) {
  return {.a = reshaped(site.input, {site.wide.shape[0], site.wide.shape[1]}),
          .b = site.fc1.weight,
          .c = site.wide,
          .bias = site.fc1.bias,
          .epilogue = ops::Epilogue::bias_gelu_erf};
}

ops::Matmul merger_fc2_of(const MergerSite& site) {
  return {.a = site.wide, .b = site.fc2.weight, .c = site.out, .bias = site.fc2.bias, .epilogue = ops::Epilogue::bias};
}

void single_merger(LinearLayers& linear, const MergerSite& site) {
  linear.executor().run(merger_norm_of(site));
  linear.run(merger_fc1_of(site));
  linear.run(merger_fc2_of(site));
}

void normed_merger(LinearLayers& linear, const MergerSite& site) {
  run_normalising(linear, merger_norm_of(site), merger_fc1_of(site));
  linear.run(merger_fc2_of(site));
}

// Where patches are normalised one by one, a row of the product has several of them, which are to be four.
bool normalises_merged(const SiteKey& key) {
  constexpr std::int64_t kSlice = 32;  // columns of a product's that lie in one patch, the most
  const std::int64_t hidden = dimension_of(key, "HIDDEN");
  const bool fits =
      dimension_of(key, "MERGED_FIRST") != 0 || (dimension_of(key, "MERGED") == 4 * hidden && hidden % kSlice == 0);
  return fits && can_normalise(type_of(key, "FC1"), dimension_of(key, "TOKENS"));
}

constexpr std::array kMergers{
    Alternative<MergerSite>{kSingle, "each operation by itself", always, nothing_more, single_merger},
    Alternative<MergerSite>{"normed", "the norm by the product after it", normalises_merged, more_for_normalising,
                            normed_merger}};

}  // namespace

const SiteList<VisionAttentionSite> kVisionAttention{
    "site_vision_attention", "an image's attention: norm, projection, positions, attention, projection",
    kVisionAttentions};
const SiteList<VisionMlpSite> kVisionMlp{"site_vision_mlp", "an image's MLP: norm, two products", kVisionMlps};
const SiteList<MergerSite> kMerger{"site_merger", "patches to tokens: norm, two products", kMergers};

}  // namespace pascaline
