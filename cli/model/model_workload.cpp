#include "cli/model/model_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/problem.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::ordered_json;

bool is_tuned(const LaunchSum& sum) { return sum.prepared->plan.provenance == Provenance::exact; }

// The model's phase that a pass is part of.
std::string phase_of(const ModelPass& pass) {
  return pass.name == "prefill" ? "prompt" : pass.name == "decode" ? "token" : "image";
}

// Collects what passes launch as a workload: every problem once in each phase, with all its launches there.
class WorkloadWriter {
 public:
  void add(const ModelPass& pass, const std::vector<LaunchSum>& sums) {
    Phase& phase = phase_named(phase_of(pass));
    phase.per += (phase.per.empty() ? "" : "; ") + pass.per;
    for (const LaunchSum& sum : sums) {
      const Problem& problem = sum.prepared->plan.problem;
      const auto known = std::find_if(phase.launches.begin(), phase.launches.end(),
                                      [&](const LaunchSum& other) { return other.prepared->plan.problem == problem; });
      if (known == phase.launches.end()) {
        phase.launches.push_back(sum);
      } else {
        known->count += sum.count;
        known->time_us += sum.time_us;
      }
    }
  }

  [[nodiscard]] ordered_json document(const std::string& name, const std::string& description,
                                      const std::string& source) const {
    ordered_json phases = ordered_json::array();
    ordered_json entries = ordered_json::array();
    for (const Phase& phase : phases_) {
      phases.push_back({{"name", phase.name}, {"per", phase.per}});
      add_entries(phase, entries);
    }
    return {{"schema", 1},      {"name", name},     {"description", description},
            {"source", source}, {"phases", phases}, {"entries", entries}};
  }
  [[nodiscard]] std::size_t entries() const {
    return count([](const LaunchSum&) { return true; });
  }
  [[nodiscard]] std::size_t untuned() const {
    return count([](const LaunchSum& sum) { return !is_tuned(sum); });
  }

 private:
  struct Phase {
    std::string name;
    std::string per;  // what its passes are, for people
    std::vector<LaunchSum> launches;
  };

  Phase& phase_named(const std::string& name) {
    const auto found =
        std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
    return found == phases_.end() ? phases_.emplace_back(Phase{name, "", {}}) : *found;
  }

  template <typename Wanted>
  [[nodiscard]] std::size_t count(const Wanted& wanted) const {
    std::size_t sum = 0;
    for (const Phase& phase : phases_) {
      sum += static_cast<std::size_t>(std::count_if(phase.launches.begin(), phase.launches.end(), wanted));
    }
    return sum;
  }

  // Untuned shapes first, then those that take most time.
  static void add_entries(const Phase& phase, ordered_json& entries) {
    std::vector<LaunchSum> sorted = phase.launches;
    std::stable_sort(sorted.begin(), sorted.end(), [](const LaunchSum& a, const LaunchSum& b) {
      return std::tuple(is_tuned(a), -a.time_us) < std::tuple(is_tuned(b), -b.time_us);
    });
    std::map<std::string, int> numbers;
    for (const LaunchSum& sum : sorted) {
      const std::string& kernel = sum.prepared->plan.problem.kernel;
      entries.push_back(entry_of(sum, phase.name, fmt::format("{}_{}", kernel, ++numbers[kernel])));
    }
  }

  static ordered_json entry_of(const LaunchSum& sum, const std::string& phase, const std::string& name) {
    const Problem& problem = sum.prepared->plan.problem;
    ordered_json dimensions = ordered_json::object();
    for (const auto& [dimension, value] : problem.dimensions) {
      dimensions[dimension] = value;
    }
    ordered_json types = ordered_json::object();
    for (const auto& [variable, type] : problem.types) {
      types[variable] = name_of(type);
    }
    ordered_json entry{{"kernel", problem.kernel}, {"name", name}, {"phase", phase}, {"dimensions", dimensions}};
    if (!types.empty()) {
      entry["types"] = types;
    }
    entry["count"] = sum.count;
    return entry;
  }

  std::vector<Phase> phases_;
};

// Whether the image is looked at in a prompt, which the context must have room for; `request` then counts it.
bool fit_image(const ModelCommandOptions& model, const PassCommandOptions& sizes, const ModelFolder& folder,
               ModelRequest& request) {
  if (sizes.image.empty()) {
    return false;
  }
  const std::int64_t tokens = image_prompt_tokens(folder.config(), sizes.image[0], sizes.image[1]);
  const std::int64_t context = model.prompt_limits(folder).context;
  if (tokens > context) {
    fmt::print(stderr,
               "pascaline: the context of {} has no room for a prompt with the image, of {} tokens; what such a prompt "
               "launches after the vision tower is left out: give a larger --context or a smaller --image-size\n",
               context, tokens);
    return false;
  }
  request.tokens = std::max(request.tokens, tokens);
  return true;
}

// With which options the model launches this.
std::string describe(const ModelCommandOptions& model) {
  const SessionOptions session = model.session_options();
  return fmt::format("What Pascaline's runtime launches for this model with --weights {} --kv-cache {} --chunk {}.",
                     name_of(session.options.weights), name_of(session.options.cache), session.options.chunk);
}

// Each pass may compile for a while.
void require_not_interrupted() {
  if (interrupted()) {
    throw SweepStoppedError("interrupted while looking at what the model launches; nothing was measured");
  }
}

}  // namespace

ModelWorkload observe_workload(ModelCommandOptions model, PassCommandOptions sizes, const std::string& name) {
  model.no_graph = true;  // every launch by itself
  model.require_kernels();
  ModelFolder folder = model.read_for_numbers();
  sizes.choose_prompts(model.prompt_limits(folder).context, kObservedSteps);
  ModelRequest request = request_of(folder, sizes, kObservedSteps);
  const bool image_fits = fit_image(model, sizes, folder, request);
  const auto session = model.open(std::move(folder), request);
  WorkloadWriter writer;
  for (const std::int64_t tokens : std::set<std::int64_t>(sizes.prompts.begin(), sizes.prompts.end())) {
    for (const ModelPass& pass : {prefill_pass(session->model(), tokens), decode_pass(session->model(), tokens)}) {
      require_not_interrupted();
      writer.add(pass, observe_pass(session->executor(), pass));
    }
  }
  if (!sizes.image.empty()) {
    const auto make = image_fits ? image_prompt_pass : image_pass;
    const ModelPass pass = make(session->model(), sizes.image[0], sizes.image[1]);
    require_not_interrupted();
    writer.add(pass, observe_pass(session->executor(), pass));
  }
  ModelWorkload workload;
  workload.device = session->device_name();
  const std::string source =
      fmt::format("{} on {}", std::filesystem::path(model.folder).filename().string(), workload.device);
  workload.text = writer.document(name, describe(model), source).dump(1) + "\n";
  workload.entries = writer.entries();
  workload.untuned = writer.untuned();
  return workload;
}

}  // namespace pascaline::cli
