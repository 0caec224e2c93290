#include <array>

#include "model/fusion/site_list.hpp"
#include "model/fusion/site_steps.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"

// The sites of attention to some of the keys.
namespace pascaline {
namespace {

AttentionChoice choice_of(const SiteKey& key) {
  return {{dimension_of(key, "BLOCK"), dimension_of(key, "WINDOW"), dimension_of(key, "SINKS"),
           dimension_of(key, "STRIDE")},
          static_cast<double>(dimension_of(key, "PART")) / ops::ChooseBlocks::kAll};
}

// A context that is so short that every token sees all before it: then attention to all of them gives the same.
bool leaves_nothing_out(const SiteKey& key) { return dimension_of(key, "KEYS") < shortest_sparse(choice_of(key)); }

TensorView cached_rows(const TensorView& scales, std::int64_t keys) {
  return ops::is_given(scales) ? rows_of(scales, 0, keys) : scales;
}

// Of what these rows added to the cache.
void pool(LinearLayers& linear, const SparseAttentionSite& site) {
  if (site.choice.chooses_blocks()) {
    linear.executor().run(ops::PoolBlocks{.k = rows_of(site.k_cache, 0, site.keys()),
                                          .length = site.length,
                                          .means = site.means,
                                          .block = site.choice.mask.block,
                                          .added = site.rows(),
                                          .k_scales = cached_rows(site.k_scales, site.keys())});
  }
}

// The lists of blocks that are seen; none for a pattern.
TensorView choose(LinearLayers& linear, const SparseAttentionSite& site) {
  if (!site.choice.chooses_blocks()) {
    return {};
  }
  const std::int64_t block = site.choice.mask.block;
  linear.executor().run(ops::ScoreBlocks{.q = site.q,
                                         .means = site.means,
                                         .length = site.length,
                                         .scores = site.scores,
                                         .keys = site.keys(),
                                         .block = block});
  linear.executor().run(ops::ChooseBlocks{.scores = site.scores,
                                          .length = site.length,
                                          .blocks = site.lists,
                                          .queries = site.rows(),
                                          .keys = site.keys(),
                                          .block = block,
                                          .part = site.choice.part()});
  return site.lists;
}

// Behind the projection to queries, keys and values: all that is left of the site.
void sparse_token(LinearLayers& linear, const SparseAttentionSite& site) {
  linear.executor().run(rotation_of(site));
  pool(linear, site);
  const TensorView lists = choose(linear, site);
  attend_and_project(linear, site, [&](const ops::QuantizedRows& to) {
    linear.executor().run(ops::AttentionSparseDecode{
        .q = reshaped(site.q, {site.q.shape[1], site.q.shape[2]}),
        .k = site.k_cache,
        .v = site.v_cache,
        .length = site.length,
        .out = to.values,
        .blocks = ops::is_given(lists) ? reshaped(lists, {lists.shape[0], lists.shape[2]}) : lists,
        .mask = site.choice.mask,
        .k_scales = site.k_scales,
        .v_scales = site.v_scales,
        .scales = to.scales});
  });
}

void whole_token(LinearLayers& linear, const SparseAttentionSite& site) {
  attend_and_project(linear, site,
                     [&](const ops::QuantizedRows& to) { linear.executor().run(rotated_attention_of(site, to)); });
  pool(linear, site);
}

void single_sparse_token(LinearLayers& linear, const SparseAttentionSite& site) {
  project(linear, site);
  sparse_token(linear, site);
}

void normed_sparse_token(LinearLayers& linear, const SparseAttentionSite& site) {
  project_normalising_row(linear, site);
  sparse_token(linear, site);
}

void rotated_sparse_token(LinearLayers& linear, const SparseAttentionSite& site) {
  project(linear, site);
  whole_token(linear, site);
}

void normed_rotated_sparse_token(LinearLayers& linear, const SparseAttentionSite& site) {
  project_normalising_row(linear, site);
  whole_token(linear, site);
}

bool normalises_and_sees_all(const SiteKey& key) { return normalises_qkv(key) && leaves_nothing_out(key); }

constexpr std::array kDecodeSparseAttentions{
    Alternative<SparseAttentionSite>{kSingle, "each operation by itself", always, nothing_more, single_sparse_token},
    Alternative<SparseAttentionSite>{"normed", "the norm by the product after it", normalises_qkv, more_for_qkv,
                                     normed_sparse_token},
    Alternative<SparseAttentionSite>{"rotated", "norms, positions, cache and attention to all keys, of a short context",
                                     leaves_nothing_out, nothing_more, rotated_sparse_token},
    Alternative<SparseAttentionSite>{"normed_rotated",
                                     "the norm by the product after it; attention to all keys of a short context",
                                     normalises_and_sees_all, more_for_qkv, normed_rotated_sparse_token}};

void sparse_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  linear.executor().run(rotation_of(site));
  pool(linear, site);
  const TensorView lists = choose(linear, site);
  linear.executor().run(ops::AttentionSparsePrefill{.q = site.q,
                                                    .k = rows_of(site.k_cache, 0, site.keys()),
                                                    .v = rows_of(site.v_cache, 0, site.keys()),
                                                    .out = site.attended,
                                                    .blocks = lists,
                                                    .mask = site.choice.mask,
                                                    .k_scales = cached_rows(site.k_scales, site.keys()),
                                                    .v_scales = cached_rows(site.v_scales, site.keys())});
  linear.run(output_of(site, site.attended));
}

void whole_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  linear.executor().run(rotation_of(site));
  pool(linear, site);
  linear.executor().run(prompt_attention_of(site));
  linear.run(output_of(site, site.attended));
}

void single_sparse_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  project(linear, site);
  sparse_prompt(linear, site);
}

void normed_sparse_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  project_normalising(linear, site);
  sparse_prompt(linear, site);
}

void whole_sparse_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  project(linear, site);
  whole_prompt(linear, site);
}

void normed_whole_sparse_prompt(LinearLayers& linear, const SparseAttentionSite& site) {
  project_normalising(linear, site);
  whole_prompt(linear, site);
}

bool normalises_prompt_that_sees_all(const SiteKey& key) {
  return normalises_prompt_qkv(key) && leaves_nothing_out(key);
}

constexpr std::array kPromptSparseAttentions{
    Alternative<SparseAttentionSite>{kSingle, "each operation by itself", always, nothing_more, single_sparse_prompt},
    Alternative<SparseAttentionSite>{"normed", "the norm by the projection after it", normalises_prompt_qkv,
                                     more_for_normalising, normed_sparse_prompt},
    Alternative<SparseAttentionSite>{"dense", "attention to all keys, of a short context", leaves_nothing_out,
                                     nothing_more, whole_sparse_prompt},
    Alternative<SparseAttentionSite>{"normed_dense", "the norm by the projection after it; attention to all keys",
                                     normalises_prompt_that_sees_all, more_for_normalising,
                                     normed_whole_sparse_prompt}};

}  // namespace

const SiteList<SparseAttentionSite> kDecodeSparseAttention{
    "site_decode_sparse_attention",
    "a token's attention to some of the keys: norm, projection, positions, choice, attention, projection",
    kDecodeSparseAttentions};
const SiteList<SparseAttentionSite> kPromptSparseAttention{
    "site_prompt_sparse_attention",
    "a prompt's attention to some of the keys: norm, projection, positions, choice, attention, projection",
    kPromptSparseAttentions};

}  // namespace pascaline
