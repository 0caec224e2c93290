#include "app/model/model_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/model_observation.hpp"
#include "app/options.hpp"
#include "core/error.hpp"
#include "core/problem.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;
using IsTuned = std::function<bool(const Problem&)>;

// What a pass launches of one problem.
struct ProblemSum {
  Problem problem;
  std::int64_t count = 0;
};

// In the order of the first launches.
std::vector<ProblemSum> sums_of(Executor& executor, const ModelPass& pass) {
  std::vector<ProblemSum> sums;
  pass.prepare();
  executor.observe([&](const ops::KernelProblem& launched) {
    const Problem problem = launched.named();
    const auto known =
        std::find_if(sums.begin(), sums.end(), [&](const ProblemSum& sum) { return sum.problem == problem; });
    if (known == sums.end()) {
      sums.push_back({problem, 1});
    } else {
      ++known->count;
    }
  });
  pass.run();
  executor.observe({});
  return sums;
}

// Collects what passes launch as a workload: every problem once in each phase, with all its launches there.
class WorkloadWriter {
 public:
  explicit WorkloadWriter(IsTuned is_tuned) : is_tuned_(std::move(is_tuned)) {}

  void add(const ModelPass& pass, const std::vector<ProblemSum>& sums) {
    Phase& phase = phase_named(phase_of(pass));
    phase.per += (phase.per.empty() ? "" : "; ") + pass.per;
    for (const ProblemSum& sum : sums) {
      const auto known = std::find_if(phase.launches.begin(), phase.launches.end(),
                                      [&](const Launches& other) { return other.sum.problem == sum.problem; });
      if (known == phase.launches.end()) {
        phase.launches.push_back({sum, is_tuned_(sum.problem)});
      } else {
        known->sum.count += sum.count;
      }
    }
  }

  /// Of each phase those without a winner of their own first.
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
    return count([](const Launches&) { return true; });
  }
  [[nodiscard]] std::size_t untuned() const {
    return count([](const Launches& launches) { return !launches.is_tuned; });
  }

 private:
  struct Launches {
    ProblemSum sum;
    bool is_tuned = false;
  };
  struct Phase {
    std::string name;
    std::string per;  // what its passes are, for people
    std::vector<Launches> launches;
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

  void add_entries(const Phase& phase, ordered_json& entries) const {
    std::vector<Launches> sorted = phase.launches;
    std::stable_partition(sorted.begin(), sorted.end(), [](const Launches& launches) { return !launches.is_tuned; });
    std::map<std::string, int> numbers;
    for (const auto& [sum, is_tuned] : sorted) {
      const std::string& kernel = sum.problem.kernel;
      entries.push_back(entry_of(sum, phase.name, fmt::format("{}_{}", kernel, ++numbers[kernel])));
    }
  }

  static ordered_json entry_of(const ProblemSum& sum, const std::string& phase, const std::string& name) {
    const Problem& problem = sum.problem;
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

  IsTuned is_tuned_;
  std::vector<Phase> phases_;
};

// With which options the model launches this.
std::string describe(const ModelCommandOptions& model) {
  const ModelSessionOptions session = model.session_options();
  return fmt::format("What Pascaline's runtime launches for this model with --weights {} --kv-cache {} --chunk {}{}.",
                     session.options.weights.name(), name_of(session.options.cache), session.options.chunk,
                     session.options.attention.is_dense()
                         ? std::string()
                         : fmt::format(" --attention {}", session.options.attention.name()));
}

// What nothing here can run has none.
bool has_winner(const Dispatcher& dispatcher, const Problem& problem) {
  try {
    return dispatcher.plan(problem).provenance == Provenance::exact;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string model_name(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

ModelWorkload observe_workload(const ModelCommandOptions& model, PassCommandOptions sizes, const std::string& name,
                               const Dispatcher* dispatcher) {
  const ObservedModel observed = open_observed(model, std::move(sizes));
  const auto& session = observed.session;
  WorkloadWriter writer(
      [&](const Problem& problem) { return dispatcher != nullptr && has_winner(*dispatcher, problem); });
  for (const ModelPass& pass : observed.passes) {
    writer.add(pass, sums_of(session->executor(), pass));
  }
  ModelWorkload workload;
  workload.device = session->device_name();
  const std::string source = fmt::format("{} on {}", model_name(model.folder), workload.device);
  workload.text = writer.document(name, describe(model), source).dump(1) + "\n";
  workload.entries = writer.entries();
  workload.untuned = writer.untuned();
  return workload;
}

}  // namespace pascaline
