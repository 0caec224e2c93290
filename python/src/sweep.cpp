#include "tuner/sweep/sweep.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/sweep/prepared_sweep.hpp"
#include "core/trial.hpp"
#include "python/src/command_words.hpp"
#include "python/src/commands.hpp"
#include "python/src/interruptible.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;
using nlohmann::json;

std::string event_text(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

json trial_event(const Trial& trial, int done, int planned, double best_us, double default_us) {
  const auto time = [](double us) { return us > 0 ? json(us) : json(); };
  return {{"kernel", trial.problem.kernel},
          {"problem", trial.problem.text()},
          {"status", name_of(trial.status)},
          {"reason", trial.reason},
          {"config", trial.config.json()},
          {"time_us", trial.time ? json(trial.time->median_us) : json()},
          {"done", done},
          {"planned", planned >= kUnlimitedTrials ? json() : json(planned)},
          {"best_us", time(best_us)},
          {"default_us", time(default_us)}};
}

// To a listener; nothing for nobody.
SweepEvents events_for(Interruptible& caller) {
  SweepEvents events;
  if (!caller.heard()) {
    return events;
  }
  events.note = [&caller](const std::string& text) { caller.tell("note", event_text({{"text", text}})); };
  events.problem = [&caller](const std::string& device, const SweepProblem& problem, std::size_t known) {
    caller.tell(
        "problem",
        event_text(
            {{"device", device}, {"problem", problem.problem.text()}, {"label", problem.label}, {"known", known}}));
  };
  events.trial = [&caller](const Trial& trial, int done, int planned, double best_us, double default_us) {
    caller.tell("trial", event_text(trial_event(trial, done, planned, best_us, default_us)));
  };
  events.view = [&caller](const SweepView& view) { caller.tell("view", event_text(json(view))); };
  return events;
}

std::string sweep(std::vector<std::string> words, const std::string& program, const std::string& call,
                  nb::object listener) {
  CLI::App app;
  SweepCommandOptions options;
  add_sweep_options(app, options);
  read_words(app, std::move(words));
  Interruptible caller(std::move(listener));
  std::optional<json> summary;
  caller.run([&] {
    PreparedSweep prepared = prepare_sweep(std::move(options), app);
    SweepOptions& wanted = prepared.options.sweep;
    wanted.files.program = program;
    wanted.record.command_line = call;
    const SweepEvents events = events_for(caller);
    if (events.note) {
      for (const std::string& note : prepared.work.notes) {
        events.note(note);
      }
    }
    summary = summary_document(run_sweep(prepared.work.spaces, prepared.work.problems, wanted, events, caller.stop()),
                               prepared);
  });
  return event_text(*summary);
}

std::vector<std::string> sweep_options() {
  CLI::App app;
  SweepCommandOptions options;
  add_sweep_options(app, options);
  return option_names(app);
}

}  // namespace

void add_sweeps(nb::module_& module) {
  module.def("sweep", sweep, nb::arg("words"), nb::arg("program"), nb::arg("call"), nb::arg("listener").none());
  module.def("sweep_options", sweep_options, "Names of the options of `pascaline sweep`.");
}

}  // namespace pascaline::python
