#include <array>

#include "model/fusion/site_list.hpp"
#include "model/fusion/site_steps.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/attention_layer.hpp"
#include "runtime/ops/attention_projected.hpp"

// The sites of a decoding step, and the head.
namespace pascaline {
namespace {

void rotate_then_attend(LinearLayers& linear, const AttentionSite& site) {
  linear.executor().run(rotation_of(site));
  attend_and_project(linear, site, [&](const ops::QuantizedRows& to) {
    linear.executor().run(ops::AttentionDecode{.q = reshaped(site.q, {site.q.shape[1], site.q.shape[2]}),
                                               .k = site.k_cache,
                                               .v = site.v_cache,
                                               .length = site.length,
                                               .out = to.values,
                                               .k_scales = site.k_scales,
                                               .v_scales = site.v_scales,
                                               .scales = to.scales});
  });
}

void attend_rotated(LinearLayers& linear, const AttentionSite& site) {
  attend_and_project(linear, site,
                     [&](const ops::QuantizedRows& to) { linear.executor().run(rotated_attention_of(site, to)); });
}

void single_attention(LinearLayers& linear, const AttentionSite& site) {
  project(linear, site);
  rotate_then_attend(linear, site);
}

void normed_attention(LinearLayers& linear, const AttentionSite& site) {
  project_normalising_row(linear, site);
  rotate_then_attend(linear, site);
}

void rotated_attention(LinearLayers& linear, const AttentionSite& site) {
  project(linear, site);
  attend_rotated(linear, site);
}

void normed_rotated_attention(LinearLayers& linear, const AttentionSite& site) {
  project_normalising_row(linear, site);
  attend_rotated(linear, site);
}

void project_token(LinearLayers& linear, const AttentionSite& site) {
  const TensorView qkv = reshaped(site.qkv, {site.qkv.shape[1], site.qkv.shape[2]});
  linear.executor().run(
      ops::AttentionProjected{site.token_heads(), site.length, qkv, site.hidden, site.output, site.hidden});
}

void projected_attention(LinearLayers& linear, const AttentionSite& site) {
  project(linear, site);
  project_token(linear, site);
}

void normed_projected_attention(LinearLayers& linear, const AttentionSite& site) {
  project_normalising_row(linear, site);
  project_token(linear, site);
}

void whole_attention(LinearLayers& linear, const AttentionSite& site) {
  linear.executor().run(ops::AttentionLayer{site.token_heads(), site.length, site.hidden, site.input_norm,
                                            site.qkv_weight.all().front(), site.output, site.hidden});
}

// Weights of several types are several products.
bool is_whole_attention(const SiteKey& key) {
  const ElementType qkv = type_of(key, "QKV");
  return type_of(key, "K") == qkv && type_of(key, "V") == qkv &&
         ops::AttentionLayer::takes(qkv, type_of(key, "OUTPUT"));
}

// Until the ranges of the context are joined the projection waits, about as long as a launch takes, and no reason to
// join them as long as nothing is measured.
double more_for_projection(const SiteKey& /*key*/) { return 1; }
double more_for_qkv_and_projection(const SiteKey& key) { return more_for_qkv(key) + more_for_projection(key); }
// Until queries, keys and values are there attention waits, too.
double more_for_whole_attention(const SiteKey& key) { return 1 + more_for_projection(key); }

constexpr std::array kDecodeAttentions{
    Alternative<AttentionSite>{kSingle, "each operation by itself", always, nothing_more, single_attention},
    Alternative<AttentionSite>{"normed", "the norm by the product after it", normalises_qkv, more_for_qkv,
                               normed_attention},
    Alternative<AttentionSite>{"rotated", "norms, positions and cache of queries and keys by attention", always,
                               nothing_more, rotated_attention},
    Alternative<AttentionSite>{"normed_rotated",
                               "the norm by the product after it; norms, positions and cache by attention",
                               normalises_qkv, more_for_qkv, normed_rotated_attention},
    Alternative<AttentionSite>{"projected",
                               "norms, positions, cache, attention and the projection after it in one launch", always,
                               more_for_projection, projected_attention},
    Alternative<AttentionSite>{
        "normed_projected", "the norm by the product after it; all from norms of heads to the projection in one launch",
        normalises_qkv, more_for_qkv_and_projection, normed_projected_attention},
    Alternative<AttentionSite>{"whole", "all from the norm to the projection in one launch", is_whole_attention,
                               more_for_whole_attention, whole_attention}};

double more_for_gate_up(const SiteKey& key) {
  return more_for_norm(type_of(key, "GATE_UP"), 2 * dimension_of(key, "INTERMEDIATE"));
}

// The wait for the slowest block of gate and up, in which the first weights of down come. With float weights, which are
// several times as many bytes, no card was seen to gain by it.
double more_for_whole_mlp(const SiteKey& key) { return is_packed_format(type_of(key, "GATE_UP")) ? 0.5 : 2; }

constexpr std::array kDecodeMlps{
    Alternative<MlpSite>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpSite>{"normed", "the norm by the product after it", normalises_gate_up, more_for_gate_up,
                         normed_mlp},
    Alternative<MlpSite>{"whole", "norm, gate and up, SwiGLU, down and residual in one launch", is_whole,
                         more_for_whole_mlp, whole_mlp}};

ops::Rmsnorm norm_of(const HeadSite& site) {
  return {.x = site.hidden, .weight = site.norm, .y = site.input, .epsilon = site.epsilon};
}

ops::Matmul product_of(const HeadSite& site) { return {.a = site.input, .b = site.head, .c = site.logits}; }

void single_head(LinearLayers& linear, const HeadSite& site) { linear.run_normed(norm_of(site), product_of(site)); }

void normed_head(LinearLayers& linear, const HeadSite& site) {
  linear.executor().run(joined(norm_of(site), product_of(site)));
}

bool normalises_head(const SiteKey& key) {
  return dimension_of(key, "ROWS") == 1 && can_normalise_row(type_of(key, "HEAD"), dimension_of(key, "HIDDEN"));
}

double more_for_head(const SiteKey& key) {
  return more_for_norm(type_of(key, "HEAD"), dimension_of(key, "VOCABULARY"));
}

constexpr std::array kHeads{
    Alternative<HeadSite>{kSingle, "each operation by itself", always, nothing_more, single_head},
    Alternative<HeadSite>{"normed", "the norm by the product after it", normalises_head, more_for_head, normed_head}};

void single_next_token(LinearLayers& linear, const NextTokenSite& site) {
  linear.executor().run(site.next.sample);
  linear.executor().run(site.next.advance);
  linear.executor().run(site.next.gather());
}

void joined_next_token(LinearLayers& linear, const NextTokenSite& site) { linear.executor().run(site.next); }

constexpr std::array kNextTokens{
    Alternative<NextTokenSite>{kSingle, "each operation by itself", always, nothing_more, single_next_token},
    Alternative<NextTokenSite>{"joined", "the token, its position and its embedding in one launch", always,
                               nothing_more, joined_next_token}};

}  // namespace

const SiteList<AttentionSite> kDecodeAttention{
    "site_decode_attention", "a token's attention: norm, projection, positions, attention, projection",
    kDecodeAttentions};
const SiteList<MlpSite> kDecodeMlp{"site_decode_mlp", "a token's MLP: norm, gate and up, SwiGLU, down", kDecodeMlps};
const SiteList<HeadSite> kHead{"site_head", "logits: norm and head", kHeads};
const SiteList<NextTokenSite> kNextToken{
    "site_next_token", "the next token: chosen, its position in the sequence, its embedding", kNextTokens};

}  // namespace pascaline
