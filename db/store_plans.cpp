#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "db/rows.hpp"
#include "db/store_impl.hpp"
#include "db/sweep_plan.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kSavePlan = "store the plan of a run";
constexpr std::string_view kReadPlan = "read the plan of a run";

constexpr std::string_view kPlanColumns =
    "devices, target, nvrtc, searcher, seed, trials, budget_s, until_unix_s, "
    "retry_failed, "
    "jobs, compile_timeout_s, compile_memory_mib, kernel_timeout_s, cold_cache, min_samples, max_samples, half_width, "
    "sample_budget_ms, race_error, finalists, rounds, preheat_s, max_temperature_c, drift, pause_limit_s, "
    "tolerate_power, tolerate_thermal, objective, polite, min_gain, deepen";

std::vector<std::string> split_devices(const std::string& text) {
  std::vector<std::string> devices;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    devices.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return devices;
}

SweepPlan read_plan(Query& row) {
  SweepPlan plan;
  plan.devices = split_devices(row.text());
  plan.target = row.text();
  plan.nvrtc = row.text();
  plan.searcher = row.text();
  plan.seed = static_cast<std::uint64_t>(row.integer());
  plan.trials = row.optional_integer();
  plan.budget_s = row.optional_real();
  plan.until_unix_s = row.optional_integer();
  plan.retry_failed = row.flag();
  plan.jobs = row.integer();
  plan.compile_timeout_s = row.real();
  plan.compile_memory_mib = row.integer();
  plan.kernel_timeout_s = row.real();
  plan.cold_cache = row.flag();
  plan.min_samples = row.integer();
  plan.max_samples = row.integer();
  plan.half_width = row.real();
  plan.sample_budget_ms = row.real();
  plan.race_error = row.real();
  plan.finalists = row.integer();
  plan.rounds = row.integer();
  plan.preheat_s = row.real();
  plan.max_temperature_c = row.optional_real();
  plan.drift = row.real();
  plan.pause_limit_s = row.real();
  plan.tolerate_power = row.flag();
  plan.tolerate_thermal = row.flag();
  const std::string objective = row.text();
  plan.objective = known(objective_from(objective), objective);
  plan.polite = row.flag();
  plan.min_gain = row.real();
  plan.deepen = row.flag();
  return plan;
}

