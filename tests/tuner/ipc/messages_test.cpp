#include "tuner/ipc/messages.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"
#include "tuner/compile/compile_messages.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/measure/measure_messages.hpp"

namespace pascaline::testing {
namespace {

// Through the bytes that go through the pipe.
template <typename T>
T through(const T& value) {
  FrameReader reader;
  reader.append(frame_of({{"value", value}}));
  return reader.next().value().at("value").template get<T>();
}

void expect_same_trial(const Trial& sent) {
  Trial got = through(sent);
  EXPECT_EQ(got.problem, Problem{}) << "both sides know it";
  got.problem = sent.problem;
  expect_equal(got, sent);
  ASSERT_EQ(got.samples.size(), sent.samples.size());
  for (std::size_t i = 0; i < sent.samples.size(); ++i) {
    EXPECT_EQ(got.samples[i].time_us, sent.samples[i].time_us);
    EXPECT_EQ(got.samples[i].mark, sent.samples[i].mark);
    EXPECT_EQ(got.samples[i].temperature_c, sent.samples[i].temperature_c);
    EXPECT_EQ(got.samples[i].sm_clock_mhz, sent.samples[i].sm_clock_mhz);
    EXPECT_EQ(got.samples[i].power_w, sent.samples[i].power_w);
  }
}

TEST(MessagesTest, TrialsKeepEverythingButTheirProblem) {
  expect_same_trial(example_trial(7));
  expect_same_trial(distinct_trial());
  Trial finals = example_trial(1);
  finals.stage = TrialStage::finals;
  expect_same_trial(finals);
}

TEST(MessagesTest, TrialsOfEveryStatusAndAnErrorThatIsNoNumberKeepThat) {
  for (std::size_t i = 0; i < kTrialStatuses; ++i) {
    const auto status = static_cast<TrialStatus>(i);
    Trial trial = failed_trial(3, status, "line \"one\", µs");
    trial.time = has_time(status) ? example_trial(3).time : std::nullopt;
    trial.max_error = std::numeric_limits<double>::infinity();
    expect_same_trial(trial);
  }
}

TEST(MessagesTest, UnknownWordsAreErrorsThatNameThem) {
  nlohmann::json message = example_trial(7);
  message["status"] = "splendid";
  try {
    std::ignore = message.get<Trial>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("splendid"), std::string::npos) << error.what();
  }
}

TEST(MessagesTest, BinariesKeepTheirBytes) {
  Binary binary;
  binary.kind = BinaryKind::ptx;
  binary.target = "compute_61";
  binary.function = "matmul";
  binary.code = std::string(
      "\0\x7f"
      "ELF\xff\xfe\n",
      8);
  binary.resources = {64, 4096, 352, 16, 3, 2, 1200, 512};
  binary.compile_ms = 812.5;
  binary.from_cache = true;
  binary.max_registers = 96;
  const Binary got = through(binary);
  EXPECT_EQ(got.kind, binary.kind);
  EXPECT_EQ(got.target, binary.target);
  EXPECT_EQ(got.function, binary.function);
  EXPECT_EQ(got.code, binary.code);
  EXPECT_EQ(nlohmann::json(got.resources), nlohmann::json(binary.resources));
  EXPECT_EQ(got.resources.ffma, 512);
  EXPECT_EQ(got.resources.static_shared_bytes, 4096);
  EXPECT_EQ(got.compile_ms, binary.compile_ms);
  EXPECT_TRUE(got.from_cache);
  EXPECT_EQ(got.max_registers, binary.max_registers);
}

TEST(MessagesTest, CompileRequestsAndTheirSourcesKeepEverything) {
  const KernelSource source{
      "some/folder/matmul.cu", "text \xff", {{"tile.cuh", "one"}, {"deep/load.cuh", "two"}}, "5a"};
  const KernelSource got_source = source_of(through(source_message(source)));
  EXPECT_EQ(got_source.file, source.file);
  EXPECT_EQ(got_source.text, source.text);
  EXPECT_EQ(got_source.headers, source.headers);
  EXPECT_EQ(got_source.hash, source.hash);

  CompileRequest request{&source, "matmul", {"TILE=8", "NAME=\"x\""}, {"--maxrregcount=64"}, BinaryKind::ptx,
                         "sm_61", true};
  request.threads = 96;
  const nlohmann::json message = through(request_message(std::uint64_t{1} << 60U, request));
  EXPECT_EQ(message.at("id").get<std::uint64_t>(), std::uint64_t{1} << 60U);
  EXPECT_EQ(message.at("source"), "5a");
  const CompileRequest got = request_of(message);
  EXPECT_EQ(got.source, nullptr);
  EXPECT_EQ(got.function, request.function);
  EXPECT_EQ(got.defines, request.defines);
  EXPECT_EQ(got.threads, request.threads);
  EXPECT_EQ(got.options, request.options);
  EXPECT_EQ(got.kind, request.kind);
  EXPECT_EQ(got.architecture, request.architecture);
  EXPECT_TRUE(got.address_sanitizer);
}

TEST(MessagesTest, FinalsResultsKeepTheirDecision) {
  FinalsResult result;
  result.trials = {example_trial(1), example_trial(2)};
  result.winner = 1;
  result.baseline = TimeSummary{100.5, 99.25, 101.75, 28};
  result.confidence = 0.9975;
  result.tie = true;
  result.rounds = 25;
  result.stays = true;
  const FinalsResult got = through(result);
  ASSERT_EQ(got.trials.size(), 2U);
  EXPECT_EQ(got.trials[1].config, example_config(2));
  EXPECT_EQ(got.winner, 1U);
  expect_equal(got.baseline, result.baseline);
  EXPECT_EQ(got.confidence, result.confidence);
  EXPECT_TRUE(got.tie);
  EXPECT_EQ(got.rounds, 25);
  EXPECT_TRUE(got.stays);
  EXPECT_FALSE(got.gave_up);
  result.baseline.reset();
  EXPECT_FALSE(through(result).baseline);
}

// Values that are not the defaults: one that is left out of the list would come back as its default.
TEST(MessagesTest, OptionsKeepEveryValue) {
  const MeasureOptions measure{false, 3, 11, 201, 0.02, 1001, 0.04};
  const MeasureOptions got = through(measure);
  EXPECT_FALSE(got.cold_cache);
  EXPECT_EQ(got.warm_up, 3);
  EXPECT_EQ(got.min_samples, 11);
  EXPECT_EQ(got.max_samples, 201);
  EXPECT_EQ(got.target_half_width, 0.02);
  EXPECT_EQ(got.budget_ms, 1001);
  EXPECT_EQ(got.race_error, 0.04);

  const FinalsOptions finals = through(FinalsOptions{41, 11, 6, 4, 0.02, 0.006, 501});
  EXPECT_EQ(finals.rounds, 41);
  EXPECT_EQ(finals.min_rounds, 11);
  EXPECT_EQ(finals.rounds_per_look, 6);
  EXPECT_EQ(finals.launches, 4);
  EXPECT_EQ(finals.p_value, 0.02);
  EXPECT_EQ(finals.tie_width, 0.006);
  EXPECT_EQ(finals.energy_window_ms, 501);
  EXPECT_EQ(finals.objective.objective, Objective::time);
  EXPECT_FALSE(finals.standing);

  FinalsOptions again;
  again.standing = StandingDecision{"A=1", {1, 0.5, 1.5, 7}, TimeSummary{2, 1.5, 2.5, 8}, "A=2", 50.5, 0.75};
  const FinalsOptions got_again = through(again);
  ASSERT_TRUE(got_again.standing);
  EXPECT_EQ(got_again.standing->config, "A=1");
  expect_equal(got_again.standing->time, again.standing->time);
  expect_equal(got_again.standing->baseline, again.standing->baseline);
  EXPECT_EQ(got_again.standing->baseline_config, "A=2");
  EXPECT_EQ(got_again.standing->canary_us, 50.5);
  EXPECT_EQ(got_again.standing->confidence, 0.75);

  const ObjectiveOptions objective =
      through(ObjectiveOptions{Objective::edp, 1.6, 4, 9, 2, 7, 0.02, 0.006, 61, 21, 3, 75.5});
  EXPECT_EQ(objective.objective, Objective::edp);
  EXPECT_EQ(objective.contender_factor, 1.6);
  EXPECT_EQ(objective.min_rounds, 4);
  EXPECT_EQ(objective.max_rounds, 9);
  EXPECT_EQ(objective.rounds_per_look, 2);
  EXPECT_EQ(objective.rounds_of_all, 7);
  EXPECT_EQ(objective.p_value, 0.02);
  EXPECT_EQ(objective.tie_width, 0.006);
  EXPECT_EQ(objective.sustain_first_s, 61);
  EXPECT_EQ(objective.sustain_again_s, 21);
  EXPECT_EQ(objective.sustain_window_s, 3);
  EXPECT_EQ(objective.max_temperature_c, 75.5);

  const ObjectiveDecision decision =
      through(ObjectiveDecision{Objective::sustained, {{2, {1.5, 2.5}}}, 2, 3.5, 4.5, 0.9, true, true, "no time"});
  EXPECT_EQ(decision.objective, Objective::sustained);
  ASSERT_EQ(decision.contenders.size(), 1U);
  EXPECT_EQ(decision.contenders[0].trial, 2U);
  EXPECT_EQ(decision.contenders[0].values, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(decision.winner, 2U);
  EXPECT_EQ(decision.score, 3.5);
  EXPECT_EQ(decision.baseline_score, 4.5);
  EXPECT_EQ(decision.confidence, 0.9);
  EXPECT_TRUE(decision.tie);
  EXPECT_TRUE(decision.out_of_time);
  EXPECT_EQ(decision.undecided, "no time");

  const GovernorOptions sent{true, 4, 9, 75.5, 0.03, 0.04, 0.006, 61, 4, 2, 11, 901, kThermalThrottleBits};
  const GovernorOptions governor = through(sent);
  EXPECT_TRUE(governor.passive);
  EXPECT_EQ(governor.margin_c, 4);
  EXPECT_EQ(governor.resume_c, 9);
  EXPECT_EQ(governor.limit_c, 75.5);
  EXPECT_EQ(governor.clock_tolerance, 0.03);
  EXPECT_EQ(governor.canary_tolerance, 0.04);
  EXPECT_EQ(governor.normalise_from, 0.006);
  EXPECT_EQ(governor.preheat_limit_s, 61);
  EXPECT_EQ(governor.steady_s, 4);
  EXPECT_EQ(governor.steady_c, 2);
  EXPECT_EQ(governor.settle_s, 11);
  EXPECT_EQ(governor.pause_limit_s, 901);
  EXPECT_EQ(governor.tolerated_throttle, kThermalThrottleBits);
}

TEST(MessagesTest, SensorsThatACardLacksStayUnknown) {
  Sensors sensors;
  sensors.power_w = 249.5;
  sensors.throttle_reasons = kPowerThrottleBits;
  const Sensors got = through(sensors);
  EXPECT_EQ(got.power_w, 249.5);
  EXPECT_EQ(got.throttle_reasons, kPowerThrottleBits);
  EXPECT_FALSE(got.temperature_c);
  EXPECT_FALSE(got.sm_clock_mhz);
}

}  // namespace
}  // namespace pascaline::testing
