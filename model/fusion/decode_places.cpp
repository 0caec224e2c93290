#include <array>

#include "model/fusion/place_list.hpp"
#include "model/fusion/place_steps.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/attention_layer.hpp"
#include "runtime/ops/attention_projected.hpp"

// The places of a decoding step, and the head.
namespace pascaline {
namespace {

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
  attend_and_project(linear, place,
                     [&](const ops::QuantizedRows& to) { linear.executor().run(rotated_attention_of(place, to)); });
}

void single_attention(LinearLayers& linear, const AttentionPlace& place) {
  project(linear, place);
  rotate_then_attend(linear, place);
}

void normed_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising_row(linear, place);
  rotate_then_attend(linear, place);
}

void rotated_attention(LinearLayers& linear, const AttentionPlace& place) {
  project(linear, place);
  attend_rotated(linear, place);
}

void normed_rotated_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising_row(linear, place);
  attend_rotated(linear, place);
}

void project_token(LinearLayers& linear, const AttentionPlace& place) {
  const ops::AttentionDecodeQkv attention =
      rotated_attention_of(place, {reshaped(place.attended, {place.q.shape[1], place.q.shape[2]}), {}});
  linear.executor().run(ops::AttentionProjected{.qkv = attention.qkv,
                                                .q_weight = attention.q_weight,
                                                .k_weight = attention.k_weight,
                                                .cosine = attention.cosine,
                                                .sine = attention.sine,
                                                .positions = attention.positions,
                                                .length = attention.length,
                                                .k_cache = attention.k_cache,
                                                .v_cache = attention.v_cache,
                                                .x = place.hidden,
                                                .weight = place.output,
                                                .c = place.hidden,
                                                .k_scales = attention.k_scales,
                                                .v_scales = attention.v_scales,
                                                .section_h = attention.section_h,
                                                .section_w = attention.section_w,
                                                .epsilon = attention.epsilon});
}

void projected_attention(LinearLayers& linear, const AttentionPlace& place) {
  project(linear, place);
  project_token(linear, place);
}

void normed_projected_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising_row(linear, place);
  project_token(linear, place);
}

void whole_attention(LinearLayers& linear, const AttentionPlace& place) {
  linear.executor().run(ops::AttentionLayer{.x = place.hidden,
                                            .norm = place.input_norm,
                                            .qkv_weight = place.qkv_weight.all().front(),
                                            .q_weight = place.q_norm,
                                            .k_weight = place.k_norm,
                                            .cosine = place.cosine,
                                            .sine = place.sine,
                                            .positions = place.positions,
                                            .length = place.length,
                                            .k_cache = place.k_cache,
                                            .v_cache = place.v_cache,
                                            .weight = place.output,
                                            .c = place.hidden,
                                            .k_scales = place.k_scales,
                                            .v_scales = place.v_scales,
                                            .section_h = place.section_h,
                                            .section_w = place.section_w,
                                            .epsilon = place.epsilon});
}

// Weights of several types are several products.
bool is_whole_attention(const PlaceKey& key) {
  const ElementType qkv = type_of(key, "QKV");
  return type_of(key, "K") == qkv && type_of(key, "V") == qkv &&
         ops::AttentionLayer::takes(qkv, type_of(key, "OUTPUT"));
}

// Until the ranges of the context are joined the projection waits, about as long as a launch takes, and no reason to
// join them as long as nothing is measured.
double more_for_projection(const PlaceKey& /*key*/) { return 1; }
double more_for_qkv_and_projection(const PlaceKey& key) { return more_for_qkv(key) + more_for_projection(key); }
// Until queries, keys and values are there attention waits, too.
double more_for_whole_attention(const PlaceKey& key) { return 1 + more_for_projection(key); }

