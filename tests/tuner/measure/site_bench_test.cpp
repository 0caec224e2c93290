#include "tuner/measure/site_bench.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/util/sanitizer.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/site_space.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/share.hpp"
#include "tuner/measure/run_finals.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

DispatcherOptions kernels() {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return options;
}

// Attention to some of the keys: of `rows` rows, or one, with a choice as of `--attention`.
Problem sparse_site(std::int64_t rows, std::int64_t keys, const char* attention, const char* weight,
                    const char* cache) {
  const AttentionChoice choice = parse_attention(attention);
  Values values{{"HIDDEN", "256"},
                {"HEADS", "4"},
                {"KV_HEADS", "2"},
                {"HEAD_DIM", "64"},
                {"KEYS", std::to_string(keys)},
                {"QK_NORM", "1"},
                {"SECTION_H", "8"},
                {"SECTION_W", "8"},
                {"QKV", weight},
                {"OUTPUT", weight},
                {"CACHE", cache},
                {"BLOCK", std::to_string(choice.mask.block)},
                {"WINDOW", std::to_string(choice.mask.window)},
                {"SINKS", std::to_string(choice.mask.sinks)},
                {"STRIDE", std::to_string(choice.mask.stride)},
                {"PART", std::to_string(choice.chooses_blocks() ? choice.part() : 0)}};
  if (rows > 1) {
    values.emplace_back("ROWS", std::to_string(rows));
  }
  return site_space(rows > 1 ? "site_prompt_sparse_attention" : "site_decode_sparse_attention").problem(values);
}

// Small sites of each kind, with the types that alternatives differ for.
std::vector<Problem> small_sites() {
  std::vector<Problem> sites;
  const auto add = [&](const char* kernel, Values values) { sites.push_back(site_space(kernel).problem(values)); };
  for (const char* weight : {"float32", "q8_0"}) {
    for (const char* cache : {"float32", "int8"}) {
      add("site_decode_attention", {{"HIDDEN", "256"},
                                    {"HEADS", "4"},
                                    {"KV_HEADS", "2"},
                                    {"HEAD_DIM", "64"},
                                    {"KEYS", "70"},
                                    {"QK_NORM", "1"},
                                    {"SECTION_H", "8"},
                                    {"SECTION_W", "8"},
                                    {"QKV", weight},
                                    {"OUTPUT", weight},
                                    {"CACHE", cache}});
    }
    add("site_decode_mlp", {{"HIDDEN", "256"}, {"INTERMEDIATE", "512"}, {"GATE_UP", weight}, {"DOWN", weight}});
    add("site_head", {{"ROWS", "1"}, {"HIDDEN", "256"}, {"VOCABULARY", "300"}, {"HEAD", weight}});
    add("site_next_token", {{"HIDDEN", "256"}, {"VOCABULARY", "300"}, {"TABLE", weight}});
    for (const auto& [kind, rows] : {std::pair{"few", "2"}, std::pair{"few", "7"}, std::pair{"prompt", "11"}}) {
      add(fmt::format("site_{}_attention", kind).c_str(), {{"ROWS", rows},
                                                           {"HIDDEN", "256"},
                                                           {"HEADS", "4"},
                                                           {"KV_HEADS", "2"},
                                                           {"HEAD_DIM", "64"},
                                                           {"KEYS", "20"},
                                                           {"QK_NORM", "0"},
                                                           {"SECTION_H", "8"},
                                                           {"SECTION_W", "8"},
                                                           {"QKV", weight},
                                                           {"OUTPUT", weight},
                                                           {"CACHE", "float32"}});
      add(fmt::format("site_{}_mlp", kind).c_str(),
          {{"ROWS", rows}, {"HIDDEN", "256"}, {"INTERMEDIATE", "512"}, {"GATE_UP", weight}, {"DOWN", weight}});
    }
    add("site_vision_attention", {{"ROWS", "12"},
                                  {"HIDDEN", "256"},
                                  {"HEADS", "4"},
                                  {"HEAD_DIM", "64"},
                                  {"SEGMENTS", "2"},
                                  {"QKV", weight},
                                  {"PROJECTION", weight}});
    add("site_vision_mlp",
        {{"ROWS", "12"}, {"HIDDEN", "256"}, {"INTERMEDIATE", "512"}, {"FC1", weight}, {"FC2", weight}});
    for (const std::int64_t rows : {1, 11}) {
      for (const char* attention : {"window=20,sinks=5", "strided=2,window=9,sinks=16,block=16", "topk=50%,block=16"}) {
        const bool packed = std::string(weight) == "q8_0";
        sites.push_back(sparse_site(rows, 100, attention, weight, packed ? "int8" : "float32"));
        if (!packed && attention != std::string("strided=2,window=9,sinks=16,block=16")) {
          sites.push_back(sparse_site(rows, 24, attention, weight, "float32"));  // of which nothing is left out
        }
      }
    }
    for (const char* first : {"0", "1"}) {
      add("site_merger", {{"TOKENS", std::string(weight) == "float32" ? "11" : "3"},
                          {"HIDDEN", "64"},
                          {"MERGED", "256"},
                          {"OUT", "256"},
                          {"MERGED_FIRST", first},
                          {"FC1", weight},
                          {"FC2", weight}});
    }
  }
  return sites;
}

