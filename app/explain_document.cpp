
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

DispatcherOptions dispatcher_options(const KernelOptions& kernel, const DeviceOptions& device,
                                     const std::string& given) {
  DispatcherOptions out;
  const std::filesystem::path database = database_path(given);
  if (!given.empty() || std::filesystem::exists(database)) {
    out.database = database;
  }
  out.kernels = kernel.kernels_folder;
  out.spaces = kernel.spaces_folder;
  out.target = device.target;
  out.nvrtc = device.nvrtc;
  out.cache = device.cache_path();
  return out;
}

// The winners of other devices that the search of a plan's winner began with.
std::vector<std::string> taken_over_by(const Store& store, const std::vector<Winner>& winners, const Plan& plan) {
  std::vector<std::string> texts;
  for (const Winner& winner : winners) {
    if (winner.trial.problem == plan.tuned_for && winner.trial.config == plan.config &&
        same_compiler(winner.toolkit, plan.toolkit)) {
      for (const TakenOver& taken_over : store.taken_over(winner.trial_id)) {
        texts.push_back(taken_over_text(taken_over));
      }
      break;
    }
  }
  return texts;
}

json to_json(const Plan& plan, const Geometry& geometry, const std::vector<std::string>& taken_over) {
  json out{{"problem", plan.problem.text()},
           {"provenance", name_of(plan.provenance)},
           {"reason", plan.reason},
           {"config", plan.config.json()},
           {"compiler", plan.toolkit.compiler},
           {"compiler_version", plan.toolkit.version},
           {"grid", geometry.grid},
           {"block", geometry.block},
           {"dynamic_shared_bytes", geometry.shared_bytes}};
  if (plan.tuned_for) {
    out["tuned_for"] = plan.tuned_for->text();
    out["distance"] = plan.distance;
    out["confidence"] = plan.confidence;
  }
  if (plan.expected) {
    out["expected_us"] = plan.expected->median_us;
    out["expected_low_us"] = plan.expected->low_us;
    out["expected_high_us"] = plan.expected->high_us;
  }
  if (!taken_over.empty()) {
    out["search_began_with"] = taken_over;
  }
  return out;
}

}  // namespace

void explain_each(const KernelOptions& kernel, const DeviceOptions& on, const std::string& database,
                  const std::function<void(const Plan&, const Geometry&, const std::vector<std::string>&)>& show) {
  const Space space = kernel.load_space();
  const std::vector<Problem> problems = kernel.load_problems(space);
  const auto device = open_device(on.chosen_device());
  const DispatcherOptions dispatcher_settings = dispatcher_options(kernel, on, database);
  const Dispatcher dispatcher(*device, dispatcher_settings);
  std::optional<Store> store;
  std::vector<Winner> winners;  // of such a device
  if (dispatcher_settings.database) {
    const DeviceRow row = device_row(device->info());
    winners = store.emplace(*dispatcher_settings.database, OpenMode::read_only).winners(space.kernel, &row);
  }
  for (const Problem& problem : problems) {
    const Plan plan = dispatcher.plan(problem);
    show(plan, BoundSpace(space, problem, dispatcher.target().limits).geometry(space.launches.front(), plan.config),
         store ? taken_over_by(*store, winners, plan) : std::vector<std::string>());
  }
}

nlohmann::json explain_document(const KernelOptions& kernel, const DeviceOptions& device, const std::string& database) {
  json plans = json::array();
  explain_each(kernel, device, database,
               [&](const Plan& plan, const Geometry& geometry, const std::vector<std::string>& taken_over) {
                 plans.push_back(to_json(plan, geometry, taken_over));
               });
  return plans;
}

}  // namespace pascaline