constexpr std::array kDecodeAttentions{
    Alternative<AttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_attention},
    Alternative<AttentionPlace>{"normed", "the norm by the product after it", normalises_qkv, more_for_qkv,
                                normed_attention},
    Alternative<AttentionPlace>{"rotated", "norms, positions and cache of queries and keys by attention", always,
                                nothing_more, rotated_attention},
    Alternative<AttentionPlace>{"normed_rotated",
                                "the norm by the product after it; norms, positions and cache by attention",
                                normalises_qkv, more_for_qkv, normed_rotated_attention},
    Alternative<AttentionPlace>{"projected",
                                "norms, positions, cache, attention and the projection after it in one launch", always,
                                more_for_projection, projected_attention},
    Alternative<AttentionPlace>{
        "normed_projected", "the norm by the product after it; all from norms of heads to the projection in one launch",
        normalises_qkv, more_for_qkv_and_projection, normed_projected_attention},
    Alternative<AttentionPlace>{"whole", "all from the norm to the projection in one launch", is_whole_attention,
                                more_for_whole_attention, whole_attention}};

double more_for_gate_up(const PlaceKey& key) {
  return more_for_norm(type_of(key, "GATE_UP"), 2 * dimension_of(key, "INTERMEDIATE"));
}

// The wait for the slowest block of gate and up, in which the first weights of down come. With float weights, which are
// several times as many bytes, no card was seen to gain by it.
double more_for_whole_mlp(const PlaceKey& key) { return is_packed_format(type_of(key, "GATE_UP")) ? 0.5 : 2; }

constexpr std::array kDecodeMlps{
    Alternative<MlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpPlace>{"normed", "the norm by the product after it", normalises_gate_up, more_for_gate_up,
                          normed_mlp},
    Alternative<MlpPlace>{"whole", "norm, gate and up, SwiGLU, down and residual in one launch", is_whole,
                          more_for_whole_mlp, whole_mlp}};

ops::Rmsnorm norm_of(const HeadPlace& place) {
  return {.x = place.hidden, .weight = place.norm, .y = place.input, .epsilon = place.epsilon};
}

ops::Matmul product_of(const HeadPlace& place) { return {.a = place.input, .b = place.head, .c = place.logits}; }

void single_head(LinearLayers& linear, const HeadPlace& place) { linear.run_normed(norm_of(place), product_of(place)); }

void normed_head(LinearLayers& linear, const HeadPlace& place) {
  linear.executor().run(joined(norm_of(place), product_of(place)));
}

bool normalises_head(const PlaceKey& key) {
  return dimension_of(key, "ROWS") == 1 && can_normalise_row(type_of(key, "HEAD"), dimension_of(key, "HIDDEN"));
}

double more_for_head(const PlaceKey& key) {
  return more_for_norm(type_of(key, "HEAD"), dimension_of(key, "VOCABULARY"));
}

constexpr std::array kHeads{
    Alternative<HeadPlace>{kSingle, "each operation by itself", always, nothing_more, single_head},
    Alternative<HeadPlace>{"normed", "the norm by the product after it", normalises_head, more_for_head, normed_head}};

void single_next_token(LinearLayers& linear, const NextTokenPlace& place) {
  linear.executor().run(place.next.sample);
  linear.executor().run(place.next.advance);
  linear.executor().run(place.next.gather());
}

void joined_next_token(LinearLayers& linear, const NextTokenPlace& place) { linear.executor().run(place.next); }

constexpr std::array kNextTokens{
    Alternative<NextTokenPlace>{kSingle, "each operation by itself", always, nothing_more, single_next_token},
    Alternative<NextTokenPlace>{"joined", "the token, its place and its embedding in one launch", always, nothing_more,
                                joined_next_token}};

}  // namespace

const PlaceList<AttentionPlace> kDecodeAttention{
    "place_decode_attention", "a token's attention: norm, projection, positions, attention, projection",
    kDecodeAttentions};
const PlaceList<MlpPlace> kDecodeMlp{"place_decode_mlp", "a token's MLP: norm, gate and up, SwiGLU, down", kDecodeMlps};
const PlaceList<HeadPlace> kHead{"place_head", "logits: norm and head", kHeads};
const PlaceList<NextTokenPlace> kNextToken{
    "place_next_token", "the next token: chosen, its place in the sequence, its embedding", kNextTokens};

}  // namespace pascaline
