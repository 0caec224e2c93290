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
#include "model/fusion/place_space.hpp"
#include "model/model_places.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::ordered_json;

// What the database has of one alternative of a place.
struct AlternativeRecord {
  TrialStatus status = TrialStatus::ok;
  std::string reason{};
  std::optional<TimeSummary> time{};
};

// A place with what was decided of it, in whichever passes.
struct ExplainedPlace {
  ObservedPlace place;
  PlaceChoice choice;
  std::map<std::string, std::int64_t> uses{};               // by pass
  std::map<std::string, AlternativeRecord> alternatives{};  // by name
};

// Of the trials of today's sources on such a device for such a target, what finals say before what the search says, and
// what is newer before what is older.
std::map<std::string, AlternativeRecord> records_of(const Store& store, const Dispatcher& dispatcher,
                                                    const Problem& place) {
  std::map<std::string, AlternativeRecord> records;
  std::map<std::string, TrialStage> stages;
  const DeviceRow device = device_row(dispatcher.device().info());
  const std::string hash = place_source(place.kernel, dispatcher.kernels_folder()).hash;
  TrialFilter filter;
  filter.kernel = place.kernel;
  filter.problem = place.text();
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

std::vector<ExplainedPlace> explained(const std::vector<ObservedPass>& passes, FusionChooser& chooser,
                                      const Dispatcher& dispatcher, const Store* store) {
  std::vector<ExplainedPlace> places;
  for (const ObservedPass& pass : passes) {
    for (const ObservedPlace& met : pass.places) {
      auto known = std::find_if(places.begin(), places.end(),
                                [&](const ExplainedPlace& one) { return same_place(one.place.key, met.key); });
      if (known == places.end()) {
        ExplainedPlace place{met, chooser.choose(met.key, met.candidates)};
        if (store != nullptr) {
          place.alternatives = records_of(*store, dispatcher, met.key.named());
        }
        known = places.insert(places.end(), std::move(place));
      }
      known->uses[pass.name + ": " + pass.per] += met.uses;
    }
  }
  return places;
}

std::int64_t planned_launches(const ObservedPass& pass, const std::vector<ExplainedPlace>& places) {
  std::int64_t sum = pass.single_launches();
  for (const ObservedPlace& met : pass.places) {
    const auto place = std::find_if(places.begin(), places.end(),
                                    [&](const ExplainedPlace& one) { return same_place(one.place.key, met.key); });
    sum += met.uses * (met.launches(place->choice.candidate) - met.launches(0));
  }
  return sum;
}

ordered_json to_json(const ExplainedPlace& place) {
  ordered_json alternatives = ordered_json::array();
  for (const PlaceCandidate& candidate : place.place.candidates) {
    ordered_json one{{"name", candidate.name}, {"what", candidate.what}, {"launches", candidate.launches.size()}};
    const auto record = place.alternatives.find(candidate.name);
    if (record != place.alternatives.end()) {
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
  return {{"place", place.place.key.named().text()},
          {"alternative", place.place.candidates[place.choice.candidate].name},
          {"origin", name_of(place.choice.origin)},
          {"reason", place.choice.reason},
          {"what", place.place.what},
          {"uses", place.uses},
          {"alternatives", std::move(alternatives)}};
}

void print_place(const ExplainedPlace& place, std::int64_t uses) {
  fmt::print("  {} x {}\n    {}\n    {}: {}\n", uses, place.place.what, place.place.key.named().text(),
             name_of(place.choice.origin), clean_line(place.choice.reason));
  for (std::size_t i = 0; i < place.place.candidates.size(); ++i) {
    const PlaceCandidate& candidate = place.place.candidates[i];
    const auto record = place.alternatives.find(candidate.name);
    std::string measured = "not measured";
    if (record != place.alternatives.end()) {
      const auto& [status, reason, time] = record->second;
      measured = time ? fmt::format("{:.2f} us ± {:.1f} %", time->median_us, 100 * relative_half_width(*time))
                      : fmt::format("{}: {}", name_of(status), clean_line(reason));
    }
    fmt::print("    {} {:<18} {:>2} {:<9} {:<24} {}\n", i == place.choice.candidate ? '*' : ' ', candidate.name,
               candidate.launches.size(), candidate.launches.size() == 1 ? "launch" : "launches",
               place.place.candidates.size() > 1 ? measured : "", candidate.what);
  }
}

void print_text(const std::vector<ObservedPass>& passes, const std::vector<ExplainedPlace>& places) {
  for (const ObservedPass& pass : passes) {
    const std::int64_t single = pass.single_launches();
    fmt::print("{}: {}: {} launches as planned, {} with every operation by itself\n", pass.name, pass.per,
               planned_launches(pass, places), single);
    for (const ExplainedPlace& place : places) {
      const auto uses = place.uses.find(pass.name + ": " + pass.per);
      if (uses != place.uses.end()) {
        print_place(place, uses->second);
      }
    }
    fmt::print("\n");
  }
}

}  // namespace

void explain_model(const ModelCommandOptions& model, PassCommandOptions sizes, bool as_json) {
  const SessionOptions given = model.session_options();
  // What the model may launch does not depend on winners; which of it is chosen is asked here.
  ModelCommandOptions followed = model;
  followed.untuned = true;
  followed.fusion = "auto";
  const ObservedModel observed = open_observed(followed, std::move(sizes));
  Session& session = *observed.session;
  const auto device = open_device(device_id_of(model.device));  // not the session's, which only looks on
  const Dispatcher dispatcher(*device, given.dispatcher);
  const DeviceRow row = device_row(device->info());
  FusionFile file =
      plan_for_model(given.options.fusion_file, row, session.model().places(),
                     [](const std::string& line) { fmt::print(stderr, "pascaline: warning: {}\n", line); });
  FusionChooser chooser(given.options.fusion, std::move(file), &dispatcher);
  std::vector<ObservedPass> passes;
  for (const ModelPass& pass : observed.passes) {
    passes.push_back(observe_places(session, pass));
  }
  std::optional<Store> store;
  if (given.dispatcher.database) {
    store.emplace(*given.dispatcher.database, OpenMode::read_only);
  }
  const std::vector<ExplainedPlace> places = explained(passes, chooser, dispatcher, store ? &*store : nullptr);
  if (!as_json) {
    fmt::print("{} on {}\n\n", model_name(model.folder), session.device_name());
    print_text(passes, places);
    return;
  }
  ordered_json all_passes = ordered_json::array();
  for (const ObservedPass& pass : passes) {
    all_passes.push_back({{"pass", pass.name},
                          {"per", pass.per},
                          {"launches", planned_launches(pass, places)},
                          {"single_launches", pass.single_launches()}});
  }
  ordered_json all_places = ordered_json::array();
  for (const ExplainedPlace& place : places) {
    all_places.push_back(to_json(place));
  }
  const ordered_json document{{"schema", kFusionSchema},
                              {"model", model_name(model.folder)},
                              {"device", fusion_device_json(row)},
                              {"passes", std::move(all_passes)},
                              {"places", std::move(all_places)}};
  fmt::print("{}\n", document.dump(1, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace pascaline::cli
