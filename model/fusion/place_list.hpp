#pragma once

#include <span>
#include <string_view>

#include "model/fusion/places.hpp"
#include "model/linear_layers.hpp"

namespace pascaline {

/// What every list begins with: each operation by itself, but for what a product does with its result, and rows that
/// are rounded to int8 by the operation that they come from. It fits everywhere.
inline constexpr const char* kSingle = "single";

/// One way to compute a place.
template <typename Place>
struct Alternative {
  const char* name;  ///< lower case and underscores: in plans, files and trials
  const char* what;  ///< for people: what is joined
  /// Whether it can be used there.
  bool (*fits)(const PlaceKey& key);
  /// A guess, for as long as nothing is measured: what it does more than "single", in launches that would take as long.
  double (*extra_launches)(const PlaceKey& key);
  void (*run)(LinearLayers& linear, const Place& place);
};

/// The ways to compute a kind of place.
template <typename Place>
struct PlaceList {
  const char* name;  ///< of the kind, as in its key
  const char* what;  ///< for people
  std::span<const Alternative<Place>> alternatives;
};

extern const PlaceList<AttentionPlace> kDecodeAttention;
extern const PlaceList<MlpPlace> kDecodeMlp;
extern const PlaceList<AttentionPlace> kFewAttention;
extern const PlaceList<MlpPlace> kFewMlp;
extern const PlaceList<AttentionPlace> kPromptAttention;
extern const PlaceList<MlpPlace> kPromptMlp;
extern const PlaceList<HeadPlace> kHead;
extern const PlaceList<NextTokenPlace> kNextToken;
extern const PlaceList<SparseAttentionPlace> kDecodeSparseAttention;
extern const PlaceList<SparseAttentionPlace> kPromptSparseAttention;
extern const PlaceList<VisionAttentionPlace> kVisionAttention;
extern const PlaceList<VisionMlpPlace> kVisionMlp;
extern const PlaceList<MergerPlace> kMerger;

/// Calls `visit(list)` for each of them.
template <typename Visit>
void for_each_place(Visit&& visit) {
  visit(kDecodeAttention);
  visit(kDecodeSparseAttention);
  visit(kDecodeMlp);
  visit(kHead);
  visit(kNextToken);
  visit(kFewAttention);
  visit(kFewMlp);
  visit(kPromptAttention);
  visit(kPromptSparseAttention);
  visit(kPromptMlp);
  visit(kVisionAttention);
  visit(kVisionMlp);
  visit(kMerger);
}

/// For `fits` and `extra_launches`.
[[nodiscard]] inline bool always(const PlaceKey& /*key*/) { return true; }
[[nodiscard]] inline double nothing_more(const PlaceKey& /*key*/) { return 0; }

}  // namespace pascaline
