#include "model/fusion/places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "model/fusion/place_list.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {

bool same_place(const PlaceKey& a, const PlaceKey& b) noexcept {
  return a.kernel().hash() == b.kernel().hash() && std::ranges::equal(a.dimensions(), b.dimensions()) &&
         std::ranges::equal(a.types(), b.types());
}

std::size_t place_hash(const PlaceKey& key) noexcept {
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

std::int64_t dimension_of(const PlaceKey& key, const char* name) { return key.named().dimension(name); }

ElementType type_of(const PlaceKey& key, const char* name) { return key.named().type(name); }

namespace {

// Sizes and types of attention, which has that many keys.
void add_attention(PlaceKey& key, const AttentionPlace& place, std::int64_t keys) {
  if (place.rows() > 1) {
    key.add({"ROWS", place.rows()});
  }
  key.add({"HIDDEN", place.hidden.shape[1]});
  key.add({"HEADS", place.q.shape[1]});
  key.add({"KV_HEADS", place.k_cache.shape[1]});
  key.add({"HEAD_DIM", place.k_cache.shape[2]});
  key.add({"KEYS", keys});
  key.add({"QK_NORM", ops::is_given(place.q_norm) ? 1 : 0});
  key.add({"SECTION_H", place.section_h});
  key.add({"SECTION_W", place.section_w});
  const std::int64_t queries = place.q.shape[1] * place.k_cache.shape[2];
  const std::int64_t key_rows = place.k_cache.shape[1] * place.k_cache.shape[2];
  key.add({"QKV", place.qkv_weight.type_of(0)});
  key.add({"K", place.qkv_weight.type_of(queries)});
  key.add({"V", place.qkv_weight.type_of(queries + key_rows)});
  key.add({"OUTPUT", place.output.type});
  key.add({"CACHE", place.k_cache.type});
}

}  // namespace

std::int64_t AttentionPlace::keys() const noexcept { return rows() == 1 ? k_cache.shape[0] : cached + rows(); }

PlaceKey AttentionPlace::key() const {
  PlaceKey key(rows() == 1               ? KernelName("place_decode_attention")
               : rows() <= ops::kFewRows ? KernelName("place_few_attention")
                                         : KernelName("place_prompt_attention"));
  add_attention(key, *this, keys());
  return key;
}

const PlaceList<AttentionPlace>& AttentionPlace::list() const noexcept {
  return rows() == 1 ? kDecodeAttention : rows() <= ops::kFewRows ? kFewAttention : kPromptAttention;
}

PlaceKey SparseAttentionPlace::key() const {
  PlaceKey key(rows() == 1 ? KernelName("place_decode_sparse_attention") : KernelName("place_prompt_sparse_attention"));
  add_attention(key, *this, keys());
  const ops::SparseMask& mask = choice.mask;
  key.add({"BLOCK", mask.block});
  key.add({"WINDOW", mask.window});
  key.add({"SINKS", mask.sinks});
  key.add({"STRIDE", mask.stride});
  key.add({"PART", choice.chooses_blocks() ? choice.part() : 0});
  return key;
}

const PlaceList<SparseAttentionPlace>& SparseAttentionPlace::list() const noexcept {
  return rows() == 1 ? kDecodeSparseAttention : kPromptSparseAttention;
}

PlaceKey MlpPlace::key() const {
  if (rows() == 1) {
    return {"place_decode_mlp",
            {{"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", gated.shape[1]}},
            {{"GATE_UP", gate_up.type}, {"DOWN", down.type}}};
  }
  return {rows() <= ops::kFewRows ? KernelName("place_few_mlp") : KernelName("place_prompt_mlp"),
          {{"ROWS", rows()}, {"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", gated.shape[1]}},
          {{"GATE_UP", gate_up.type}, {"DOWN", down.type}}};
}

const PlaceList<MlpPlace>& MlpPlace::list() const noexcept {
  return rows() == 1 ? kDecodeMlp : rows() <= ops::kFewRows ? kFewMlp : kPromptMlp;
}

PlaceKey HeadPlace::key() const {
  return {"place_head",
          {{"ROWS", hidden.shape[0]}, {"HIDDEN", hidden.shape[1]}, {"VOCABULARY", logits.shape[1]}},
          {{"HEAD", head.type}}};
}

const PlaceList<HeadPlace>& HeadPlace::list() const noexcept { return kHead; }

PlaceKey NextTokenPlace::key() const {
  return {"place_next_token",
          {{"HIDDEN", next.next.shape[1]}, {"VOCABULARY", next.sample.logits.shape[0]}},
          {{"TABLE", next.table.type}}};
}

const PlaceList<NextTokenPlace>& NextTokenPlace::list() const noexcept { return kNextToken; }

PlaceKey VisionAttentionPlace::key() const {
  return {"place_vision_attention",
          {{"ROWS", hidden.shape[0]},
           {"HIDDEN", hidden.shape[1]},
           {"HEADS", attended.shape[1]},
           {"HEAD_DIM", attended.shape[2]},
           {"SEGMENTS", ops::is_given(segment_starts) ? segment_starts.shape[0] - 1 : 1}},
          {{"QKV", qkv_weight.weight.type}, {"PROJECTION", projection.weight.type}}};
}

const PlaceList<VisionAttentionPlace>& VisionAttentionPlace::list() const noexcept { return kVisionAttention; }

PlaceKey VisionMlpPlace::key() const {
  return {"place_vision_mlp",
          {{"ROWS", hidden.shape[0]}, {"HIDDEN", hidden.shape[1]}, {"INTERMEDIATE", wide.shape[1]}},
          {{"FC1", fc1.weight.type}, {"FC2", fc2.weight.type}}};
}

const PlaceList<VisionMlpPlace>& VisionMlpPlace::list() const noexcept { return kVisionMlp; }

PlaceKey MergerPlace::key() const {
  return {"place_merger",
          {{"TOKENS", out.shape[0]},
           {"HIDDEN", hidden.shape[1]},
           {"MERGED", wide.shape[1]},
           {"OUT", out.shape[1]},
           {"MERGED_FIRST", merged_first ? 1 : 0}},
          {{"FC1", fc1.weight.type}, {"FC2", fc2.weight.type}}};
}

const PlaceList<MergerPlace>& MergerPlace::list() const noexcept { return kMerger; }

}  // namespace pascaline
