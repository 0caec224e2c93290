#include <array>

#include "model/fusion/place_list.hpp"
#include "model/fusion/place_steps.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"

// The places of attention to some of the keys.
namespace pascaline {
namespace {

AttentionChoice choice_of(const PlaceKey& key) {
  return {{dimension_of(key, "BLOCK"), dimension_of(key, "WINDOW"), dimension_of(key, "SINKS"),
           dimension_of(key, "STRIDE")},
          static_cast<double>(dimension_of(key, "PART")) / ops::ChooseBlocks::kAll};
}

// A context that is so short that every token sees all before it: then attention to all of them gives the same.
bool leaves_nothing_out(const PlaceKey& key) { return dimension_of(key, "KEYS") < shortest_sparse(choice_of(key)); }

TensorView cached_rows(const TensorView& scales, std::int64_t keys) {
  return ops::is_given(scales) ? rows_of(scales, 0, keys) : scales;
}

// Of what these rows added to the cache.
void pool(LinearLayers& linear, const SparseAttentionPlace& place) {
  if (place.choice.chooses_blocks()) {
    linear.executor().run(ops::PoolBlocks{.k = rows_of(place.k_cache, 0, place.keys()),
                                          .length = place.length,
                                          .means = place.means,
                                          .block = place.choice.mask.block,
                                          .added = place.rows(),
                                          .k_scales = cached_rows(place.k_scales, place.keys())});
  }
}

// The lists of blocks that are seen; none for a pattern.
TensorView choose(LinearLayers& linear, const SparseAttentionPlace& place) {
  if (!place.choice.chooses_blocks()) {
    return {};
  }
  const std::int64_t block = place.choice.mask.block;
  linear.executor().run(ops::ScoreBlocks{.q = place.q,
                                         .means = place.means,
                                         .length = place.length,
                                         .scores = place.scores,
                                         .keys = place.keys(),
                                         .block = block});
  linear.executor().run(ops::ChooseBlocks{.scores = place.scores,
                                          .length = place.length,
                                          .blocks = place.lists,
                                          .queries = place.rows(),
                                          .keys = place.keys(),
                                          .block = block,
                                          .part = place.choice.part()});
  return place.lists;
}

// Behind the projection to queries, keys and values: all that is left of the place.
void sparse_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  linear.executor().run(rotation_of(place));
  pool(linear, place);
  const TensorView lists = choose(linear, place);
  attend_and_project(linear, place, [&](const ops::QuantizedRows& to) {
    linear.executor().run(ops::AttentionSparseDecode{
        .q = reshaped(place.q, {place.q.shape[1], place.q.shape[2]}),
        .k = place.k_cache,
        .v = place.v_cache,
        .length = place.length,
        .out = to.values,
        .blocks = ops::is_given(lists) ? reshaped(lists, {lists.shape[0], lists.shape[2]}) : lists,
        .mask = place.choice.mask,
        .k_scales = place.k_scales,
        .v_scales = place.v_scales,
        .scales = to.scales});
  });
}

void whole_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  attend_and_project(linear, place,
                     [&](const ops::QuantizedRows& to) { linear.executor().run(rotated_attention_of(place, to)); });
  pool(linear, place);
}

void single_sparse_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  project(linear, place);
  sparse_token(linear, place);
}

void normed_sparse_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  project_normalising_row(linear, place);
  sparse_token(linear, place);
}

void rotated_sparse_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  project(linear, place);
  whole_token(linear, place);
}

void normed_rotated_sparse_token(LinearLayers& linear, const SparseAttentionPlace& place) {
  project_normalising_row(linear, place);
  whole_token(linear, place);
}

bool normalises_and_sees_all(const PlaceKey& key) { return normalises_qkv(key) && leaves_nothing_out(key); }

constexpr std::array kDecodeSparseAttentions{
    Alternative<SparseAttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_sparse_token},
    Alternative<SparseAttentionPlace>{"normed", "the norm by the product after it", normalises_qkv, more_for_qkv,
                                      normed_sparse_token},
    Alternative<SparseAttentionPlace>{"rotated",
                                      "norms, positions, cache and attention to all keys, of a short context",
                                      leaves_nothing_out, nothing_more, rotated_sparse_token},
    Alternative<SparseAttentionPlace>{"normed_rotated",
                                      "the norm by the product after it; attention to all keys of a short context",
                                      normalises_and_sees_all, more_for_qkv, normed_rotated_sparse_token}};

void sparse_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  linear.executor().run(rotation_of(place));
  pool(linear, place);
  const TensorView lists = choose(linear, place);
  linear.executor().run(ops::AttentionSparsePrefill{.q = place.q,
                                                    .k = rows_of(place.k_cache, 0, place.keys()),
                                                    .v = rows_of(place.v_cache, 0, place.keys()),
                                                    .out = place.attended,
                                                    .blocks = lists,
                                                    .mask = place.choice.mask,
                                                    .k_scales = cached_rows(place.k_scales, place.keys()),
                                                    .v_scales = cached_rows(place.v_scales, place.keys())});
  linear.run(output_of(place, place.attended));
}

void whole_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  linear.executor().run(rotation_of(place));
  pool(linear, place);
  linear.executor().run(prompt_attention_of(place));
  linear.run(output_of(place, place.attended));
}

void single_sparse_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  project(linear, place);
  sparse_prompt(linear, place);
}

void normed_sparse_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  project_normalising(linear, place);
  sparse_prompt(linear, place);
}

void whole_sparse_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  project(linear, place);
  whole_prompt(linear, place);
}

void normed_whole_sparse_prompt(LinearLayers& linear, const SparseAttentionPlace& place) {
  project_normalising(linear, place);
  whole_prompt(linear, place);
}

bool normalises_prompt_that_sees_all(const PlaceKey& key) {
  return normalises_prompt_qkv(key) && leaves_nothing_out(key);
}

constexpr std::array kPromptSparseAttentions{
    Alternative<SparseAttentionPlace>{kSingle, "each operation by itself", always, nothing_more, single_sparse_prompt},
    Alternative<SparseAttentionPlace>{"normed", "the norm by the projection after it", normalises_prompt_qkv,
                                      more_for_normalising, normed_sparse_prompt},
    Alternative<SparseAttentionPlace>{"dense", "attention to all keys, of a short context", leaves_nothing_out,
                                      nothing_more, whole_sparse_prompt},
    Alternative<SparseAttentionPlace>{"normed_dense", "the norm by the projection after it; attention to all keys",
                                      normalises_prompt_that_sees_all, more_for_normalising,
                                      normed_whole_sparse_prompt}};

}  // namespace

const PlaceList<SparseAttentionPlace> kDecodeSparseAttention{
    "place_decode_sparse_attention",
    "a token's attention to some of the keys: norm, projection, positions, choice, attention, projection",
    kDecodeSparseAttentions};
const PlaceList<SparseAttentionPlace> kPromptSparseAttention{
    "place_prompt_sparse_attention",
    "a prompt's attention to some of the keys: norm, projection, positions, choice, attention, projection",
    kPromptSparseAttentions};

}  // namespace pascaline