// Queries, keys and values of several types.
std::vector<Problem> mixed_sites() {
  using Types = std::array<const char*, 3>;
  std::vector<Problem> sites;
  for (const Types& types :
       {Types{"q4_k", "q4_k", "q6_k"}, Types{"float16", "float32", "float32"}, Types{"q8_0", "float16", "int8_row"}}) {
    Values values{{"HIDDEN", "256"}, {"HEADS", "4"},     {"KV_HEADS", "2"},   {"HEAD_DIM", "64"}, {"KEYS", "40"},
                  {"QK_NORM", "1"},  {"SECTION_H", "8"}, {"SECTION_W", "8"},  {"QKV", types[0]},  {"K", types[1]},
                  {"V", types[2]},   {"OUTPUT", "q4_k"}, {"CACHE", "float32"}};
    sites.push_back(site_space("site_decode_attention").problem(values));
    values.emplace_back("ROWS", "11");
    sites.push_back(site_space("site_prompt_attention").problem(values));
    values.back().second = "5";
    sites.push_back(site_space("site_few_attention").problem(values));
  }
  sites.push_back(sparse_site(11, 100, "window=20,sinks=5", "q4_k", "float32"));
  sites.back().types[2].second = ElementType::q6_k;
  return sites;
}

class SiteBenchTest : public ::testing::Test {
 protected:
  void expect_all_alike(const std::vector<Problem>& sites) const;

  std::unique_ptr<Device> host_ = open_device("emulator");
};

TEST_F(SiteBenchTest, EveryAlternativeComputesWhatItsOperationsDo) {
  expect_all_alike(share_of(small_sites(), "sites"));
}

TEST_F(SiteBenchTest, ProjectionsOfSeveralTypesToo) { expect_all_alike(mixed_sites()); }

void SiteBenchTest::expect_all_alike(const std::vector<Problem>& sites) const {
  for (const Problem& site : sites) {
    SiteBench bench(*host_, kernels(), site, 7);
    bench.prepare();
    const std::vector<std::string> known = kernels_of_site(site.kernel);
    for (const AlternativeFacts& alternative : alternatives_of(site.kernel)) {
      SCOPED_TRACE(fmt::format("{} as {}", site.text(), alternative.name));
      const auto refused = bench.build(alternative.name);
      EXPECT_EQ(refused.has_value(), !alternative.fits(site_key(site)));
      if (refused) {
        EXPECT_EQ(refused->first, TrialStatus::rejected) << refused->second;
        continue;
      }
      for (const std::string& kernel : bench.kernels_of(alternative.name)) {
        EXPECT_NE(std::find(known.begin(), known.end(), kernel), known.end())
            << kernel << " belongs into the list of the site's kernels: its source is part of what was measured";
      }
      bench.run(alternative.name);
      const SiteTensors::Difference difference = bench.difference();
      EXPECT_LE(difference.error, bench.tolerance()) << difference.where;
      const Graph graph = bench.record(alternative.name);
      EXPECT_GT(host_->time_launch_us(graph, false), 0);
    }
  }
}

TEST_F(SiteBenchTest, OtherResultsAreSeen) {
  InputDrawing drawing(*host_, std::nullopt);
  SiteTensors tensors(host_->memory(), drawing, 3);
  const TensorView changed = tensors.changed("hidden", ElementType::float32, {4, 5}, -1, 1);
  const TensorView written = tensors.written("out", {2, 3});
  auto* const values = static_cast<float*>(written.data);
  std::fill(values, values + 6, 2.0F);
  tensors.keep_results();
  EXPECT_EQ(tensors.difference().error, 0);
  values[4] = 2.5F;
  EXPECT_NEAR(tensors.difference().error, 0.25, 1e-6);
  EXPECT_EQ(tensors.difference().where, "out[4]: 2.5 instead of 2");
  tensors.restore();
  const SiteTensors::Difference poisoned = tensors.difference();
  EXPECT_FALSE(poisoned.is_number) << "what is not written at all";
  EXPECT_FALSE(poisoned.error <= 1);
  std::fill(values, values + 6, 2.0F);
  EXPECT_EQ(tensors.difference().error, 0);
  static_cast<float*>(changed.data)[0] += 1;
  EXPECT_GT(tensors.difference().error, 0.3);
}

