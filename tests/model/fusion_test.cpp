// How sites of a model are computed: what a plan chooses among, by what, and which plans are refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "db/store.hpp"
#include "model/fusion/fusion_choice.hpp"
#include "model/fusion/fusion_file.hpp"
#include "model/fusion/site_space.hpp"
#include "model/model.hpp"
#include "model/model_sites.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/memory/unbacked_memory.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/golden.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kMlp = "site_decode_mlp HIDDEN=256 INTERMEDIATE=512 GATE_UP=q8_0 DOWN=q8_0";
constexpr const char* kRowMlp = "site_decode_mlp HIDDEN=256 INTERMEDIATE=512 GATE_UP=int8_row DOWN=int8_row";
constexpr const char* kFloatMlp = "site_decode_mlp HIDDEN=256 INTERMEDIATE=512 GATE_UP=float32 DOWN=float32";

Problem site(const std::string& text) {
  const std::string document =
      fmt::format(R"({{"device": {{"kind": "host", "name": "x", "compute_capability": "", "sm_count": 1}},
                      "sites": [{{"site": "{}", "alternative": "single"}}]}})",
                  text);
  return parse_fusion(document, "test").sites.front().site;
}

std::string plan_text(const std::string& site, const std::string& alternative) {
  return fmt::format(R"({{"device": {{"kind": "host", "name": "x", "compute_capability": "", "sm_count": 1}},
                         "sites": [{{"site": "{}", "alternative": "{}"}}]}})",
                     site, alternative);
}

std::string fault_of(const std::string& text) {
  try {
    (void)parse_fusion(text, "plan.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Those of an MLP, of which the second saves a launch.
std::vector<SiteCandidate> candidates() {
  const ops::KernelProblem some("matvec_q");
  return {{0, "single", "", 0, {{"rmsnorm", some}, {"matvec_q", some}, {"matvec_q", some}}},
          {1, "normed", "", 0, {{"normed_matmul", some}, {"matvec_q", some}}}};
}

TEST(SiteSpaceTest, EveryKindOfSiteIsASpaceOfItsAlternatives) {
  EXPECT_FALSE(is_site("matmul"));
  EXPECT_THROW((void)site_space("matmul"), Error);
  for (const std::string& kernel : site_kernels()) {
    EXPECT_TRUE(is_site(kernel));
    const Space space = site_space(kernel);
    EXPECT_EQ(space.kernel, kernel);
    const std::vector<AlternativeFacts> alternatives = alternatives_of(kernel);
    ASSERT_EQ(space.parameters.size(), 1U);
    EXPECT_EQ(space.parameters[0].values.size(), alternatives.size());
    const Problem example = space.example_problem();
    EXPECT_EQ(site_key(example).named(), example);
    const BoundSpace bound(space, example, DeviceLimits());
    EXPECT_EQ(alternative_of(bound.default_config()), "single") << kernel;
    EXPECT_TRUE(alternatives.front().fits(site_key(example)));
    EXPECT_GT(bound.flops(), 0) << kernel;
    EXPECT_GT(bound.bytes(), 0) << kernel;
    for (const AlternativeFacts& alternative : alternatives) {
      EXPECT_EQ(alternative_of(config_of_alternative(alternative.name)), alternative.name);
      EXPECT_FALSE(bound.why_invalid(config_of_alternative(alternative.name))) << alternative.name;
    }
    EXPECT_EQ(site_source(kernel, data_folder("kernel_templates")).hash.size(), 32U);
  }
  EXPECT_NE(site_source("site_decode_mlp", data_folder("kernel_templates")).hash,
            site_source("site_vision_mlp", data_folder("kernel_templates")).hash);
}

TEST(FusionFileTest, SaysWhatIsWrong) {
  EXPECT_EQ(fault_of(plan_text(kMlp, "normed")), "");
  EXPECT_NE(fault_of("{").find("plan.json: not valid JSON"), std::string::npos) << fault_of("{");
  const std::string plan = plan_text(kMlp, "normed");
  EXPECT_NE(fault_of(plan.substr(0, plan.rfind('}')) + R"(, "sites": []})").find("this key is a duplicate"),
            std::string::npos);
  EXPECT_EQ(fault_of(R"({"schema": 1, )" + plan.substr(1)), "");
  for (const std::string schema : {"2", "0", "\"1\"", "null"}) {
    const std::string fault = fault_of(R"({"schema": )" + schema + ", " + plan.substr(1));
    EXPECT_NE(fault.find("plan.json: its schema is " + schema + ", and this program knows 1"), std::string::npos)
        << fault;
    EXPECT_EQ(fault.find('\n'), std::string::npos);
  }
  EXPECT_NE(fault_of("[]").find("is not a plan of fusion"), std::string::npos);
  EXPECT_NE(fault_of(plan_text("site_of_mind A=1", "single")).find("/sites/0: there is no site 'site_of_mind'"),
            std::string::npos);
  EXPECT_NE(fault_of(plan_text("site_decode_mlp HIDDEN=256", "single")).find("/sites/0"), std::string::npos);
  EXPECT_NE(fault_of(plan_text("site_decode_mlp HIDDEN", "single")).find("is not NAME=VALUE"), std::string::npos);
  EXPECT_NE(fault_of(plan_text(kMlp, "doubled")).find("has no alternative 'doubled' (it has: single, normed"),
            std::string::npos);
  EXPECT_NE(fault_of(plan_text(kRowMlp, "normed")).find("cannot be computed as 'normed'"), std::string::npos);
  const std::string doubled = fmt::format(
      R"({{"device": {{"kind": "host", "name": "x", "compute_capability": "", "sm_count": 1}},
          "sites": [{{"site": "{0}", "alternative": "single"}}, {{"site": "{0}", "alternative": "normed"}}]}})",
      kMlp);
  EXPECT_NE(fault_of(doubled).find("/sites/1: site_decode_mlp"), std::string::npos);
  EXPECT_NE(fault_of(R"({"device": {"kind": "host"}, "sites": []})").find("/device: 'name' is missing"),
            std::string::npos);
}

