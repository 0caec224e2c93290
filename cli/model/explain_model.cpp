#include "cli/model/explain_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/model/model_observation.hpp"
#include "app/model/model_workload.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "core/device/emulator_name.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/statistics.hpp"
#include "model/fusion/fusion_file.hpp"
#include "model/fusion/site_space.hpp"
#include "model/model_sites.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::ordered_json;

// What the database has of one alternative of a site.
struct AlternativeRecord {
  TrialStatus status = TrialStatus::ok;
  std::string reason{};
  std::optional<TimeSummary> time{};
};

// A site with what was decided of it, in whichever passes.
struct ExplainedSite {
  ObservedSite site;
  SiteChoice choice;
  std::map<std::string, std::int64_t> uses{};               // by pass
  std::map<std::string, AlternativeRecord> alternatives{};  // by name
};

// Of the trials of today's sources on such a device for such a target, what finals say before what the search says, and
// what is newer before what is older.
std::map<std::string, AlternativeRecord> records_of(const Store& store, const Dispatcher& dispatcher,
                                                    const Problem& site) {
  std::map<std::string, AlternativeRecord> records;
  std::map<std::string, TrialStage> stages;
  const DeviceRow device = device_row(dispatcher.device().info());
  const std::string hash = site_source(site.kernel, dispatcher.kernels_folder()).hash;
  TrialFilter filter;
  filter.kernel = site.kernel;
  filter.problem = site.text();
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    const std::string name = alternative_of(stored.trial.config);
    if (!same_identity(stored.device, device) || stored.kernel.source_hash != hash ||
        stored.toolkit.target != dispatcher.toolkit().target ||
        (stages.contains(name) && stages[name] == TrialStage::finals && stored.trial.stage == TrialStage::search)) {
      return;
    }
    stages[name] = stored.trial.stage;
    records[name] = {stored.trial.status, stored.trial.reason, stored.trial.time};
  });
  return records;
}

std::vector<ExplainedSite> explained(const std::vector<ObservedPass>& passes, FusionChooser& chooser,
                                     const Dispatcher& dispatcher, const Store* store) {
  std::vector<ExplainedSite> sites;
  for (const ObservedPass& pass : passes) {
    for (const ObservedSite& met : pass.sites) {
      auto known = std::find_if(sites.begin(), sites.end(),
                                [&](const ExplainedSite& one) { return same_site(one.site.key, met.key); });
      if (known == sites.end()) {
        ExplainedSite site{met, chooser.choose(met.key, met.candidates)};
        if (store != nullptr) {
          site.alternatives = records_of(*store, dispatcher, met.key.named());
        }
        known = sites.insert(sites.end(), std::move(site));
      }
      known->uses[pass.name + ": " + pass.per] += met.uses;
    }
  }
  return sites;
}

std::int64_t planned_launches(const ObservedPass& pass, const std::vector<ExplainedSite>& sites) {
  std::int64_t sum = pass.single_launches();
  for (const ObservedSite& met : pass.sites) {
    const auto site = std::find_if(sites.begin(), sites.end(),
                                   [&](const ExplainedSite& one) { return same_site(one.site.key, met.key); });
    sum += met.uses * (met.launches(site->choice.candidate) - met.launches(0));
  }
  return sum;
}

ordered_json to_json(const ExplainedSite& site) {
  ordered_json alternatives = ordered_json::array();
  for (const SiteCandidate& candidate : site.site.candidates) {
    ordered_json one{{"name", candidate.name}, {"what", candidate.what}, {"launches", candidate.launches.size()}};
    const auto record = site.alternatives.find(candidate.name);
    if (record != site.alternatives.end()) {
      one["status"] = name_of(record->second.status);
      if (!record->second.reason.empty()) {
        one["reason"] = record->second.reason;
      }
      if (const auto& time = record->second.time) {
        one["time_us"] = time->median_us;
        one["low_us"] = time->low_us;
        one["high_us"] = time->high_us;
      }
    }
    alternatives.push_back(std::move(one));
  }
  return {{"site", site.site.key.named().text()},
          {"alternative", site.site.candidates[site.choice.candidate].name},
          {"origin", name_of(site.choice.origin)},
          {"reason", site.choice.reason},
          {"what", site.site.what},
          {"uses", site.uses},
          {"alternatives", std::move(alternatives)}};
}

