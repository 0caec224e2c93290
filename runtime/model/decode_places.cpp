#include <array>

#include "runtime/formats/int8_activations.hpp"
#include "runtime/model/place_list.hpp"
#include "runtime/model/place_steps.hpp"
#include "runtime/model/tensor_memory.hpp"
#include "runtime/ops/attention_qkv.hpp"

// The places of a decoding step, and the head.
namespace pascaline {
namespace {

// Every block of threads normalises for itself. For a single row that takes no longer than it waits for its first
// weights, but many blocks do it in turn: from so many rows of a weight on it takes longer than a launch
// (docs/measurements.md).
constexpr std::int64_t kMostNormedRows = 32'768;

double more_for_norm(std::int64_t weight_rows) { return weight_rows > kMostNormedRows ? 2 : 0; }

bool normalises(ElementType weight, std::int64_t columns) {
  return is_packed_format(weight) && weight != ElementType::int8_row && ops::filled_columns(weight, columns) == columns;
}

ops::NormedMatmul joined(const ops::Rmsnorm& norm, const ops::Matmul& layer) {
  return {.a = norm.x,
          .norm = norm.weight,
          .b = layer.b,
          .c = layer.c,
          .bias = layer.bias,
          .residual = layer.residual,
          .epilogue = layer.epilogue,
          .epsilon = norm.epsilon};
}

// Where the projection after attention takes rounded rows, attention rounds its result for it.
template <typename Attend>
void attend_and_project(LinearLayers& linear, const AttentionPlace& place, const Attend& attend) {
  const ops::Matmul output = output_of(place, place.attended);
  const std::int64_t heads = place.q.shape[1];
  const std::int64_t head_dim = place.q.shape[2];
  if (head_dim % kActivationBlock == 0 && linear.takes_rounded_blocks(output)) {
    const ops::QuantizedRows rounded = linear.rows_for(output);
    attend(ops::QuantizedRows{reshaped(rounded.values, {heads, head_dim}), rounded.scales});
    linear.run_rounded(output, rounded);
    return;
  }
  attend(ops::QuantizedRows{reshaped(place.attended, {heads, head_dim}), {}});
  linear.run(output);
}

void rotate_then_attend(LinearLayers& linear, const AttentionPlace& place) {
  linear.executor().run(rotation_of(place));
  attend_and_project(linear, place, [&](const ops::QuantizedRows& to) {
    linear.executor().run(ops::AttentionDecode{.q = reshaped(place.q, {place.q.shape[1], place.q.shape[2]}),
                                               .k = place.k_cache,
                                               .v = place.v_cache,
                                               .length = place.length,
                                               .out = to.values,
                                               .k_scales = place.k_scales,
                                               .v_scales = place.v_scales,
                                               .scales = to.scales});
  });
}

void attend_rotated(LinearLayers& linear, const AttentionPlace& place) {
  attend_and_project(linear, place, [&](const ops::QuantizedRows& to) {
    linear.executor().run(ops::AttentionDecodeQkv{.qkv = reshaped(place.qkv, {place.qkv.shape[1], place.qkv.shape[2]}),
                                                  .q_weight = place.q_norm,
                                                  .k_weight = place.k_norm,
                                                  .cosine = place.cosine,
                                                  .sine = place.sine,
                                                  .positions = place.positions,
                                                  .length = place.length,
                                                  .k_cache = place.k_cache,
                                                  .v_cache = place.v_cache,
                                                  .out = to.values,
                                                  .k_scales = place.k_scales,
                                                  .v_scales = place.v_scales,
                                                  .scales = to.scales,
                                                  .section_h = place.section_h,
                                                  .section_w = place.section_w,
                                                  .epsilon = place.epsilon});
  });
}

void single_attention(LinearLayers& linear, const AttentionPlace& place) {
  linear.run_normed(input_norm_of(place), projection_of(place));
  rotate_then_attend(linear, place);
}

void normed_attention(LinearLayers& linear, const AttentionPlace& place) {
  linear.executor().run(joined(input_norm_of(place), projection_of(place)));
  rotate_then_attend(linear, place);
}

void rotated_attention(LinearLayers& linear, const AttentionPlace& place) {
  linear.run_normed(input_norm_of(place), projection_of(place));
  attend_rotated(linear, place);
}

void normed_rotated_attention(LinearLayers& linear, const AttentionPlace& place) {
  linear.executor().run(joined(input_norm_of(place), projection_of(place)));
  attend_rotated(linear, place);
}

bool normalises_qkv(const PlaceKey& key) { return normalises(type_of(key, "QKV"), dimension_of(key, "HIDDEN")); }

double more_for_qkv(const PlaceKey& key) {
  return more_for_norm((dimension_of(key, "HEADS") + 2 * dimension_of(key, "KV_HEADS")) *
                       dimension_of(key, "HEAD_DIM"));
}

constexpr std::array kDecodeAttentions{
    Alternative<AttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_attention},
    Alternative<AttentionPlace>{"normed", "the norm by the product after it", normalises_qkv, more_for_qkv,
                                normed_attention},
    Alternative<AttentionPlace>{"rotated", "norms, positions and cache of queries and keys by attention", always,
                                nothing_more, rotated_attention},
    Alternative<AttentionPlace>{"normed_rotated",
                                "the norm by the product after it; norms, positions and cache by attention",
                                normalises_qkv, more_for_qkv, normed_rotated_attention}};

void single_mlp(LinearLayers& linear, const MlpPlace& place) {
  linear.run_gated(post_norm_of(place), gate_up_of(place), down_of(place));
}

void normed_mlp(LinearLayers& linear, const MlpPlace& place) {
  const ops::Matmul down = down_of(place);
  ops::NormedMatmul gate_up = joined(post_norm_of(place), gate_up_of(place));
  if (!linear.takes_rounded_blocks(down)) {
    linear.executor().run(gate_up);
    linear.run(down);
    return;
  }
  const ops::QuantizedRows gated = linear.next_rows_for(down);
  gate_up.c = {};
  gate_up.rounded = gated;
  gate_up.epilogue = ops::Epilogue::swiglu_int8;
  linear.executor().run(gate_up);
  linear.run_rounded(down, gated);
}

bool normalises_gate_up(const PlaceKey& key) {
  return normalises(type_of(key, "GATE_UP"), dimension_of(key, "HIDDEN"));
}

double more_for_gate_up(const PlaceKey& key) { return more_for_norm(2 * dimension_of(key, "INTERMEDIATE")); }

constexpr std::array kDecodeMlps{
    Alternative<MlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpPlace>{"normed", "the norm by the product after it", normalises_gate_up, more_for_gate_up,
                          normed_mlp}};

ops::Rmsnorm norm_of(const HeadPlace& place) {
  return {.x = place.hidden, .weight = place.norm, .y = place.input, .epsilon = place.epsilon};
}

ops::Matmul product_of(const HeadPlace& place) { return {.a = place.input, .b = place.head, .c = place.logits}; }

void single_head(LinearLayers& linear, const HeadPlace& place) { linear.run_normed(norm_of(place), product_of(place)); }

void normed_head(LinearLayers& linear, const HeadPlace& place) {
  linear.executor().run(joined(norm_of(place), product_of(place)));
}

bool normalises_head(const PlaceKey& key) {
  return dimension_of(key, "ROWS") == 1 && normalises(type_of(key, "HEAD"), dimension_of(key, "HIDDEN"));
}

double more_for_head(const PlaceKey& key) { return more_for_norm(dimension_of(key, "VOCABULARY")); }

constexpr std::array kHeads{
    Alternative<HeadPlace>{kSingle, "each operation by itself", always, nothing_more, single_head},
    Alternative<HeadPlace>{"normed", "the norm by the product after it", normalises_head, more_for_head, normed_head}};

}  // namespace

const PlaceList<AttentionPlace> kDecodeAttention{
    "place_decode_attention", "a token's attention: norm, projection, positions, attention, projection",
    kDecodeAttentions};
const PlaceList<MlpPlace> kDecodeMlp{"place_decode_mlp", "a token's MLP: norm, gate and up, SwiGLU, down", kDecodeMlps};
const PlaceList<HeadPlace> kHead{"place_head", "logits: norm and head", kHeads};

}  // namespace pascaline
