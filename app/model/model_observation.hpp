#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"

namespace pascaline {

/// A model that is only followed, not run, and the passes to look at.
struct ObservedModel {
  std::unique_ptr<ModelSession> session;
  std::vector<ModelPass> passes;
};

/// Opens the model so that its operations are told and nothing is compiled, loaded or launched (see
/// ModelSessionOptions::observe_only), with passes of the sizes given: reading each prompt and a decoding step after
/// it, and a prompt that is an image (of `sizes`, or of the largest usual size that fits). Throws Error and its kinds
/// as the session does, and if the model runs on the processor.
[[nodiscard]] ObservedModel open_observed(ModelCommandOptions model, PassCommandOptions sizes);

/// The model's phase that a pass is part of: "prompt", "token" or "image".
[[nodiscard]] std::string phase_of(const ModelPass& pass);

/// A site as a pass met it.
struct ObservedSite {
  SiteKey key;
  const char* what = nullptr;
  std::vector<SiteCandidate> candidates;
  SiteChoice choice;  ///< as nothing was measured
  std::int64_t uses = 0;

  [[nodiscard]] std::int64_t launches(std::size_t candidate) const {
    return static_cast<std::int64_t>(candidates.at(candidate).launches.size());
  }
};

/// What a pass launches.
struct ObservedPass {
  std::string name;  ///< as of ModelPass
  std::string per;
  std::int64_t launches = 0;  ///< of all its operations, with the choices of its sites
  std::vector<ObservedSite> sites;

  /// With every site computed by single operations.
  [[nodiscard]] std::int64_t single_launches() const;
};

[[nodiscard]] ObservedPass observe_sites(ModelSession& session, const ModelPass& pass);

}  // namespace pascaline