void print_site(const ExplainedSite& site, std::int64_t uses) {
  fmt::print("  {} x {}\n    {}\n    {}: {}\n", uses, site.site.what, site.site.key.named().text(),
             name_of(site.choice.origin), clean_line(site.choice.reason));
  for (std::size_t i = 0; i < site.site.candidates.size(); ++i) {
    const SiteCandidate& candidate = site.site.candidates[i];
    const auto record = site.alternatives.find(candidate.name);
    std::string measured = "not measured";
    if (record != site.alternatives.end()) {
      const auto& [status, reason, time] = record->second;
      measured = time ? fmt::format("{:.2f} us ± {:.1f} %", time->median_us, 100 * relative_half_width(*time))
                      : fmt::format("{}: {}", name_of(status), clean_line(reason));
    }
    fmt::print("    {} {:<18} {:>2} {:<9} {:<24} {}\n", i == site.choice.candidate ? '*' : ' ', candidate.name,
               candidate.launches.size(), candidate.launches.size() == 1 ? "launch" : "launches",
               site.site.candidates.size() > 1 ? measured : "", candidate.what);
  }
}

void print_text(const std::vector<ObservedPass>& passes, const std::vector<ExplainedSite>& sites) {
  for (const ObservedPass& pass : passes) {
    const std::int64_t single = pass.single_launches();
    fmt::print("{}: {}: {} launches as planned, {} with every operation by itself\n", pass.name, pass.per,
               planned_launches(pass, sites), single);
    for (const ExplainedSite& site : sites) {
      const auto uses = site.uses.find(pass.name + ": " + pass.per);
      if (uses != site.uses.end()) {
        print_site(site, uses->second);
      }
    }
    fmt::print("\n");
  }
}

}  // namespace

void explain_model(const ModelCommandOptions& model, PassCommandOptions sizes, bool as_json) {
  const ModelSessionOptions given = model.session_options();
  // What the model may launch does not depend on winners; which of it is chosen is asked here.
  ModelCommandOptions followed = model;
  followed.untuned = true;
  followed.fusion = "auto";
  const ObservedModel observed = open_observed(followed, std::move(sizes));
  ModelSession& session = *observed.session;
  const auto device = open_device(device_id_of(model.device));  // not the session's, which only looks on
  const Dispatcher dispatcher(*device, given.dispatcher);
  const DeviceRow row = device_row(device->info());
  FusionFile file =
      plan_for_model(given.options.fusion_file, row, session.model().sites(),
                     [](const std::string& line) { fmt::print(stderr, "pascaline: warning: {}\n", line); });
  FusionChooser chooser(given.options.fusion, std::move(file), &dispatcher);
  std::vector<ObservedPass> passes;
  for (const ModelPass& pass : observed.passes) {
    passes.push_back(observe_sites(session, pass));
  }
  std::optional<Store> store;
  if (given.dispatcher.database) {
    store.emplace(*given.dispatcher.database, OpenMode::read_only);
  }
  const std::vector<ExplainedSite> sites = explained(passes, chooser, dispatcher, store ? &*store : nullptr);
  if (!as_json) {
    fmt::print("{} on {}\n\n", model_name(model.folder), session.device_name());
    print_text(passes, sites);
    return;
  }
  ordered_json all_passes = ordered_json::array();
  for (const ObservedPass& pass : passes) {
    all_passes.push_back({{"pass", pass.name},
                          {"per", pass.per},
                          {"launches", planned_launches(pass, sites)},
                          {"single_launches", pass.single_launches()}});
  }
  ordered_json all_sites = ordered_json::array();
  for (const ExplainedSite& site : sites) {
    all_sites.push_back(to_json(site));
  }
  const ordered_json document{{"schema", kFusionSchema},
                              {"model", model_name(model.folder)},
                              {"device", fusion_device_json(row)},
                              {"passes", std::move(all_passes)},
                              {"sites", std::move(all_sites)}};
  fmt::print("{}\n", document.dump(1, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace pascaline::cli
