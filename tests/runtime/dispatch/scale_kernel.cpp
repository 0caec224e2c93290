#include "tests/runtime/dispatch/scale_kernel.hpp"

#include "core/util/paths.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kJson = R"json({
  "schema": 1,
  "kernel": "scale",
  "description": "y = 2 x",
  "dimensions": [{"name": "ROWS", "description": "rows"}, {"name": "WIDTH", "description": "width", "fixed": true}],
  "types": [{"name": "T", "values": ["float32", "int32"]}],
  "parameters": [
    {"name": "BLOCK", "values": [32, 64, 128], "default": 64},
    {"name": "STEPS", "values": [1, 2, 4], "default": 1},
    {"name": "BROKEN", "values": [0, 1], "default": 0}
  ],
  "constraints": [
    {"require": "STEPS <= ROWS", "because": "every step needs a row"},
    {"require": "WIDTH <= BLOCK", "because": "a block holds a row"}
  ],
  "launch": {"function": "scale", "block": ["BLOCK"], "grid": ["ceil_div(ROWS * WIDTH, BLOCK)"]
}
,
  "arguments": [
    {"name": "x", "buffer": "T", "access": "in", "extent": "ROWS * WIDTH"},
    {"name": "y", "buffer": "T", "access": "out", "extent": "ROWS * WIDTH"},
    {"name": "workspace", "buffer": "float32", "access": "scratch", "extent": "STEPS > 1 ? ROWS * WIDTH : 0"},
    {"name": "counter", "buffer": "int32", "access": "scratch", "extent": "4", "fill": "zero"},
    {"name": "count", "scalar": "int32", "value": "ROWS * WIDTH"}
  ],
  "reference": {"default": true},
  "tolerance": {"float32": 0, "int32": 0},
  "work": {
  "flops" : "ROWS * WIDTH", "bytes" : "2 * ROWS * WIDTH * sizeof(T)"
}
})json";

constexpr const char* kSource = R"(
using float32 = float;
using int32 = int;

#if BROKEN
#error this variant does not compile
#endif

extern "C" __global__ void scale(const T* x, T* y, float* workspace, int* counter, int count) {
  const int i = static_cast<int>(blockIdx.x) * BLOCK + static_cast<int>(threadIdx.x);
  if (i < count) {
    y[i] = 2 * x[i] + counter[0];
  }
}
)";

}  // namespace

const char* scale_json() { return kJson; }

void write_scale_kernel(const std::filesystem::path& folder, const std::string& comment) {
  write_file_atomically(folder / "scale.cu", "// " + comment + kSource);
  write_file_atomically(folder / "scale.json", kJson);
}

Problem scale_problem(std::int64_t rows, std::int64_t width, ElementType type) {
  return {"scale", {{"ROWS", rows}, {"WIDTH", width}}, {{"T", type}}};
}

Config scale_config(std::int64_t block, std::int64_t steps, std::int64_t broken) {
  return Config({{"BLOCK", block}, {"STEPS", steps}, {"BROKEN", broken}});
}

ToolkitRow old_toolkit() { return {"g++", "1.0", "host", ""}; }

Winner scale_winner(const Problem& problem, const Config& config, double median_us) {
  Winner winner;
  winner.trial.problem = problem;
  winner.trial.config = config;
  winner.trial.stage = TrialStage::finals;
  winner.trial.time = TimeSummary{median_us, median_us * 0.9, median_us * 1.1, 30};
  winner.confidence = 0.9;
  winner.kernel = {"scale", "now"};
  winner.toolkit = old_toolkit();
  winner.device = {"host", "a processor", "", 4, 1, "{}"};
  winner.space_hash = "a space";
  return winner;
}

void add_winner(Store& store, const Winner& winner) {
  ContextIds context;
  context.device = store.device_id(winner.device);
  context.toolkit = store.toolkit_id(winner.toolkit);
  context.kernel = store.kernel_id(winner.kernel);
  context.space = store.space_id(winner.kernel.name, winner.space_hash, "{}");
  context.problem = store.problem_id(winner.trial.problem, 1, 1);
  SessionRow session;
  session.command_line = "test";
  session.searcher = "none";
  session.options_json = "{}";
  session.program_version = "0";
  const std::int64_t id = store.begin_session(session, context.device, context.toolkit);
  Trial trial = winner.trial;
  for (int i = 0; i < 8; ++i) {
    trial.samples.emplace_back().time_us = trial.time->median_us;
  }
  const std::int64_t trial_id = store.add_trial(id, context, trial);
  store.set_winner(context, trial_id, trial.time, winner.confidence, winner.objective);
  store.end_session(id, "finished");
}

}  // namespace pascaline::testing