TEST(FusionFileTest, OfAnotherModelOrDeviceIsIgnoredAsAWhole) {
  const FusionFile file = parse_fusion(plan_text(kMlp, "normed"), "plan.json");
  std::vector<std::string> told;
  const auto warn = [&](const std::string& line) { told.push_back(line); };
  const std::vector<Problem> sites{site(kMlp), site(kFloatMlp)};
  EXPECT_EQ(plan_for_model(file, file.device, sites, warn).sites.size(), 1U);
  EXPECT_TRUE(told.empty());
  DeviceRow other = file.device;
  other.sm_count = 20;
  EXPECT_TRUE(plan_for_model(file, other, sites, warn).sites.empty());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("plan.json is a plan for x (host, 1 multiprocessor), not for x (host, 20 multiprocessors): "
                         "nothing of it is used"),
            std::string::npos)
      << told[0];
  EXPECT_TRUE(plan_for_model(file, file.device, {site(kFloatMlp)}, warn).sites.empty());
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NE(told[1].find("plan for another model"), std::string::npos) << told[1];
  EXPECT_NE(told[1].find(kMlp), std::string::npos) << told[1];
}

// Not the half of it that would fit.
TEST(FusionFileTest, OneSiteThatTheModelLacksMakesItAnotherModels) {
  FusionFile file = parse_fusion(plan_text(kFloatMlp, "normed"), "plan.json");
  file.sites.push_back({site(kMlp), "normed"});
  std::vector<std::string> told;
  const auto warn = [&](const std::string& line) { told.push_back(line); };
  for (int turn = 0; turn < 2; ++turn) {  // whichever comes first
    const FusionFile used = plan_for_model(file, file.device, {site(kFloatMlp)}, warn);
    EXPECT_TRUE(used.sites.empty());
    EXPECT_TRUE(used.name.empty()) << "nothing is said to be by it";
    std::swap(file.sites.front(), file.sites.back());
  }
  ASSERT_EQ(told.size(), 2U) << "one line each";
  EXPECT_NE(told[0].find("nothing of it is used"), std::string::npos) << told[0];
  // Other sizes of what the model has are no other model's.
  const Problem head = site("site_head ROWS=1 HIDDEN=256 VOCABULARY=512 HEAD=q8_0");
  FusionFile of_rows = parse_fusion(plan_text("site_head ROWS=5 HIDDEN=256 VOCABULARY=512 HEAD=q8_0", "single"), "p");
  EXPECT_EQ(plan_for_model(of_rows, of_rows.device, {head}, warn).sites.size(), 1U);
  EXPECT_EQ(told.size(), 2U);
}

