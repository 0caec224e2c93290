#include "tests/db/fixtures.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "core/error.hpp"

namespace pascaline::testing {

TemporaryFolder::TemporaryFolder(const std::filesystem::path& below) {
  std::string pattern = (below / "pascaline-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary folder");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path memory_folder() {
  const std::filesystem::path folder = "/dev/shm";
  return ::access(folder.c_str(), W_OK) == 0 ? folder : std::filesystem::temp_directory_path();
}

DeviceRow example_device() {
  return {"cuda", "NVIDIA GeForce GTX 1080 Ti", "6.1", 28, 11'721'506'816, "{\"warp\":32}"};
}

ToolkitRow example_toolkit() { return {"nvrtc", "12.9", "sm_61", "12.9"}; }

Problem example_problem(std::int64_t m) {
  return {"matmul", {{"M", m}, {"N", 2048}, {"K", 1024}}, {{"STORAGE", ElementType::float16}}};
}

Config example_config(std::int64_t tile) {
  return Config({{"TILE", tile}, {"UNROLL", true}, {"SCALE", 0.5}, {"LAYOUT", std::string("row")}});
}

Trial example_trial(std::int64_t tile) {
  Trial trial;
  trial.problem = example_problem();
  trial.config = example_config(tile);
  trial.is_default = tile == 1;
  trial.reason = "a note";
  trial.resources = {64, 4096, 352, 16, 3, 2, 1200, 512};
  trial.occupancy = 0.5;
  trial.binary_hash = "00ff";
  trial.max_error = 1.25e-3;
  trial.time = TimeSummary{100.5, 99.25, 101.75, 28};
  for (int i = 0; i < 30; ++i) {
    Sample& sample = trial.samples.emplace_back();
    sample.time_us = 100.0 + i / 8.0;
    sample.mark = i == 0 ? SampleMark::clock_drift : SampleMark::none;
    sample.temperature_c = 61.0 + i;
  }
  trial.samples[7].sm_clock_mhz = 1911;
  trial.samples[8].temperature_c.reset();
  trial.samples[9].mark = SampleMark::power_throttle;
  trial.samples[9].power_w = 249.5;
  trial.canary_us = 20.5;
  trial.clock_scale = 0.96875;
  trial.energy_mj = 18.25;
  trial.sustained_us = 111.75;
  trial.compile_ms = 812.5;
  trial.verify_ms = 3.5;
  trial.measure_ms = 41.25;
  trial.started_unix_ms = 1'700'000'000'123;
  return trial;
}

Trial failed_trial(std::int64_t tile, TrialStatus status, const std::string& reason) {
  Trial trial;
  trial.problem = example_problem();
  trial.config = example_config(tile);
  trial.status = status;
  trial.reason = reason;
  return trial;
}

ContextIds example_context(Store& store, std::int64_t m) {
  ContextIds context;
  context.device = store.device_id(example_device());
  context.toolkit = store.toolkit_id(example_toolkit());
  context.kernel = store.kernel_id({"matmul", "source-a"});
  context.space = store.space_id("matmul", "space-a", "{}");
  context.problem = store.problem_id(example_problem(m), 2.0 * static_cast<double>(m) * 2048 * 1024, 1e6);
  return context;
}

SweepPlan example_plan() {
  SweepPlan plan;
  plan.kernels = {{"matmul", "source-a", "space-a"}};
  plan.devices = {"host"};
  plan.searcher = "random";
  plan.trials = 100;
  plan.compile_timeout_s = 120;
  plan.kernel_timeout_s = 60;
  plan.min_samples = 10;
  plan.max_samples = 200;
  plan.half_width = 0.01;
  plan.sample_budget_ms = 1000;
  plan.finalists = 5;
  plan.rounds = 40;
  plan.drift = 0.02;
  plan.pause_limit_s = 900;
  plan.problems = {{example_problem(), 1, ""}};
  plan.paths = {{"--kernels", "/somewhere"}};
  return plan;
}

std::int64_t begin_example_session(Store& store, const ContextIds& context) {
  SessionRow session;
  session.command_line = "pascaline sweep --kernel matmul";
  session.run_uuid = Store::new_run();
  SweepPlan plan = example_plan();
  plan.problems.clear();  // the database need not hold the example's
  store.save_plan(session.run_uuid, plan);
  session.searcher = "random";
  session.seed = 0xffff'ffff'ffff'fff0;
  session.options_json = "{\"budget\":10}";
  session.device_uuid = "GPU-1";
  session.program_version = "0.1.0";
  return store.begin_session(session, context.device, context.toolkit);
}

Trial distinct_trial() {
  Trial trial = example_trial(1);
  trial.stage = TrialStage::finals;
  trial.is_default = true;
  int number = 100;
  for_each_field(trial, [&](std::string_view, auto& value) {
    using Field = std::decay_t<decltype(value)>;
    ++number;
    if constexpr (std::is_same_v<Field, double> || std::is_same_v<Field, std::optional<double>>) {
      value = number + 0.25;
    } else if constexpr (std::is_same_v<Field, int> || std::is_same_v<Field, std::int64_t>) {
      value = number;
    } else if constexpr (std::is_same_v<Field, std::string>) {
      value = fmt::format("text {}", number);
    }
  });
  return trial;
}

std::vector<std::string> fields_of(const Trial& trial) {
  std::vector<std::string> fields;
  for_each_field(trial, [&](std::string_view name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Field, Config>) {
      fields.push_back(fmt::format("{}: {}", name, value.text()));
    } else if constexpr (std::is_same_v<Field, TrialStatus> || std::is_same_v<Field, TrialStage>) {
      fields.push_back(fmt::format("{}: {}", name, name_of(value)));
    } else if constexpr (std::is_same_v<Field, std::optional<TimeSummary>>) {
      fields.push_back(
          value ? fmt::format("{}: {} {} {} {}", name, value->median_us, value->low_us, value->high_us, value->count)
                : fmt::format("{}: none", name));
    } else if constexpr (std::is_same_v<Field, std::optional<double>>) {
      fields.push_back(value ? fmt::format("{}: {}", name, *value) : fmt::format("{}: none", name));
    } else {
      fields.push_back(fmt::format("{}: {}", name, value));
    }
  });
  return fields;
}

void expect_equal(const Trial& a, const Trial& b) {
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(fields_of(a), fields_of(b));
  EXPECT_EQ(a.shared_trial, b.shared_trial);
}

void expect_equal(const std::optional<TimeSummary>& a, const std::optional<TimeSummary>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) {
    EXPECT_EQ(a->median_us, b->median_us);
    EXPECT_EQ(a->low_us, b->low_us);
    EXPECT_EQ(a->high_us, b->high_us);
    EXPECT_EQ(a->count, b->count);
  }
}

std::string store_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const StoreError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no StoreError";
  return {};
}

int fork_child(const std::function<void()>& work) {
  const int child = ::fork();
  if (child != 0) {
    return child;
  }
  int code = 0;
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    code = 1;
  }
  ::_exit(code);
}

int wait_child(int child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void require(bool condition, const char* what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

}  // namespace pascaline::testing
