#include "tuner/sweep.hpp"

#include <fmt/format.h>

#include <chrono>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/version.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/problem_sweep.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;

std::string options_json(const SweepOptions& options) {
  nlohmann::json json{{"device", options.device},       {"target", options.target},
                      {"searcher", options.searcher},   {"seed", options.seed},
                      {"trials", options.trials},       {"jobs", options.jobs},
                      {"finalists", options.finalists}, {"cold_cache", options.measure.cold_cache}};
  if (options.minutes) {
    json["minutes"] = *options.minutes;
  }
  return json.dump();
}

Clock::time_point deadline_of(const SweepOptions& options, Clock::time_point end, std::size_t problems_left) {
  if (!options.minutes) {
    return Clock::time_point::max();
  }
  return Clock::now() + (end - Clock::now()) / static_cast<long>(problems_left);
}

void run_problems(Workshop& shop, const std::vector<SweepProblem>& problems, SweepSummary& summary) {
  const auto minutes = std::chrono::duration<double, std::ratio<60>>(shop.options.minutes.value_or(0));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(minutes);
  for (std::size_t i = 0; i < problems.size() && !shop.stop && !summary.device_lost; ++i) {
    ProblemSweep(shop, problems[i], deadline_of(shop.options, end, problems.size() - i))
        .run(summary, i, problems.size());
  }
  summary.interrupted = summary.interrupted || (shop.stop && summary.problems_done < static_cast<int>(problems.size()));
}

CompilePoolOptions pool_options(const SweepOptions& options, const TargetPlan& plan, const Toolchain& toolchain) {
  CompilePoolOptions out;
  out.workers = options.jobs;
  out.program = options.program;
  out.cache_folder = options.cache;
  out.architecture = plan.architecture;
  out.nvrtc = plan.kind == BinaryKind::host_object ? "" : toolchain.path();
  return out;
}

void tell(const SweepEvents& events, const std::string& text) {
  if (events.note) {
    events.note(text);
  }
}

// Rows of the database that every trial of the sweep hangs on.
void fill_context(Workshop& shop, const Toolchain& toolchain) {
  const DeviceInfo& info = shop.device.info();
  shop.context.device = shop.store.device_id(device_row(info));
  shop.context.toolkit = shop.store.toolkit_id(toolkit_row(toolchain, shop.plan, info));
  shop.context.kernel = shop.store.kernel_id({shop.space.kernel, shop.source.hash});
  shop.context.space = shop.store.space_id(shop.space.kernel, shop.space.hash, shop.space.json);
}

void begin_session(Workshop& shop) {
  if (shop.options.continue_session > 0) {
    shop.session = shop.options.continue_session;
    return;
  }
  SessionRow session;
  session.command_line = shop.options.command_line;
  session.searcher = shop.options.searcher;
  session.seed = shop.options.seed;
  session.options_json = options_json(shop.options);
  session.device_uuid = shop.device.info().uuid;
  session.program_version = kVersion;
  shop.session = shop.store.begin_session(session, shop.context.device, shop.context.toolkit);
}

// Called while another fault is on its way up: a database that fails now must not hide it.
void end_failed_session(Workshop& shop) noexcept {
  try {
    shop.store.end_session(shop.session, "failed");
  } catch (const std::exception& error) {
    shop.session = 0;  // stays "running" until a later sweep finds its process dead
  }
}

}  // namespace

SweepSummary run_sweep(const Space& space, const std::vector<SweepProblem>& problems, const SweepOptions& options,
                       const SweepEvents& events, const std::atomic<bool>& stop) {
  Store store(options.database, OpenMode::create);
  const std::unique_ptr<Device> device = open_device(options.device);
  const TargetPlan plan = plan_target(device->info(), options.target);
  const Toolchain toolchain = Toolchain::find(plan.architecture, options.nvrtc);
  CompilePool pool(pool_options(options, plan, toolchain));
  Workshop shop{space, options, events, stop,
                store, *device, plan,   KernelSource::load(options.kernels / (space.kernel + ".cu")),
                pool};
  fill_context(shop, toolchain);
  if (const int settled = store.settle_attempts(shop.context.device); settled > 0) {
    tell(events, fmt::format("{} configuration(s) an earlier sweep died on are now marked as crashed", settled));
  }
  tell(events, fmt::format("{} ({}), {} {} for {}", device->info().name, device->info().id, toolchain.compiler(),
                           toolchain.version(), plan.architecture));
  begin_session(shop);
  SweepSummary summary;
  summary.session = shop.session;
  try {
    run_problems(shop, problems, summary);
  } catch (...) {
    end_failed_session(shop);
    throw;
  }
  if (!summary.device_lost) {
    store.end_session(shop.session, summary.interrupted ? "interrupted" : "finished");
  }
  return summary;
}

}  // namespace pascaline
