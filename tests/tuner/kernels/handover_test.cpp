// Kernels whose blocks take over from each other within a launch, with any number of blocks that run at the same time.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/device/emulator/emulated_module.hpp"
#include "runtime/device/emulator/grid_runner.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/problem_data.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::testing {
namespace {

constexpr std::uint32_t kOwnGrid = 0;

struct Handover {
  const char* name;
  const char* kernel;
  std::vector<std::pair<std::string, std::string>> problem;
  std::vector<std::pair<std::string, std::int64_t>> parameters;  ///< that are not the default's
  std::uint32_t fewest_blocks = 1;  ///< that it may be launched with; kOwnGrid: no other number than its own
};

void PrintTo(const Handover& tested, std::ostream* out) { *out << tested.name; }

Config config_of(const Space& space, const DeviceLimits& limits, const Handover& tested) {
  std::vector<Config::Setting> settings = space.default_config(limits).settings();
  for (const auto& [name, value] : tested.parameters) {
    for (auto& [known, setting] : settings) {
      setting = known == name ? Value(value) : setting;
    }
  }
  return Config(std::move(settings));
}

class HandoverTest : public ::testing::TestWithParam<Handover> {};

// A worker runs a block to its end before its next one: so many blocks are resident, of any number that is launched.
TEST_P(HandoverTest, EndsHoweverFewBlocksRunAtTheSameTime) {
  const auto device = open_device("emulator");
  const CompileTarget plan = compile_target(device->info(), "");
  const Toolchain toolchain = Toolchain::find(plan.architecture);
  CubinCache cache(test_cache());
  const Space space = Space::load(data_folder("search_spaces") / (std::string(GetParam().kernel) + ".json"));
  const KernelSource source =
      KernelSource::load(data_folder("kernel_templates") / (std::string(GetParam().kernel) + ".cu"));
  const BoundSpace bound(space, space.problem(GetParam().problem), plan.limits);
  const Config config = config_of(space, plan.limits, GetParam());
  ASSERT_FALSE(bound.why_invalid(config)) << *bound.why_invalid(config);
  const CompileResult compiled =
      cache.get(toolchain, compile_request(bound, config, source, plan.kind, plan.architecture));
  ASSERT_TRUE(compiled.ok) << compiled.reason;
  const EmulatedModule code(compiled.binary.code, space.launches.front().function);

  ProblemData data(*device, bound, load_reference(*device, bound));
  std::uint64_t seed = 1;
  const LaunchArguments arguments(*device, bound, config, data.buffers());
  arguments.refill_scratch(*device, 0xFF);
  Geometry geometry = bound.geometry(space.launches.front(), config);
  struct Way {
    unsigned workers;
    std::optional<std::uint64_t> shuffle;
  };
  for (const auto& [workers, shuffle] :
       {Way{1, {}}, Way{2, {}}, Way{3, {}}, Way{16, {}}, Way{1, 1}, Way{3, 2}, Way{16, 3}}) {
    GridRunner runner(workers, shuffle);
    const bool any = GetParam().fewest_blocks != kOwnGrid;
    for (const std::uint32_t blocks : any ? std::vector<std::uint32_t>{1, 2, 5, 64, 700} : std::vector{kOwnGrid}) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks, " + std::to_string(workers) + " at a time" +
                   (shuffle ? ", shuffled" : ""));
      if (any) {
        geometry.grid = {std::max(blocks, GetParam().fewest_blocks), 1, 1};
      }
      data.draw(seed++);  // what launches before have handed on is of other numbers
      data.poison_outputs();
      ASSERT_EQ(runner.run({&code.entry(), code.shared(), geometry, arguments.pointers()}), std::nullopt);
      const ProblemData::Check check = data.check_outputs();
      ASSERT_TRUE(check.passed()) << "error " << check.max_error << " at " << check.where;
      ASSERT_EQ(data.damaged_guard(), "");
    }
  }
}

// Tiles so small that some are left over behind full waves of the emulated device.
std::vector<std::pair<std::string, std::int64_t>> split_tail(std::int64_t parts, std::int64_t swap) {
  return {{"BLOCK_M", 32},   {"BLOCK_N", 32},    {"THREAD_N", 4},   {"BLOCK_K", 8}, {"UNROLL_K", 8},
          {"MIN_BLOCKS", 2}, {"SPLIT_K", parts}, {"SPLIT_TAIL", 1}, {"SWAP", swap}};
}

