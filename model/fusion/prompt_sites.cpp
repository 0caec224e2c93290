#include <array>

#include "model/fusion/site_list.hpp"
#include "model/fusion/site_steps.hpp"

// The sites of a pass of several tokens.
namespace pascaline {
namespace {

// What follows queries, keys and values.
void attend_to_rows(LinearLayers& linear, const AttentionSite& site) {
  linear.executor().run(rotation_of(site));
  linear.executor().run(prompt_attention_of(site));
  linear.run(output_of(site, site.attended));
}

void single_prompt_attention(LinearLayers& linear, const AttentionSite& site) {
  project(linear, site);
  attend_to_rows(linear, site);
}

// The same with rows normalised by the projection.
void normed_prompt_attention(LinearLayers& linear, const AttentionSite& site) {
  project_normalising(linear, site);
  attend_to_rows(linear, site);
}

// The same of few rows, with products that normalise them.
void normed_few_attention(LinearLayers& linear, const AttentionSite& site) {
  project_normalising_row(linear, site);
  attend_to_rows(linear, site);
}

// Each block of threads normalises all rows: more than a launch takes, until a card was seen to gain by it.
double more_for_few(const SiteKey& key) { return static_cast<double>(dimension_of(key, "ROWS")); }

constexpr std::array kFewAttentions{
    Alternative<AttentionSite>{kSingle, "each operation by itself", always, nothing_more, single_prompt_attention},
    Alternative<AttentionSite>{"normed", "the norm by the projection after it", normalises_qkv, more_for_few,
                               normed_few_attention}};

constexpr std::array kPromptAttentions{
    Alternative<AttentionSite>{kSingle, "each operation by itself", always, nothing_more, single_prompt_attention},
    Alternative<AttentionSite>{"normed", "the norm by the projection after it", normalises_prompt_qkv,
                               more_for_normalising, normed_prompt_attention}};

constexpr std::array kFewMlps{
    Alternative<MlpSite>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpSite>{"normed", "the norm by the product after it", normalises_gate_up, more_for_few, normed_mlp},
    Alternative<MlpSite>{"whole", "norm, gate and up, SwiGLU, down and residual in one launch", is_whole, more_for_few,
                         whole_mlp}};

void normed_prompt_mlp(LinearLayers& linear, const MlpSite& site) {
  run_normalising(linear, post_norm_of(site), gate_up_of(site));
  linear.run(down_of(site));
}

bool normalises_prompt_gate_up(const SiteKey& key) {
  return can_normalise(type_of(key, "GATE_UP"), dimension_of(key, "ROWS"));
}

constexpr std::array kPromptMlps{
    Alternative<MlpSite>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpSite>{"normed", "the norm by the product after it", normalises_prompt_gate_up, more_for_normalising,
                         normed_prompt_mlp}};

}  // namespace

const SiteList<AttentionSite> kFewAttention{
    "site_few_attention", "attention of two to eight tokens: norm, projection, positions, attention, projection",
    kFewAttentions};
const SiteList<MlpSite> kFewMlp{"site_few_mlp", "the MLP of two to eight tokens: norm, gate and up, SwiGLU, down",
                                kFewMlps};
const SiteList<AttentionSite> kPromptAttention{
    "site_prompt_attention", "a prompt's attention: norm, projection, positions, attention, projection",
    kPromptAttentions};
const SiteList<MlpSite> kPromptMlp{"site_prompt_mlp", "a prompt's MLP: norm, gate and up, SwiGLU, down", kPromptMlps};

}  // namespace pascaline