void insert_plan(Connection& connection, const std::string& run, const SweepPlan& plan) {
  connection
      .query(fmt::format("INSERT INTO plans (run_uuid, {}) VALUES "
                         "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                         kPlanColumns))
      .bind(run, fmt::format("{}", fmt::join(plan.devices, ",")), plan.target, plan.nvrtc, plan.searcher,
            static_cast<std::int64_t>(plan.seed), plan.trials, plan.budget_s, plan.until_unix_s, plan.retry_failed,
            plan.jobs, plan.compile_timeout_s, plan.compile_memory_mib, plan.kernel_timeout_s, plan.cold_cache,
            plan.min_samples, plan.max_samples, plan.half_width, plan.sample_budget_ms, plan.race_error, plan.finalists,
            plan.rounds, plan.preheat_s, plan.max_temperature_c, plan.drift, plan.pause_limit_s, plan.tolerate_power,
            plan.tolerate_thermal, name_of(plan.objective), plan.polite, plan.min_gain, plan.deepen)
      .run();
}

void insert_plan_problems(Connection& connection, const std::string& run, const SweepPlan& plan) {
  Query insert = connection.query(
      "INSERT INTO plan_problems (run_uuid, ordinal, problem_id, calls, label, part, parts) SELECT ?, ?, id, ?, ?, ?, "
      "? FROM problems "
      "WHERE text = ?");
  Query insert_calls = connection.query("INSERT INTO plan_calls (run_uuid, ordinal, phase, calls) VALUES (?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const PlannedProblem& planned : plan.problems) {
    if (insert
            .bind(run, ordinal, planned.count, planned.label, std::int64_t{planned.part.index},
                  std::int64_t{planned.part.count}, planned.problem.text())
            .run() != 1) {
      connection.fail(kSavePlan,
                      fmt::format("the problem '{}' is not stored; this is a fault of the program, please report it",
                                  planned.problem.text()),
                      SQLITE_MISUSE);
    }
    for (const PhaseCalls& phase : planned.phases) {
      insert_calls.bind(run, ordinal, phase.phase, phase.count).run();
    }
    ++ordinal;
  }
}

std::vector<PlannedKernel> read_plan_kernels(Connection& connection, const std::string& run) {
  Query row =
      connection.query("SELECT kernel, source_hash, space_hash FROM plan_kernels WHERE run_uuid = ? ORDER BY kernel");
  row.bind(run);
  std::vector<PlannedKernel> kernels;
  while (row.step()) {
    PlannedKernel kernel;
    kernel.name = row.text();
    kernel.source_hash = row.text();
    kernel.space_hash = row.text();
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::vector<PhaseCalls> read_plan_calls(Connection& connection, const std::string& run, std::int64_t ordinal) {
  Query row = connection.query("SELECT phase, calls FROM plan_calls WHERE run_uuid = ? AND ordinal = ? ORDER BY phase");
  row.bind(run, ordinal);
  std::vector<PhaseCalls> phases;
  while (row.step()) {
    PhaseCalls phase;
    phase.phase = row.text();
    phase.count = row.real();
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::vector<PlannedProblem> read_plan_problems(Connection& connection, const std::string& run) {
  Query row = connection.query(
      "SELECT p.kernel, p.dimensions, p.types, p.data, o.calls, o.label, o.ordinal, o.part, o.parts FROM plan_problems "
      "o JOIN "
      "problems p ON "
      "p.id = o.problem_id WHERE o.run_uuid = ? ORDER BY o.ordinal");
  row.bind(run);
  std::vector<PlannedProblem> problems;
  while (row.step()) {
    PlannedProblem planned;
    planned.problem = read_problem(row);
    planned.count = row.real();
    planned.label = row.text();
    planned.phases = read_plan_calls(connection, run, row.integer());
    planned.part.index = static_cast<int>(row.integer());
    planned.part.count = static_cast<int>(row.integer());
    problems.push_back(std::move(planned));
  }
  return problems;
}

}  // namespace

void Store::save_plan(const std::string& run_uuid, const SweepPlan& plan) {
  Connection& connection = *impl_->connection;
  connection.guard(kSavePlan, [&] {
    impl_->transact([&] {
      for (const char* table : {"plan_paths", "plan_calls", "plan_problems", "plan_kernels", "plans"}) {
        connection.query(fmt::format("DELETE FROM {} WHERE run_uuid = ?", table)).bind(run_uuid).run();
      }
      insert_plan(connection, run_uuid, plan);
      Query insert_kernel =
          connection.query("INSERT INTO plan_kernels (run_uuid, kernel, source_hash, space_hash) VALUES (?, ?, ?, ?)");
      for (const PlannedKernel& kernel : plan.kernels) {
        insert_kernel.bind(run_uuid, kernel.name, kernel.source_hash, kernel.space_hash).run();
      }
      insert_plan_problems(connection, run_uuid, plan);
      Query insert = connection.query("INSERT INTO plan_paths (run_uuid, option, value) VALUES (?, ?, ?)");
      for (const auto& [option, value] : plan.paths) {
        insert.bind(run_uuid, option, value).run();
      }
    });
  });
}

std::optional<SweepPlan> Store::plan(const std::string& run_uuid) const {
  Connection& connection = *impl_->connection;
  return connection.guard(kReadPlan, [&]() -> std::optional<SweepPlan> {
    Query row = connection.query(fmt::format("SELECT {} FROM plans WHERE run_uuid = ?", kPlanColumns));
    if (!row.bind(run_uuid).step()) {
      return std::nullopt;
    }
    SweepPlan plan = read_plan(row);
    plan.kernels = read_plan_kernels(connection, run_uuid);
    plan.problems = read_plan_problems(connection, run_uuid);
    Query path = connection.query("SELECT option, value FROM plan_paths WHERE run_uuid = ? ORDER BY option");
    path.bind(run_uuid);
    while (path.step()) {
      std::string option = path.text();
      plan.paths.emplace_back(std::move(option), path.text());
    }
    return plan;
  });
}

}  // namespace pascaline
