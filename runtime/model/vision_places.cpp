#include <array>

#include "runtime/model/place_list.hpp"
#include "runtime/model/tensor_memory.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/rope.hpp"

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

void single_vision_attention(LinearLayers& linear, const VisionAttentionPlace& place) {
  linear.run_normed(norm1_of(place), vision_qkv_of(place));
  linear.executor().run(vision_rotation_of(place));
  linear.executor().run(vision_attention_of(place));
  linear.run(vision_projection_of(place));
}

constexpr std::array kVisionAttentions{Alternative<VisionAttentionPlace>{kSingle, "each operation by itself", always,
                                                                         nothing_more, single_vision_attention}};

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

constexpr std::array kVisionMlps{
    Alternative<VisionMlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_vision_mlp}};

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

constexpr std::array kMergers{
    Alternative<MergerPlace>{kSingle, "each operation by itself", always, nothing_more, single_merger}};

}  // namespace

const PlaceList<VisionAttentionPlace> kVisionAttention{
    "place_vision_attention", "an image's attention: norm, projection, positions, attention, projection",
    kVisionAttentions};
const PlaceList<VisionMlpPlace> kVisionMlp{"place_vision_mlp", "an image's MLP: norm, two products", kVisionMlps};
const PlaceList<MergerPlace> kMerger{"place_merger", "patches to tokens: norm, two products", kMergers};

}  // namespace pascaline
