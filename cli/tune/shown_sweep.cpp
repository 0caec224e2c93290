#include "cli/tune/shown_sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/tune/progress.hpp"
#include "core/error.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::cli {
namespace {

int exit_code_of(const SweepSummary& summary, const SweepOptions& sweep, bool stopped) {
  if (!summary.end.reason.empty() && summary.interrupted && !stopped) {
    throw Error(fmt::format("{}; what was measured is stored, resume with: {}", summary.end.reason,
                            resume_command(sweep.database.string(), sweep.record.paths, summary.end.remedy)));
  }
  if (summary.interrupted) {
    return kInterrupted;
  }
  return summary.ok + summary.reused_ok > 0 && summary.problems.decided > 0 ? kSuccess : kNegative;
}

}  // namespace

int run_shown(const PreparedSweep& prepared, std::FILE* out, const std::atomic<bool>& stop,
              const SweepServices& services) {
  const SweepOptions& sweep = prepared.options.sweep;
  LiveViewOptions view;
  view.quiet = prepared.options.quiet || prepared.options.as_json;
  view.terminal = ::isatty(::fileno(out)) != 0;
  view.out = out;
  if (!prepared.options.log.empty()) {
    view.log = prepared.options.log;
  }
  Progress progress(std::move(view));
  const SweepEvents events = progress.events();
  for (const std::string& note : prepared.work.notes) {
    events.note(note);
  }
  try {
    const SweepSummary summary = run_sweep(prepared.work.spaces, prepared.work.problems, sweep, events, stop, services);
    progress.summary(summary, sweep);
    if (prepared.options.as_json) {
      fmt::print(out, "{}\n",
                 summary_document(summary, prepared).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return exit_code_of(summary, sweep, stop);
  } catch (const SweepStoppedError& stopped) {
    events.note(stopped.what());
    return kInterrupted;
  }
}

}  // namespace pascaline::cli