TEST(FusionChooserTest, WithoutMeasurementsLaunchesAreCounted) {
  const SiteKey key = site_key(site(kMlp));
  std::vector<SiteCandidate> both = candidates();
  FusionChooser chooser(Fusion::automatic, {}, nullptr);
  SiteChoice choice = chooser.choose(key, both);
  EXPECT_EQ(choice.candidate, 1U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::estimated);
  EXPECT_NE(choice.reason.find("an estimate, nothing was measured: it saves a launch"), std::string::npos);
  both[1].extra_launches = 2;
  EXPECT_EQ(chooser.choose(key, both).candidate, 0U) << "what it does more is not worth it";
  both[1].extra_launches = 0;
  EXPECT_EQ(chooser.choose(key, both, [](const SiteCandidate&) { return false; }).candidate, 0U);
  EXPECT_EQ(chooser.choose(key, std::span(both).first(1)).origin, ChoiceOrigin::only);
  FusionChooser off(Fusion::off, parse_fusion(plan_text(kMlp, "normed"), "plan.json"), nullptr);
  choice = off.choose(key, both);
  EXPECT_EQ(choice.candidate, 0U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::off);
}

TEST(FusionChooserTest, AFileGoesBeforeAllElse) {
  const std::vector<SiteCandidate> both = candidates();
  FusionChooser chooser(Fusion::automatic, parse_fusion(plan_text(kMlp, "single"), "plan.json"), nullptr);
  SiteChoice choice = chooser.choose(site_key(site(kMlp)), both);
  EXPECT_EQ(choice.candidate, 0U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::file);
  // What varies from pass to pass is taken from the nearest entry.
  const std::string head = "site_head ROWS={} HIDDEN=256 VOCABULARY=512 HEAD=q8_0";
  FusionChooser of_head(Fusion::automatic,
                        parse_fusion(plan_text(fmt::format(fmt::runtime(head), 1), "normed"), "plan.json"), nullptr);
  choice = of_head.choose(site_key(site(fmt::format(fmt::runtime(head), 3))), std::span(both).first(2));
  EXPECT_EQ(choice.candidate, 1U);
  EXPECT_NE(choice.reason.find("for site_head ROWS=1"), std::string::npos) << choice.reason;
  std::vector<SiteCandidate> others = candidates();
  others[1].name = "other";
  choice = of_head.choose(site_key(site(fmt::format(fmt::runtime(head), 3))), others);
  EXPECT_EQ(choice.candidate, 0U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::refused);
  FusionChooser fails(Fusion::automatic, parse_fusion(plan_text(kMlp, "normed"), "plan.json"), nullptr);
  choice = fails.choose(site_key(site(kMlp)), both, [](const SiteCandidate&) { return false; });
  EXPECT_EQ(choice.candidate, 0U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::refused);
}

// A winner as a sweep stores it.
class FusionWinnersTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::unique_ptr<Device> host_ = open_device("emulator");
  DispatcherOptions options_;

  void SetUp() override {
    options_.cache = PASCALINE_TEST_CACHE;
    options_.database = folder_ / "tuned.db";
  }
  void store_winner(const std::string& text, const std::string& alternative, const std::string& hash = "") {
    const Space space = site_space(site(text).kernel);
    KernelSource source = site_source(space.kernel, data_folder("kernel_templates"));
    source.hash = hash.empty() ? source.hash : hash;
    Trial trial;
    trial.problem = site(text);
    trial.config = config_of_alternative(alternative);
    trial.time = TimeSummary{10, 9.9, 10.1, 30};
    store(space, source, trial);
  }
  // Of the kernel that stands for what alternatives launch.
  void store_time(std::int64_t size, const TimeSummary& time) {
    const Space space = Space::load(data_folder("search_spaces") / "sample.json");
    Trial trial;
    trial.problem = launch_of(size).problem.named();
    trial.config = BoundSpace(space, trial.problem, DeviceLimits()).default_config();
    trial.time = time;
    store(space, KernelSource::load(data_folder("kernel_templates") / "sample.cu"), trial);
  }
  [[nodiscard]] static Executor::UnrunLaunch launch_of(std::int64_t size) {
    return {"sample", ops::KernelProblem("sample", {{"VOCABULARY", size}})};
  }

 private:
  void store(const Space& space, const KernelSource& source, Trial trial) {
    Store store(*options_.database, OpenMode::create);
    DispatcherOptions without = options_;
    without.database.reset();
    const Dispatcher dispatcher(*host_, without);
    trial.stage = TrialStage::finals;
    ContextIds context;
    context.device = store.device_id(device_row(host_->info()));
    context.toolkit = store.toolkit_id(dispatcher.toolkit());
    context.kernel = store.kernel_id({space.kernel, source.hash});
    context.space = store.space_id(space.kernel, space.hash, space.json);
    context.problem = store.problem_id(trial.problem, 1, 1);
    SessionRow session;
    const std::int64_t id = store.begin_session(session, context.device, context.toolkit);
    store.set_winner(context, store.add_trial(id, context, trial), TimeSummary{12, 11.9, 12.1, 30}, 0.99);
    store.end_session(id, "finished");
  }
};

