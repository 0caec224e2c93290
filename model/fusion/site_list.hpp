#pragma once

#include <span>
#include <string_view>

#include "model/fusion/sites.hpp"
#include "model/linear_layers.hpp"

namespace pascaline {

/// What every list begins with: each operation by itself, but for what a product does with its result, and rows that
/// are rounded to int8 by the operation that they come from. It fits everywhere.
inline constexpr const char* kSingle = "single";

/// One way to compute a site.
template <typename Site>
struct Alternative {
  const char* name;  ///< lower case and underscores: in plans, files and trials
  const char* what;  ///< for people: what is joined
  /// Whether it can be used there.
  bool (*fits)(const SiteKey& key);
  /// A guess, for as long as nothing is measured: what it does more than "single", in launches that would take as long.
  double (*extra_launches)(const SiteKey& key);
  void (*run)(LinearLayers& linear, const Site& site);
};

/// The ways to compute a kind of site.
template <typename Site>
struct SiteList {
  const char* name;  ///< of the kind, as in its key
  const char* what;  ///< for people
  std::span<const Alternative<Site>> alternatives;
};

extern const SiteList<AttentionSite> kDecodeAttention;
extern const SiteList<MlpSite> kDecodeMlp;
extern const SiteList<AttentionSite> kFewAttention;
extern const SiteList<MlpSite> kFewMlp;
extern const SiteList<AttentionSite> kPromptAttention;
extern const SiteList<MlpSite> kPromptMlp;
extern const SiteList<HeadSite> kHead;
extern const SiteList<NextTokenSite> kNextToken;
extern const SiteList<SparseAttentionSite> kDecodeSparseAttention;
extern const SiteList<SparseAttentionSite> kPromptSparseAttention;
extern const SiteList<VisionAttentionSite> kVisionAttention;
extern const SiteList<VisionMlpSite> kVisionMlp;
extern const SiteList<MergerSite> kMerger;

/// Calls `visit(list)` for each of them.
template <typename Visit>
void for_each_site(Visit&& visit) {
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
[[nodiscard]] inline bool always(const SiteKey& /*key*/) { return true; }
[[nodiscard]] inline double nothing_more(const SiteKey& /*key*/) { return 0; }

}  // namespace pascaline