const Handover kHandovers[] = {
    {"Mlp", "mlp", {{"M", "2"}, {"HIDDEN", "200"}, {"INTERMEDIATE", "300"}, {"WEIGHT", "float16"}}, {}},
    {"MlpWithTicketsAhead",
     "mlp",
     {{"M", "1"}, {"HIDDEN", "200"}, {"INTERMEDIATE", "300"}, {"WEIGHT", "float16"}},
     {{"TICKETS_AHEAD", 1}, {"PREFETCH", 1}, {"MIN_BLOCKS", 1}}},
    {"MlpOfOneItemEach", "mlp", {{"M", "1"}, {"HIDDEN", "3"}, {"INTERMEDIATE", "5"}, {"WEIGHT", "float16"}}, {}},
    {"PackedMlp",
     "mlp",
     {{"M", "1"}, {"HIDDEN", "256"}, {"INTERMEDIATE", "256"}, {"WEIGHT", "q4_k"}, {"DOWN", "q6_k"}},
     {}},
    {"PackedMlpWithTicketsAhead",
     "mlp",
     {{"M", "2"}, {"HIDDEN", "256"}, {"INTERMEDIATE", "256"}, {"WEIGHT", "q8_0"}},
     {{"TICKETS_AHEAD", 1}, {"PREFETCH", 1}, {"COUNTED", 0}}},
    {"PackedMlpOfSeveralSegments",  // of 2560 columns, which is no whole number of what threads take at once
     "mlp",
     {{"M", "6"}, {"HIDDEN", "3328"}, {"INTERMEDIATE", "16"}, {"WEIGHT", "q8_0"}},
     {}},
    {"AttentionProjected",
     "attention_projected",
     {{"HEADS", "4"}, {"KV_HEADS", "2"}, {"HEAD_DIM", "32"}, {"KEYS", "300"}, {"POSITIONS", "300"}, {"HIDDEN", "200"}},
     {},
     20},  // two heads of keys, ten ranges of the context
    {"AttentionProjectedOfAHeadEach",
     "attention_projected",
     {{"HEADS", "2"}, {"KV_HEADS", "2"}, {"HEAD_DIM", "256"}, {"KEYS", "300"}, {"POSITIONS", "300"}, {"HIDDEN", "100"}},
     {},
     20},
    {"AttentionProjectedWithTicketsAhead",
     "attention_projected",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"KEYS", "300"},
      {"POSITIONS", "300"},
      {"HIDDEN", "200"},
      {"CACHE", "int8"},
      {"WEIGHT", "float16"}},
     {{"TICKETS_AHEAD", 1}, {"PREFETCH", 1}, {"KEY_LANES", 32}},
     20},
    {"AttentionProjectedOfOneRange",
     "attention_projected",
     {{"HEADS", "2"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"KEYS", "9"}, {"POSITIONS", "9"}, {"HIDDEN", "3"}},
     {}},
    {"AttentionProjectedPacked",
     "attention_projected",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"KEYS", "300"},
      {"POSITIONS", "300"},
      {"HIDDEN", "200"},
      {"WEIGHT", "q4_k"}},
     {{"TICKETS_AHEAD", 1}, {"PREFETCH", 1}, {"WARPS_K", 4}},
     20},
    {"AttentionLayer",
     "attention_layer_q",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"KEYS", "300"},
      {"POSITIONS", "300"},
      {"HIDDEN", "200"},
      {"WEIGHT", "q8_0"},
      {"BACK", "q6_k"},
      {"CACHE", "int8"}},
     {},
     20},
    {"AttentionLayerWithTicketsAhead",
     "attention_layer_q",
     {{"HEADS", "4"},
      {"KV_HEADS", "2"},
      {"HEAD_DIM", "32"},
      {"KEYS", "300"},
      {"POSITIONS", "300"},
      {"HIDDEN", "256"},
      {"WEIGHT", "q4_k"}},
     {{"TICKETS_AHEAD", 1}, {"PREFETCH", 1}, {"WARPS_K", 4}, {"BACK_WARPS_K", 4}, {"L2_AHEAD", 1}},
     20},
    {"AttentionLayerOfOneRange",
     "attention_layer_q",
     {{"HEADS", "2"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"KEYS", "9"}, {"POSITIONS", "9"}, {"HIDDEN", "3"}},
     {}},
    {"PartsOfTilesOfThree",
     "matmul",
     {{"M", "70"}, {"N", "130"}, {"K", "200"}, {"EPILOGUE", "4"}},
     {{"SPLIT_K", 3}},
     kOwnGrid},
    {"PartsOfTilesOfMany",
     "matmul",
     {{"M", "16"}, {"N", "72"}, {"K", "512"}, {"WEIGHT", "float16"}},
     {{"BLOCK_M", 32}, {"BLOCK_N", 64}, {"SPLIT_K", 16}, {"MIN_BLOCKS", 1}, {"BLOCK_K", 8}, {"UNROLL_K", 8}},
     kOwnGrid},
    {"PairsOfTilesBehindFullWaves",
     "matmul",
     {{"M", "70"}, {"N", "90"}, {"K", "200"}, {"EPILOGUE", "5"}},
     split_tail(2, 3),
     kOwnGrid},
    {"PartsOfTilesBehindFullWaves",
     "matmul",
     {{"M", "260"}, {"N", "60"}, {"K", "200"}, {"EPILOGUE", "4"}},
     split_tail(3, 0),
     kOwnGrid},
    {"PartsOfTilesOfIntegers",
     "matmul_q",
     {{"M", "70"}, {"N", "130"}, {"K", "512"}, {"WEIGHT", "q8_0"}},
     {{"SPLIT_K", 4}},
     kOwnGrid},
    {"RoundedTogether",
     "matvec_q",
     {{"M", "2"}, {"N", "192"}, {"K", "512"}, {"EPILOGUE", "7"}, {"WEIGHT", "q4_k"}, {"INPUT", "int8"}},
     {{"WARPS_K", 8}},
     kOwnGrid},
    {"RoundedTogetherOfPartsOfRows",
     "matvec_q",
     {{"M", "1"}, {"N", "128"}, {"K", "1024"}, {"EPILOGUE", "7"}, {"WEIGHT", "q8_0"}, {"INPUT", "int8"}},
     {{"WARPS", 4}, {"WARPS_K", 4}, {"LANES_K", 2}, {"SPLIT_K", 2}},
     kOwnGrid},
};

INSTANTIATE_TEST_SUITE_P(Kernels, HandoverTest, ::testing::ValuesIn(kHandovers),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace pascaline::testing