// "single" launches 1000 and 2000, "normed" 3000.
TEST_F(FusionWinnersTest, AnEstimateHeedsWhatKernelsTook) {
  std::vector<SiteCandidate> both{{0, "single", "", 0, {launch_of(1000), launch_of(2000)}},
                                  {1, "normed", "", 0, {launch_of(3000)}}};
  const auto choice = [&] {
    const Dispatcher dispatcher(*host_, options_);
    return FusionChooser(Fusion::automatic, {}, &dispatcher).choose(site_key(site(kMlp)), both);
  };
  store_time(1000, {10, 9, 11, 30});
  store_time(3000, {40, 38, 42, 30});
  EXPECT_EQ(choice().candidate, 1U) << "of 2000 nothing is known, so launches are counted";
  store_time(2000, {20, 18, 22, 30});
  EXPECT_EQ(choice().candidate, 0U) << "38 us at least against 33 at most";
  EXPECT_EQ(choice().origin, ChoiceOrigin::estimated);
  EXPECT_EQ(choice().reason,
            "an estimate, only its kernels were measured: what it launches takes 30.00 us one by one, that of 'normed' "
            "40.00 us");
  store_time(3000, {34, 33, 35, 30});
  EXPECT_EQ(choice().candidate, 1U) << "that may be chance";
  // And the other way round, where a guess kept "normed" out.
  both[1].extra_launches = 2;
  EXPECT_EQ(choice().candidate, 0U);
  store_time(3000, {5, 4, 6, 30});
  EXPECT_EQ(choice().candidate, 1U);
}

TEST_F(FusionWinnersTest, TheWinnerOfASiteIsUsedAndOfItsNearestSizes) {
  store_winner(kMlp, "single");
  store_winner("site_head ROWS=1 HIDDEN=256 VOCABULARY=512 HEAD=q8_0", "normed");
  const Dispatcher dispatcher(*host_, options_);
  FusionChooser chooser(Fusion::automatic, {}, &dispatcher);
  const std::vector<SiteCandidate> both = candidates();
  SiteChoice choice = chooser.choose(site_key(site(kMlp)), both);
  EXPECT_EQ(choice.candidate, 0U) << "though the other one has fewer launches";
  EXPECT_EQ(choice.origin, ChoiceOrigin::exact);
  ASSERT_TRUE(choice.expected.has_value());
  EXPECT_EQ(choice.expected->median_us, 10);
  choice = chooser.choose(site_key(site("site_head ROWS=3 HIDDEN=256 VOCABULARY=512 HEAD=q8_0")), both);
  EXPECT_EQ(choice.candidate, 1U);
  EXPECT_EQ(choice.origin, ChoiceOrigin::nearest);
  choice = chooser.choose(site_key(site("site_head ROWS=1 HIDDEN=128 VOCABULARY=512 HEAD=q8_0")), both);
  EXPECT_EQ(choice.origin, ChoiceOrigin::estimated) << "another model's says nothing";
}

TEST_F(FusionWinnersTest, AWinnerOfOtherSourcesIsNotUsed) {
  store_winner(kMlp, "single", "0123456789abcdef0123456789abcdef");
  const Dispatcher dispatcher(*host_, options_);
  FusionChooser chooser(Fusion::automatic, {}, &dispatcher);
  EXPECT_EQ(chooser.choose(site_key(site(kMlp)), candidates()).origin, ChoiceOrigin::estimated);
}

// What a model on this device does with it.
class FusionModelTest : public FusionWinnersTest {
 protected:
  ModelConfig config_ = golden_model_a().config;
  AttentionChoice attention_;

