#include <array>

#include "runtime/model/place_list.hpp"
#include "runtime/model/place_steps.hpp"

// The places of a pass of several tokens.
namespace pascaline {
namespace {

void single_prompt_attention(LinearLayers& linear, const AttentionPlace& place) {
  project(linear, place);
  linear.executor().run(rotation_of(place));
  linear.executor().run(prompt_attention_of(place));
  linear.run(output_of(place, place.attended));
}

// The same with rows normalised by the projection.
void normed_prompt_attention(LinearLayers& linear, const AttentionPlace& place) {
  project_normalising(linear, place);
  linear.executor().run(rotation_of(place));
  linear.executor().run(prompt_attention_of(place));
  linear.run(output_of(place, place.attended));
}

constexpr std::array kPromptAttentions{
    Alternative<AttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_prompt_attention},
    Alternative<AttentionPlace>{"normed", "the norm by the projection after it", normalises_prompt_qkv,
                                more_for_normalising, normed_prompt_attention}};

void single_prompt_mlp(LinearLayers& linear, const MlpPlace& place) {
  linear.run_gated(post_norm_of(place), gate_up_of(place), down_of(place));
}

void normed_prompt_mlp(LinearLayers& linear, const MlpPlace& place) {
  run_normalising(linear, post_norm_of(place), gate_up_of(place));
  linear.run(down_of(place));
}

bool normalises_prompt_gate_up(const PlaceKey& key) {
  return can_normalise(type_of(key, "GATE_UP"), dimension_of(key, "ROWS"));
}

constexpr std::array kPromptMlps{
    Alternative<MlpPlace>{kSingle, "each operation by itself", always, nothing_more, single_prompt_mlp},
    Alternative<MlpPlace>{"normed", "the norm by the product after it", normalises_prompt_gate_up, more_for_normalising,
                          normed_prompt_mlp}};

}  // namespace

const PlaceList<AttentionPlace> kPromptAttention{
    "place_prompt_attention", "a prompt's attention: norm, projection, positions, attention, projection",
    kPromptAttentions};
const PlaceList<MlpPlace> kPromptMlp{"place_prompt_mlp", "a prompt's MLP: norm, gate and up, SwiGLU, down",
                                     kPromptMlps};

}  // namespace pascaline
