#include <array>

#include "model/fusion/place_list.hpp"
#include "model/fusion/place_steps.hpp"

// The places of a pass of several tokens.
namespace pascaline {
namespace {

// What follows queries, keys and values.
void attend_to_rows(LinearLayers& linear, const AttentionPlace& place) {
  linear.executor().run(rotation_of(place));
  linear.executor().run(prompt_attention_of(place));
  linear.run(output_of(place, place.attended));
}

void single_prompt_attention(LinearLayers& linear, const AttentionPlace& place) {
  project(linear, place);
  attend_to_rows(linear, place);
}

// The same with rows normalised by the projection.
void normed_prompt_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising(linear, place);
  attend_to_rows(linear, place);
}

// The same of few rows, with products that normalise them.
void normed_few_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising_row(linear, place);
  attend_to_rows(linear, place);
}

// Each block of threads normalises all rows: more than a launch takes, until a card was seen to gain by it.
double more_for_few(const PlaceKey& key) { return static_cast<double>(dimension_of(key, "ROWS")); }

constexpr std::array kFewAttentions{
    Alternative<AttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_prompt_attention},
    Alternative<AttentionPlace>{"normed", "the norm by the projection after it", normalises_qkv, more_for_few,
                                normed_few_attention}};

constexpr std::array kPromptAttentions{
    Alternative<AttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_prompt_attention},
    Alternative<AttentionPlace>{"normed", "the norm by the projection after it", normalises_prompt_qkv,
                                more_for_normalising, normed_prompt_attention}};

constexpr std::array kFewMlps{
    Alternative<MlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpPlace>{"normed", "the norm by the product after it", normalises_gate_up, more_for_few, normed_mlp},
    Alternative<MlpPlace>{"whole", "norm, gate and up, SwiGLU, down and residual in one launch", is_whole, more_for_few,
                          whole_mlp}};

void normed_prompt_mlp(LinearLayers& linear, const MlpPlace& place) {
  run_normalising(linear, post_norm_of(place), gate_up_of(place));
  linear.run(down_of(place));
}

bool normalises_prompt_gate_up(const PlaceKey& key) {
  return can_normalise(type_of(key, "GATE_UP"), dimension_of(key, "ROWS"));
}

constexpr std::array kPromptMlps{
    Alternative<MlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_mlp},
    Alternative<MlpPlace>{"normed", "the norm by the product after it", normalises_prompt_gate_up, more_for_normalising,
                          normed_prompt_mlp}};

}  // namespace

const PlaceList<AttentionPlace> kFewAttention{
    "place_few_attention", "attention of two to eight tokens: norm, projection, positions, attention, projection",
    kFewAttentions};
const PlaceList<MlpPlace> kFewMlp{"place_few_mlp", "the MLP of two to eight tokens: norm, gate and up, SwiGLU, down",
                                  kFewMlps};
const PlaceList<AttentionPlace> kPromptAttention{
    "place_prompt_attention", "a prompt's attention: norm, projection, positions, attention, projection",
    kPromptAttentions};
const PlaceList<MlpPlace> kPromptMlp{"place_prompt_mlp", "a prompt's MLP: norm, gate and up, SwiGLU, down",
                                     kPromptMlps};

}  // namespace pascaline