  [[nodiscard]] std::set<std::string> kernels_of_step(FusionFile file) {
    const Dispatcher dispatcher(*host_, DispatcherOptions{.cache = PASCALINE_TEST_CACHE});
    UnbackedMemory memory;
    Executor executor(Executor::ObserveOnly{}, *host_, memory);
    WeightSource source = hash_weights(config_);
    ModelOptions options{.context = 64};
    options.weights = options.cache = ElementType::float32;
    options.fusion_file = std::move(file);
    options.attention = attention_;
    Model model(executor, config_, source, options);
    const std::vector<std::int32_t> tokens{1, 2, 3};
    model.append({tokens, {}});
    (void)model.sample();
    std::set<std::string> kernels;
    executor.observe([&](const ops::KernelProblem& problem) { kernels.insert(problem.named().kernel); });
    (void)model.step();
    executor.observe({});
    sites_ = model.sites();
    uses_.clear();
    for (const FusionDecisions::Decision* decision : model.fusion().decisions()) {
      uses_[std::string(decision->key.kernel().text())] += decision->uses;
    }
    return kernels;
  }

  std::vector<Problem> sites_;
  std::map<std::string, std::uint64_t> uses_;
};

TEST_F(FusionModelTest, AFileForcesTheWayOfASite) {
  EXPECT_TRUE(kernels_of_step({}).contains("attention_decode_qkv"));
  EXPECT_EQ(uses_["site_decode_attention"], static_cast<std::uint64_t>(config_.text.layers));
  const auto attention =
      std::ranges::find_if(sites_, [](const Problem& one) { return one.kernel == "site_decode_attention"; });
  ASSERT_NE(attention, sites_.end());
  FusionFile file{"plan.json", device_row(host_->info()), {{*attention, "single"}}};
  const std::set<std::string> kernels = kernels_of_step(file);
  EXPECT_FALSE(kernels.contains("attention_decode_qkv"));
  EXPECT_TRUE(kernels.contains("qk_norm_rope"));
  file.device.name = "another processor";
  EXPECT_TRUE(kernels_of_step(file).contains("attention_decode_qkv")) << "nothing of it is used";
}

TEST_F(FusionModelTest, LayersThatSeeSomeOfTheKeysAreSitesOfTheirOwn) {
  attention_ = parse_attention("topk=25%,block=16");
  std::set<std::string> kernels = kernels_of_step({});
  EXPECT_TRUE(kernels.contains("choose_blocks"));
  EXPECT_TRUE(kernels.contains("attention_sparse_decode"));
  EXPECT_EQ(uses_["site_decode_sparse_attention"], static_cast<std::uint64_t>(config_.text.layers));
  EXPECT_FALSE(uses_.contains("site_decode_attention"));
  const auto attention =
      std::ranges::find_if(sites_, [](const Problem& one) { return one.kernel == "site_decode_sparse_attention"; });
  ASSERT_NE(attention, sites_.end());
  EXPECT_EQ(attention->dimension("PART"), 250'000);
  const FusionFile file{"plan.json", device_row(host_->info()), {{*attention, "single"}}};
  EXPECT_FALSE(kernels.contains("matvec_normed")) << "of float weights only once measured";
  kernels = kernels_of_step(file);
  EXPECT_TRUE(kernels.contains("choose_blocks"));
  // A plan for another choice of keys is another model's.
  attention_ = parse_attention("topk=50%,block=16");
  (void)kernels_of_step(file);
  attention_ = {};
  (void)kernels_of_step({});
  EXPECT_TRUE(
      std::ranges::none_of(sites_, [](const Problem& one) { return one.kernel.ends_with("sparse_attention"); }));
}

// A context that leaves nothing out needs no choice of blocks, and can be computed as if all keys were seen.
TEST_F(FusionModelTest, AShortContextMayBeComputedAsIfAllKeysWereSeen) {
  attention_ = parse_attention("window=40");
  const auto decode = [&](std::int64_t keys) {
    return site(
        fmt::format("site_decode_sparse_attention HIDDEN=256 HEADS=4 KV_HEADS=2 HEAD_DIM=64 KEYS={} QK_NORM=1 "
                    "SECTION_H=8 SECTION_W=8 BLOCK=64 WINDOW=40 SINKS=0 STRIDE=0 PART=0 QKV=q8_0 OUTPUT=q8_0 "
                    "CACHE=float32",
                    keys));
  };
  for (const AlternativeFacts& alternative : alternatives_of("site_decode_sparse_attention")) {
    const bool sees_all = std::string(alternative.name).ends_with("rotated");
    EXPECT_TRUE(alternative.fits(site_key(decode(40)))) << alternative.name;
    EXPECT_EQ(alternative.fits(site_key(decode(41))), !sees_all) << alternative.name;
  }
}

}  // namespace
}  // namespace pascaline::testing
