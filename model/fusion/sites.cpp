#include "model/fusion/sites.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "model/fusion/site_list.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {

bool same_site(const SiteKey& a, const SiteKey& b) noexcept {
  return a.kernel().hash() == b.kernel().hash() && std::ranges::equal(a.dimensions(), b.dimensions()) &&
         std::ranges::equal(a.types(), b.types());
}

std::size_t site_hash(const SiteKey& key) noexcept {
  std::uint64_t hash = key.kernel().hash();
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15U; };
  for (const std::int64_t value : key.dimensions()) {
    mix(static_cast<std::uint64_t>(value));
  }
  for (const ElementType type : key.types()) {
    mix(static_cast<std::uint64_t>(type));
  }
  return hash ^ (hash >> 32U);
}

std::int64_t dimension_of(const SiteKey& key, const char* name) { return key.named().dimension(name); }

ElementType type_of(const SiteKey& key, const char* name) { return key.named().type(name); }

namespace {

// Sizes and types of attention, which has that many keys.
void add_attention(SiteKey& key, const AttentionSite& site, std::int64_t keys) {
  if (site.rows() > 1) {
    key.add({"ROWS", site.rows()});
  }
  key.add({"HIDDEN", site.hidden.shape[1]});
  key.add({"HEADS", site.q.shape[1]});
  key.add({"KV_HEADS", site.k_cache.shape[1]});
  key.add({"HEAD_DIM", site.k_cache.shape[2]});
  key.add({"KEYS", keys});
  key.add({"QK_NORM", ops::is_given(site.q_weight) ? 1 : 0});
  key.add({"SECTION_H", site.section_h});
  key.add({"SECTION_W", site.section_w});
  const std::int64_t queries = site.q.shape[1] * site.k_cache.shape[2];
  const std::int64_t key_rows = site.k_cache.shape[1] * site.k_cache.shape[2];
  key.add({"QKV", site.qkv_weight.type_of(0)});
  key.add({"K", site.qkv_weight.type_of(queries)});
  key.add({"V", site.qkv_weight.type_of(queries + key_rows)});
  key.add({"OUTPUT", site.output.type});
  key.add({"CACHE", site.k_cache.type});
}

}  // namespace

std::int64_t AttentionSite::keys() const noexcept { return rows() == 1 ? k_cache.shape[0] : cached + rows(); }

SiteKey AttentionSite::key() const {
  SiteKey key(rows() == 1               ? KernelName("site_decode_attention")
              : rows() <= ops::kFewRows ? KernelName("site_few_attention")
                                        : KernelName("site_prompt_attention"));
  add_attention(key, *this, keys());
  return key;
}

const SiteList<AttentionSite>& AttentionSite::list() const noexcept {
  return rows() == 1 ? kDecodeAttention : rows() <= ops::kFewRows ? kFewAttention : kPromptAttention;
}

SiteKey SparseAttentionSite::key() const {
  SiteKey key(rows() == 1 ? KernelName("site_decode_sparse_attention") : KernelName("site_prompt_sparse_attention"));
  add_attention(key, *this, keys());
  const ops::SparseMask& mask = choice.mask;
  key.add({"BLOCK", mask.block});
  key.add({"WINDOW", mask.window});
  key.add({"SINKS", mask.sinks});
  key.add({"STRIDE", mask.stride});
  key.add({"PART", choice.chooses_blocks() ? choice.part() : 0});
  return key;
}

const SiteList<SparseAttentionSite>& SparseAttentionSite::list() const noexcept {
  return rows() == 1 ? kDecodeSparseAttention : kPromptSparseAttention;
}

SiteKey MlpSite::key() const {
  if (rows() == 1) {
    return {"site_decode_mlp",
            {{"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", gated.shape[1]}},
            {{"GATE_UP", gate_up.type}, {"DOWN", down.type}}};
  }
  return {rows() <= ops::kFewRows ? KernelName("site_few_mlp") : KernelName("site_prompt_mlp"),
          {{"ROWS", rows()}, {"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", gated.shape[1]}},
          {{"GATE_UP", gate_up.type}, {"DOWN", down.type}}};
}

const SiteList<MlpSite>& MlpSite::list() const noexcept {
  return rows() == 1 ? kDecodeMlp : rows() <= ops::kFewRows ? kFewMlp : kPromptMlp;
}

SiteKey HeadSite::key() const {
  return {"site_head",
          {{"ROWS", hidden.shape[0]}, {"HIDDEN", hidden.shape[1]}, {"VOCABULARY", logits.shape[1]}},
          {{"HEAD", head.type}}};
}

const SiteList<HeadSite>& HeadSite::list() const noexcept { return kHead; }

SiteKey NextTokenSite::key() const {
  return {"site_next_token",
          {{"HIDDEN", next.next.shape[1]}, {"VOCABULARY", next.sample.logits.shape[0]}},
          {{"TABLE", next.table.type}}};
}

const SiteList<NextTokenSite>& NextTokenSite::list() const noexcept { return kNextToken; }

SiteKey VisionAttentionSite::key() const {
  return {"site_vision_attention",
          {{"ROWS", hidden.shape[0]},
           {"HIDDEN", hidden.shape[1]},
           {"HEADS", attended.shape[1]},
           {"HEAD_DIM", attended.shape[2]},
           {"SEGMENTS", ops::is_given(segment_starts) ? segment_starts.shape[0] - 1 : 1}},
          {{"QKV", qkv_weight.weight.type}, {"PROJECTION", projection.weight.type}}};
}

const SiteList<VisionAttentionSite>& VisionAttentionSite::list() const noexcept { return kVisionAttention; }

SiteKey VisionMlpSite::key() const {
  return {"site_vision_mlp",
          {{"ROWS", hidden.shape[0]}, {"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", wide.shape[1]}},
          {{"FC1", fc1.weight.type}, {"FC2", fc2.weight.type}}};
}

const SiteList<VisionMlpSite>& VisionMlpSite::list() const noexcept { return kVisionMlp; }

SiteKey MergerSite::key() const {
  return {"site_merger",
          {{"TOKENS", out.shape[0]},
           {"HIDDEN", hidden.shape[1]},
           {"MERGED", wide.shape[1]},
           {"OUT", out.shape[1]},
           {"MERGED_FIRST", merged_first ? 1 : 0}},
          {{"FC1", fc1.weight.type}, {"FC2", fc2.weight.type}}};
}

const SiteList<MergerSite>& MergerSite::list() const noexcept { return kMerger; }

}  // namespace pascaline