// As a sweep runs them.
TEST_F(SiteBenchTest, TrialsOfASite) {
  const Space space = site_space("site_decode_attention");
  const BoundSpace bound(space, small_sites().front(), host_->info().limits);
  DeviceMonitor monitor(*host_, {.passive = true});
  MeasureOptions quick;
  quick.min_samples = quick.max_samples = 3;
  TrialRunner runner(monitor, bound, kernels(), quick, 1);
  Compiled code;
  code.result.ok = true;
  code.result.binary.kind = BinaryKind::host_object;
  for (const char* alternative : {"single", "rotated"}) {
    const Trial trial = runner.run(config_of_alternative(alternative), code, 0);
    EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
    EXPECT_EQ(trial.is_default, std::string(alternative) == "single");
    ASSERT_TRUE(trial.time.has_value());
    EXPECT_GT(trial.time->median_us, 0);
    ASSERT_TRUE(trial.max_error.has_value());
    EXPECT_LT(*trial.max_error, 1e-4);
  }
  Problem of_rows = small_sites().front();
  for (auto& [name, type] : of_rows.types) {
    type = name == "QKV" ? ElementType::int8_row : type;
  }
  const BoundSpace bound_rows(space, of_rows, host_->info().limits);
  TrialRunner of_row_scales(monitor, bound_rows, kernels(), quick, 1);
  const Trial refused = of_row_scales.run(config_of_alternative("normed"), code, 0);
  EXPECT_EQ(refused.status, TrialStatus::rejected);
  EXPECT_NE(refused.reason.find("does not fit"), std::string::npos) << refused.reason;
  FinalsOptions options;
  options.rounds = options.min_rounds = 4;
  options.energy_window_ms = 0;
  const auto finals =
      run_finals(runner, {{config_of_alternative("rotated"), {}}, {config_of_alternative("single"), {}}}, options);
  ASSERT_TRUE(finals.has_value());
  EXPECT_TRUE(finals->failed.empty());
  EXPECT_EQ(finals->trials.size(), 2U);
}

// A kernel of the alternative that does not compile costs that alternative.
TEST_F(SiteBenchTest, AKernelThatCannotBeBuiltIsATrialsOutcome) {
  const TemporaryFolder folder;
  std::filesystem::copy(data_folder("kernel_templates"), folder.path(), std::filesystem::copy_options::recursive);
  std::ofstream(folder / "attention_decode_qkv.cu") << "#error this kernel cannot be built\n";
  DispatcherOptions options = kernels();
  options.kernels = folder.path();
  SiteBench bench(*host_, options, small_sites().front(), 7);
  bench.prepare();
  const auto refused = bench.build("rotated");
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->first, TrialStatus::compile_failed);
  EXPECT_NE(refused->second.find("attention_decode_qkv"), std::string::npos) << refused->second;
  EXPECT_FALSE(bench.build("single").has_value());
  EXPECT_THROW((void)bench.build("doubled"), Error);
}

// This process may take so many bytes of memory more, while it lives.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::uint64_t more) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + more;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// An alternative that finds no memory for its scratch costs that alternative, and those after it are measured.
TEST_F(SiteBenchTest, WantOfMemoryIsATrialsOutcome) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer reserves more addresses than any limit leaves";
  }
  const TemporaryFolder folder;
  std::filesystem::copy(data_folder("search_spaces"), folder.path(), std::filesystem::copy_options::recursive);
  std::string json = bytes_of(folder / "mlp.json");
  const std::string extent = R"x("extent": "2 * round_up(M * INTERMEDIATE, 4)")x";
  ASSERT_NE(json.find(extent), std::string::npos);
  json.replace(json.find(extent), extent.size(), R"("extent": "M * INTERMEDIATE * 1048576")");
  write_bytes(folder / "mlp.json", json);
  DispatcherOptions options = kernels();
  options.spaces = folder.path();
  const Space space = site_space("site_decode_mlp");
  const Problem site = space.problem({{"HIDDEN", "256"}, {"INTERMEDIATE", "512"}});
  {
    SiteBench bench(*host_, options, site, 7);
    bench.prepare();
    ASSERT_FALSE(bench.build("whole")) << "compiled, and 2 GiB that nobody touches are there";
  }
  const BoundSpace bound(space, site, host_->info().limits);
  DeviceMonitor monitor(*host_, {.passive = true});
  MeasureOptions quick;
  quick.min_samples = quick.max_samples = 3;
  TrialRunner runner(monitor, bound, options, quick, 1);
  Compiled code;
  code.result.ok = true;
  code.result.binary.kind = BinaryKind::host_object;
  runner.prepare();
  const Trial refused = [&] {
    const MemoryLimit limit(std::uint64_t{256} << 20U);
    return runner.run(config_of_alternative("whole"), code, 0);
  }();
  EXPECT_EQ(refused.status, TrialStatus::launch_failed) << refused.reason;
  EXPECT_NE(refused.reason.find("memory"), std::string::npos) << refused.reason;
  EXPECT_FALSE(runner.device_lost());
  for (const char* alternative : {"normed", "whole", "single"}) {
    const Trial trial = runner.run(config_of_alternative(alternative), code, 0);
    EXPECT_EQ(trial.status, TrialStatus::ok) << alternative << ": " << trial.reason;
  }
}

}  // namespace
}  // namespace pascaline::testing
