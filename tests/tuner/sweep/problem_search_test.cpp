#include "tuner/sweep/problem_search.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/error.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/sweep/code_judge.hpp"
#include "tuner/sweep/tunable.hpp"

namespace pascaline::testing {
namespace {

/// Nine configurations: three blocks times three values of FAULT, of which the first are the default.
class ProblemSearchTest : public ::testing::Test {
 protected:
  Space space_ = Space::parse(toy_json({kRight, kNotANumber, kLastElementLeftOut}).dump(), "toy.json");
  SweepOptions options_;
  DeviceLimits limits_;
  CompilerAxis compiler_{{{"nvrtc", "12.9", "/new"}}};
  KernelTunable tunable_{space_, space_, compiler_, {}};
  std::int64_t next_id_ = 100;

  ProblemSearchTest() { options_.search.searcher = "exhaustive"; }

  [[nodiscard]] ProblemSearch search() const {
    return {tunable_, {space_.problem({{"N", "1000"}}), 1, ""}, limits_, options_};
  }
  static Compiled compiled(const std::string& code) {
    Compiled out;
    out.result.ok = true;
    out.result.binary.kind = BinaryKind::host_object;
    out.result.binary.function = "toy";
    out.result.binary.code = code;
    return out;
  }
  static Trial trial(const Config& config, double median_us, TrialStatus status = TrialStatus::ok) {
    Trial out;
    out.config = config;
    out.status = status;
    if (has_time(status)) {
      out.time = TimeSummary{median_us, median_us, median_us, 10};
    }
    return out;
  }
  static Store::Known known(const Config& config, double median_us, bool in_run = false,
                            TrialStatus status = TrialStatus::ok) {
    Store::Known out;
    out.config = config;
    out.status = status;
    out.median_us = median_us;
    out.in_run = in_run;
    return out;
  }
  // Proposes, compiles as code of its own, and measures; the configuration.
  Config tell_next(ProblemSearch& search, double median_us, TrialStatus status = TrialStatus::ok) {
    const Config config = search.propose().value();
    EXPECT_FALSE(search.compiled(config, compiled(config.text())));
    const auto candidate = search.take_ready();
    EXPECT_EQ(candidate->config, config);
    EXPECT_TRUE(search.observe(trial(config, median_us, status), next_id_++).empty());
    return config;
  }
  static std::set<std::string> all_proposals(ProblemSearch& search) {
    std::set<std::string> texts;
    while (const auto config = search.propose()) {
      EXPECT_TRUE(texts.insert(config->text()).second) << config->text() << " twice";
    }
    return texts;
  }
  static std::vector<std::string> finalists(const ProblemSearch& search) {
    std::vector<std::string> texts;
    for (const auto& [config, binary] : search.finalists()) {
      texts.push_back(config.text());
    }
    return texts;
  }
};

TEST_F(ProblemSearchTest, DroppedTrialsAreUsableAndShared) {
  ProblemSearch search = this->search();
  const auto next = [&](const std::string& code) {
    const Config config = search.propose().value();
    EXPECT_FALSE(search.compiled(config, compiled(code)));
    return config;
  };
  const auto measured = [&](double median_us, TrialStatus status) {
    return search.observe(trial(search.take_ready()->config, median_us, status), next_id_++);
  };
  const Config standard = next("default");
  EXPECT_TRUE(measured(20, TrialStatus::dropped).empty());
  EXPECT_TRUE(search.why_no_default().empty());
  EXPECT_EQ(search.default_us(), 20);
  const Config fastest = next("fastest");
  EXPECT_TRUE(measured(10, TrialStatus::ok).empty());
  const Config other = next("the same");
  const Config twin = next("the same");
  const auto shared = measured(15, TrialStatus::dropped);
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_EQ(shared[0].trial.config, twin);
  EXPECT_EQ(shared[0].trial.status, TrialStatus::dropped);
  EXPECT_EQ(shared[0].trial.time->median_us, 15);
  EXPECT_TRUE(search.observe(shared[0].trial, next_id_++).empty());
  EXPECT_EQ(search.usable(), 3U) << "a duplicate has no time of its own";
  EXPECT_EQ(search.best(), fastest);
  EXPECT_EQ(search.time_us(other), 15);

  ProblemSearch later = this->search();
  later.recall({known(standard, 20, false, TrialStatus::dropped), known(fastest, 10)}, {});
  EXPECT_EQ(later.usable(), 2U);
  EXPECT_EQ(later.reused().usable, 2);
  EXPECT_EQ(later.default_us(), 20);
}

TEST_F(ProblemSearchTest, PartsOfASpaceShareNothingButTheDefault) {
  for (const std::string searcher : {"exhaustive", "random", "auto"}) {
    options_.search.searcher = searcher;
    options_.trials = 1000;
    ProblemSearch whole = search();
    const std::set<std::string> all = all_proposals(whole);
    const std::string standard = whole.bound().default_config().text();
    std::multiset<std::string> of_parts;
    for (int part = 1; part <= 3; ++part) {
      SweepProblem wanted{space_.problem({{"N", "1000"}}), 1, ""};
      wanted.part = {part, 3};
      ProblemSearch search(tunable_, wanted, limits_, options_);
      const std::set<std::string> own = all_proposals(search);
      EXPECT_TRUE(own.contains(standard));
      EXPECT_LT(own.size(), all.size());
      of_parts.insert(own.begin(), own.end());
    }
    EXPECT_EQ(std::set<std::string>(of_parts.begin(), of_parts.end()), all) << searcher;
    EXPECT_EQ(of_parts.size(), all.size() + 2) << searcher;
    EXPECT_EQ(of_parts.count(standard), 3U) << searcher;
  }
}

TEST_F(ProblemSearchTest, APartHasItsShareOfTheTrials) {
  options_.trials = 5;
  int trials = 0;
  for (int part = 1; part <= 3; ++part) {
    SweepProblem wanted{space_.problem({{"N", "1000"}}), 1, ""};
    wanted.part = {part, 3};
    ProblemSearch search(tunable_, wanted, limits_, options_);
    while (!search.spent() && search.may_try()) {
      (void)tell_next(search, 10);
      ++trials;
    }
  }
  EXPECT_EQ(trials, 5 + 2);  // the default once more in two of three parts
}

TEST_F(ProblemSearchTest, PartsOfUnequalSizeMakeAllTrialsTogether) {
  for (const int allowed : {4, 8, 9, 10, 1000}) {
    options_.trials = allowed;
    std::set<std::string> tried;
    int trials = 0;
    for (int part = 1; part <= 4; ++part) {
      SweepProblem wanted{space_.problem({{"N", "1000"}}), 1, ""};
      wanted.part = {part, 4};
      ProblemSearch search(tunable_, wanted, limits_, options_);
      while (!search.spent() && search.may_try() && search.remaining() > 0) {
        tried.insert(tell_next(search, 10).text());
        ++trials;
      }
    }
    // Where the default lies in no part's share of the trials, it is one more.
    EXPECT_GE(tried.size(), static_cast<std::size_t>(std::min(allowed, 9))) << allowed;
    EXPECT_LE(tried.size(), static_cast<std::size_t>(std::min(allowed + 1, 9))) << allowed;
    EXPECT_EQ(trials, std::min(allowed, 9) + 3) << allowed;
  }
}

// Times 100 to 107, the default's first, and one of 120.
TEST_F(ProblemSearchTest, FinalistsBehindTheFastestAreTheThriftiestOfThoseNotMuchSlower) {
  options_.finalists = 7;
  ProblemSearch search = this->search();
  std::vector<std::string> tried;
  for (int i = 0; i < 9; ++i) {
    tried.push_back(tell_next(search, i < 8 ? 100 + i : 120).text());
  }
  const auto of = [&](std::initializer_list<int> which) {
    std::vector<std::string> texts;
    for (const int i : which) {
      texts.push_back(tried.at(static_cast<std::size_t>(i)));
    }
    return texts;
  };
  EXPECT_EQ(finalists(search), of({1, 2, 3, 4, 5, 6, 7, 0}));
  search.prefer_low_energy([](const Config&, double time_us) { return std::optional(1000 - time_us); });
  EXPECT_EQ(finalists(search), of({1, 2, 3, 4, 5, 7, 6, 0}));
  // What cannot be told leaves its place to the fastest.
  search.prefer_low_energy([&](const Config& config, double time_us) {
    return config.text() == tried[7] ? std::optional(time_us) : std::nullopt;
  });
  EXPECT_EQ(finalists(search), of({1, 2, 3, 4, 5, 7, 6, 0}));
}

/// The same with two compilers: eighteen configurations.
class CompilerSearchTest : public ProblemSearchTest {
 protected:
  CompilerAxis compilers_{{{"nvrtc", "12.9", "/new"}, {"nvrtc", "11.8", "/old"}}};
  Space searched_ = compilers_.searched(space_);
  KernelTunable by_several_{space_, searched_, compilers_, {}};

  [[nodiscard]] ProblemSearch search() const {
    return {by_several_, {searched_.problem({{"N", "1000"}}), 1, ""}, limits_, options_};
  }
  [[nodiscard]] Config config(std::int64_t block, std::size_t compiler, Fault fault = kRight) const {
    return compilers_.with(toy_config(block, fault), compiler);
  }
};

TEST_F(CompilerSearchTest, TheCompilerIsOneMoreParameter) {
  ASSERT_EQ(searched_.parameters.size(), space_.parameters.size() + 1);
  EXPECT_EQ(searched_.parameters.back().name, "COMPILER");
  EXPECT_EQ(searched_.general_default(), config(64, 0));
  EXPECT_EQ(compilers_.without(config(64, 1)), toy_config(64));
  EXPECT_EQ(compilers_.index_of(config(64, 1)), 1U);
  EXPECT_THROW((void)compilers_.index_of(toy_config(64)), Error);
  EXPECT_DOUBLE_EQ(searched_.raw_size(), 2 * space_.raw_size());
}

TEST_F(CompilerSearchTest, OfOneCompilerNothingIsAdded) {
  const CompilerAxis one({{"nvrtc", "12.9", "/new"}});
  EXPECT_EQ(one.searched(space_).json, space_.json);
  EXPECT_EQ(one.with(toy_config(64), 0), toy_config(64));
  EXPECT_EQ(one.index_of(toy_config(64)), 0U);
}

TEST_F(CompilerSearchTest, AKernelsOwnParameterOfThatNameIsRefused) {
  nlohmann::json document = toy_json({kRight});
  document["parameters"].push_back({{"name", "COMPILER"}, {"values", {1, 2}}, {"default", 1}});
  const Space own = Space::parse(document.dump(), "own.json");
  EXPECT_THROW((void)compilers_.searched(own), SpaceError);
}

/// The same with a portfolio: a block of 128 that is not a number, a block of 32, a block of 128.
class PortfolioSearchTest : public ProblemSearchTest {
 protected:
  static nlohmann::json with_portfolio() {
    nlohmann::json document = toy_json({kRight, kNotANumber, kLastElementLeftOut});
    document["portfolio"] = {{{"BLOCK", 128}, {"FAULT", kNotANumber}}, {{"BLOCK", 32}}, {{"BLOCK", 128}}};
    return document;
  }

  PortfolioSearchTest() { space_ = Space::parse(with_portfolio().dump(), "toy.json"); }
};

TEST_F(PortfolioSearchTest, ComesAfterTheDefaultAndBeforeTheSearcher) {
  ProblemSearch search = this->search();
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_EQ(search.propose(), toy_config(128, kNotANumber));
  EXPECT_EQ(search.propose(), toy_config(32));
  EXPECT_EQ(search.propose(), toy_config(128));
  EXPECT_EQ(all_proposals(search).size(), 5U) << "the others, each once";
  EXPECT_TRUE(search.spent());
}

TEST_F(PortfolioSearchTest, OfFewTrialsTheFirstAreOfThePortfolio) {
  options_.trials = 2;
  ProblemSearch search = this->search();
  EXPECT_EQ(tell_next(search, 10), toy_config(64));
  EXPECT_EQ(tell_next(search, 9), toy_config(128, kNotANumber));
  EXPECT_FALSE(search.propose());
}

TEST_F(PortfolioSearchTest, AMemberThatIsNotValidHereIsReplacedByTheNearestOrLeftOut) {
  limits_.max_threads_per_block = 64;
  ProblemSearch search = this->search();
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_EQ(search.propose(), toy_config(64, kNotANumber)) << "one step of one parameter";
  EXPECT_EQ(search.propose(), toy_config(32)) << "the last one's nearest is the default";
  EXPECT_EQ(all_proposals(search).size(), 3U);
}

TEST_F(PortfolioSearchTest, WhatIsKnownIsNotTriedAgain) {
  ProblemSearch search = this->search();
  search.recall({known(toy_config(64), 10), known(toy_config(32), 8)}, {});
  EXPECT_EQ(search.propose(), toy_config(128, kNotANumber));
  EXPECT_EQ(search.propose(), toy_config(128));
}

TEST_F(PortfolioSearchTest, WithoutASearcherNothingElseIsTried) {
  options_.search.searcher = kNoSearcher;
  ProblemSearch search = this->search();
  EXPECT_EQ(search.remaining(), 4);
  EXPECT_EQ(tell_next(search, 10), toy_config(64));
  EXPECT_EQ(search.remaining(), 3);
  EXPECT_FALSE(search.spent());
  EXPECT_EQ(all_proposals(search).size(), 3U);
  EXPECT_TRUE(search.spent());
  EXPECT_EQ(search.remaining(), 3) << "that are under way";
}

TEST_F(PortfolioSearchTest, OfSeveralCompilersTheFirstBuildsIt) {
  const CompilerAxis compilers{{{"nvrtc", "12.9", "/new"}, {"nvrtc", "11.8", "/old"}}};
  space_.portfolio.pop_back();  // as a file given in its place does
  const Space searched = compilers.searched(space_);
  const KernelTunable tunable(space_, searched, compilers, {});
  ProblemSearch search(tunable, {searched.problem({{"N", "1000"}}), 1, ""}, limits_, options_);
  EXPECT_EQ(search.propose(), compilers.with(toy_config(64), 0));
  EXPECT_EQ(search.propose(), compilers.with(toy_config(64), 1));
  EXPECT_EQ(search.propose(), compilers.with(toy_config(128, kNotANumber), 0));
  EXPECT_EQ(search.propose(), compilers.with(toy_config(32), 0));
  EXPECT_EQ(search.propose(), compilers.with(toy_config(32), 1)) << "the searcher's first that is not known";
}

TEST_F(CompilerSearchTest, ASpaceThatDoesNotCompileIsGivenUp) {
  const auto fail = [](ProblemSearch& search, const Config& config, const std::string& reason) {
    Compiled failed;
    failed.status = TrialStatus::compile_failed;
    failed.result.reason = reason;
    EXPECT_TRUE(search.observe(search.compiled(config, failed)->trial, 1).empty());
  };
  ProblemSearch search = this->search();
  for (int i = 0; i < HopelessRule::kAfter; ++i) {
    EXPECT_EQ(search.hopeless(), "");
    fail(search, search.propose().value(), "no such type");
  }
  EXPECT_EQ(search.hopeless(), "no such type");
  EXPECT_FALSE(search.propose());
  EXPECT_TRUE(search.spent());

  ProblemSearch differing = this->search();
  for (int i = 0; i < HopelessRule::kAfter; ++i) {
    fail(differing, differing.propose().value(), i == 7 ? "too many registers" : "no such type");
  }
  EXPECT_EQ(differing.hopeless(), "") << "not all for the same reason";
  EXPECT_TRUE(differing.propose());
}

TEST_F(CompilerSearchTest, EveryDefaultComesFirstThenEveryPairOnce) {
  ProblemSearch search = this->search();
  EXPECT_EQ(search.propose(), config(64, 0));
  EXPECT_EQ(search.propose(), config(64, 1));
  EXPECT_EQ(all_proposals(search).size(), 16U);
  EXPECT_TRUE(search.spent());
}

TEST_F(CompilerSearchTest, EverySearcherTriesBothCompilers) {
  for (const SearcherName& name : searcher_names()) {
    options_.search.searcher = name.name;
    ProblemSearch search = this->search();
    std::set<std::string> texts;
    std::size_t of_second = 0;
    while (const auto next = search.propose()) {
      EXPECT_TRUE(texts.insert(next->text()).second) << name.name;
      of_second += compilers_.index_of(*next);
      std::ignore = search.compiled(*next, compiled(next->text()));
      EXPECT_TRUE(search.take_ready());
      std::ignore = search.observe(trial(*next, 1 + static_cast<double>(texts.size() % 5)), next_id_++);
    }
    EXPECT_EQ(texts.size(), 18U) << name.name;
    EXPECT_EQ(of_second, 9U) << name.name;
  }
}

TEST_F(CompilerSearchTest, TheSameMachineCodeOfTwoCompilersIsMeasuredOnce) {
  ProblemSearch search = this->search();
  const Config first = search.propose().value();
  const Config second = search.propose().value();
  EXPECT_FALSE(search.compiled(first, compiled("same code")));
  ASSERT_TRUE(search.take_ready());
  const auto others = search.observe(trial(first, 5), 7);
  EXPECT_TRUE(others.empty()) << "the other is not compiled yet";
  const auto shared = search.compiled(second, compiled("same code"));
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->duplicate);
  EXPECT_EQ(shared->trial.shared_trial, 7);
  EXPECT_EQ(shared->trial.config, second);
  EXPECT_NE(shared->trial.reason.find("nvrtc-12.9"), std::string::npos) << shared->trial.reason;
}

TEST_F(CompilerSearchTest, OfEachCompilerTheBestAndTheDefaultAreFinalists) {
  options_.finalists = 1;
  ProblemSearch search = this->search();
  search.recall({known(config(64, 0), 10), known(config(64, 1), 20), known(config(32, 0), 5), known(config(128, 0), 4),
                 known(config(32, 1), 15), known(config(128, 1), 16)},
                {});
  EXPECT_EQ(finalists(search), (std::vector<std::string>{config(128, 0).text(), config(32, 1).text(),
                                                         config(64, 1).text(), config(64, 0).text()}));
  search.discard(config(32, 1));
  EXPECT_EQ(finalists(search)[1], config(128, 1).text());
}

TEST_F(CompilerSearchTest, OneThatSharesAnothersTimeIsTheBestOfItsCompiler) {
  options_.finalists = 1;
  ProblemSearch search = this->search();
  tell_next(search, 10);
  tell_next(search, 20);
  search.recall({known(config(32, 0), 5)}, {});
  while (search.propose() != config(32, 1)) {
  }
  Trial shared = trial(config(32, 1), 5);
  shared.shared_trial = 3;
  std::ignore = search.observe(shared, next_id_++);
  EXPECT_EQ(finalists(search), (std::vector<std::string>{config(32, 0).text(), config(32, 1).text(),
                                                         config(64, 1).text(), config(64, 0).text()}));
}

TEST_F(ProblemSearchTest, DefaultComesFirstThenEveryOtherOnce) {
  ProblemSearch search = this->search();
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_EQ(all_proposals(search).size(), 8U);
  EXPECT_TRUE(search.spent());
  EXPECT_EQ(search.open(), 9U);
}

TEST_F(ProblemSearchTest, DefaultThatTheDeviceCannotRunIsLeftOut) {
  limits_.max_threads_per_block = 32;
  ProblemSearch search = this->search();
  const auto texts = all_proposals(search);
  EXPECT_EQ(texts.size(), 3U);
  EXPECT_FALSE(texts.contains(toy_config(64).text()));
  limits_.max_threads_per_block = 16;
  ProblemSearch none = this->search();
  EXPECT_THROW(std::ignore = none.propose(), SpaceError);
}

TEST_F(ProblemSearchTest, NoMoreIsProposedThanTrialsAreWanted) {
  options_.trials = 2;
  ProblemSearch search = this->search();
  tell_next(search, 10);
  const auto second = search.propose();
  ASSERT_TRUE(second);
  EXPECT_FALSE(search.propose());
  EXPECT_FALSE(search.spent()) << "the second may still be taken back";
  EXPECT_FALSE(search.compiled(*second, compiled("b")));
  ASSERT_TRUE(search.take_ready());
  std::ignore = search.observe(trial(*second, 9), 2);
  EXPECT_FALSE(search.propose());
  EXPECT_TRUE(search.spent());
  EXPECT_EQ(search.done(), 2);
}

// A parameter more, which changes nothing.
TEST_F(ProblemSearchTest, EndsWhereLittleIsLeftToGain) {
  nlohmann::json large = toy_json({kRight});
  std::vector<int> values(60);
  std::iota(values.begin(), values.end(), 0);
  large["parameters"].push_back({{"name", "PLAIN"}, {"values", values}, {"default", 0}});
  const Space space = Space::parse(large.dump(), "large.json");
  const KernelTunable tunable(space, space, compiler_, {});
  options_.search.searcher = "auto";
  options_.trials = 1000;
  const auto trials_of = [&](double min_gain, bool limited) {
    options_.search.min_gain = min_gain;
    options_.budget_s = limited ? std::optional(3600.0) : std::nullopt;
    ProblemSearch search(tunable, {space.problem({{"N", "1000"}}), 1, ""}, limits_, options_);
    int trials = 0;
    while (const auto config = search.propose()) {
      EXPECT_FALSE(search.compiled(*config, compiled(config->text())));
      EXPECT_TRUE(search.take_ready());
      EXPECT_TRUE(search.observe(trial(*config, 50), next_id_++).empty());
      ++trials;
    }
    EXPECT_TRUE(search.spent());
    EXPECT_EQ(search.little_left(), min_gain > 0 && !limited) << "not where everything was tried";
    return trials;
  };
  const int all = static_cast<int>(space.raw_size());
  EXPECT_EQ(trials_of(0, false), all);
  EXPECT_LT(trials_of(0.001, false), all / 3);
  EXPECT_EQ(trials_of(0.001, true), all) << "with a limit of time it only makes way for others";
}

TEST_F(ProblemSearchTest, WhatWasOnTheDeviceComesBeforeEverything) {
  ProblemSearch search = this->search();
  const Config gone({{"BLOCK", 512}, {"FAULT", 0}});  // no value of this space any more
  search.recall({}, {toy_config(128, kNotANumber), gone, toy_config(64)});
  EXPECT_EQ(search.propose(), toy_config(128, kNotANumber));
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_EQ(all_proposals(search).size(), 7U);
}

TEST_F(ProblemSearchTest, KnownConfigurationsAreNotMeasuredAgain) {
  options_.trials = 4;
  ProblemSearch search = this->search();
  const Config gone({{"BLOCK", 512}, {"FAULT", 0}});
  search.recall({known(toy_config(64), 20), known(toy_config(32), 12, true), known(gone, 1),
                 known(toy_config(128), 0, false, TrialStatus::crashed),
                 known(toy_config(32, kNotANumber), 0, true, TrialStatus::wrong_result)},
                {});
  EXPECT_EQ(search.done(), 2) << "of this run";
  EXPECT_EQ(search.reused().all, 2);
  EXPECT_EQ(search.reused().usable, 1);
  EXPECT_EQ(search.best_us(), 12) << "not that of the value that is gone";
  EXPECT_EQ(search.default_us(), 20);
  const auto texts = all_proposals(search);
  EXPECT_EQ(texts.size(), 2U) << "four of this run, two of which are done";
  for (const Config& config : {toy_config(64), toy_config(32), toy_config(128), toy_config(32, kNotANumber)}) {
    EXPECT_FALSE(texts.contains(config.text())) << config.text();
  }
}

TEST_F(ProblemSearchTest, FailuresOfTheMachineAreTriedAgainOnDemand) {
  const std::vector<Store::Known> all{known(toy_config(32), 0, false, TrialStatus::timed_out),
                                      known(toy_config(64), 0, false, TrialStatus::crashed),
                                      known(toy_config(128), 0, false, TrialStatus::launch_failed),
                                      known(toy_config(32, kNotANumber), 0, false, TrialStatus::wrong_result),
                                      known(toy_config(64, kNotANumber), 0, false, TrialStatus::compile_failed),
                                      known(toy_config(128, kNotANumber), 0, true, TrialStatus::crashed)};
  ProblemSearch search = this->search();
  search.recall(all, {});
  EXPECT_EQ(all_proposals(search).size(), 3U);
  options_.search.retry_failed = true;
  ProblemSearch again = this->search();
  again.recall(all, {});
  const auto texts = all_proposals(again);
  EXPECT_EQ(texts.size(), 6U);
  EXPECT_TRUE(texts.contains(toy_config(64).text()));
  EXPECT_FALSE(texts.contains(toy_config(128, kNotANumber).text())) << "this run has tried it";
}

TEST_F(ProblemSearchTest, WhatDoesNotCompileOrFitIsSettled) {
  ProblemSearch search = this->search();
  const Config config = search.propose().value();
  Compiled failed;
  failed.status = TrialStatus::compile_failed;
  failed.result.reason = "toy.cu:3: no";
  const auto settled = search.compiled(config, failed);
  ASSERT_TRUE(settled);
  EXPECT_FALSE(settled->duplicate);
  EXPECT_EQ(settled->trial.status, TrialStatus::compile_failed);
  EXPECT_EQ(settled->trial.reason, "toy.cu:3: no");
  EXPECT_TRUE(search.observe(settled->trial, 1).empty());
  EXPECT_EQ(search.open(), 0U);
  EXPECT_EQ(search.done(), 1);

  Compiled large = compiled("large");
  large.result.binary.resources.static_shared_bytes = 1 << 20;
  const auto rejected = search.compiled(search.propose().value(), large);
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->trial.status, TrialStatus::rejected);
  EXPECT_NE(rejected->trial.reason.find("shared memory"), std::string::npos);
  EXPECT_EQ(search.ready(), 0U);
}

class DuplicateTest : public ProblemSearchTest, public ::testing::WithParamInterface<TrialStatus> {
 protected:
  ProblemSearch search_ = search();
  // The same geometry, and the same code.
  void SetUp() override {
    search_.recall({}, {toy_config(32, kNotANumber), toy_config(32)});
    EXPECT_EQ(search_.propose(), toy_config(32));
    EXPECT_EQ(search_.propose(), toy_config(32, kNotANumber));
  }
  void expect_shared(const ProblemSearch::ResolvedTrial& settled, const Config& config) const {
    EXPECT_TRUE(settled.duplicate);
    EXPECT_EQ(settled.trial.config, config);
    EXPECT_EQ(settled.trial.status, GetParam());
    EXPECT_EQ(settled.trial.shared_trial, 7);
    EXPECT_NE(settled.trial.reason.find(toy_config(32).text()), std::string::npos) << settled.trial.reason;
    EXPECT_EQ(settled.trial.time.has_value(), GetParam() == TrialStatus::ok);
    EXPECT_TRUE(settled.trial.samples.empty()) << "it has none of its own";
  }
};

TEST_P(DuplicateTest, WaitsForTheFirstAndSharesItsResult) {
  EXPECT_FALSE(search_.compiled(toy_config(32), compiled("same")));
  EXPECT_FALSE(search_.compiled(toy_config(32, kNotANumber), compiled("same")));
  EXPECT_EQ(search_.ready(), 1U) << "one needs the device";
  EXPECT_EQ(search_.open(), 2U);
  ASSERT_TRUE(search_.take_ready());
  Trial first = trial(toy_config(32), 10, GetParam());
  first.samples.resize(10);
  const auto settled = search_.observe(first, 7);
  ASSERT_EQ(settled.size(), 1U);
  expect_shared(settled[0], toy_config(32, kNotANumber));
  EXPECT_TRUE(search_.observe(settled[0].trial, 8).empty());
  EXPECT_EQ(search_.open(), 0U);
  EXPECT_EQ(search_.done(), 2);
}

TEST_P(DuplicateTest, OfAMeasuredOneIsSettledAtOnce) {
  EXPECT_FALSE(search_.compiled(toy_config(32), compiled("same")));
  ASSERT_TRUE(search_.take_ready());
  EXPECT_TRUE(search_.observe(trial(toy_config(32), 10, GetParam()), 7).empty());
  const auto settled = search_.compiled(toy_config(32, kNotANumber), compiled("same"));
  ASSERT_TRUE(settled);
  expect_shared(*settled, toy_config(32, kNotANumber));
}

INSTANTIATE_TEST_SUITE_P(Statuses, DuplicateTest,
                         ::testing::Values(TrialStatus::ok, TrialStatus::wrong_result, TrialStatus::timed_out,
                                           TrialStatus::crashed, TrialStatus::launch_failed),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

TEST_F(ProblemSearchTest, CandidateGivenBackIsTakenAgain) {
  ProblemSearch search = this->search();
  for (const char* code : {"a", "b"}) {
    EXPECT_FALSE(search.compiled(search.propose().value(), compiled(code)));
  }
  auto first = search.take_ready();
  const Config config = first->config;
  search.put_back(first->config);
  EXPECT_EQ(search.ready(), 2U);
  EXPECT_EQ(search.open(), 2U);
  EXPECT_EQ(search.take_ready()->config, config);
}

TEST_F(ProblemSearchTest, FinalistsAreTheBestAndTheDefault) {
  options_.finalists = 2;
  ProblemSearch search = this->search();
  EXPECT_TRUE(search.finalists().empty());
  EXPECT_EQ(search.finalists_key(), "");
  EXPECT_EQ(tell_next(search, 30), toy_config(64));
  const Config slow = tell_next(search, 20);
  const Config fast = tell_next(search, 10);
  tell_next(search, 0, TrialStatus::wrong_result);
  EXPECT_EQ(finalists(search), (std::vector<std::string>{fast.text(), slow.text(), toy_config(64).text()}));
  const std::string key = search.finalists_key();
  tell_next(search, 25);
  EXPECT_EQ(search.finalists_key(), key) << "nothing new to decide";
  const Config faster = tell_next(search, 5);
  EXPECT_EQ(finalists(search), (std::vector<std::string>{faster.text(), fast.text(), toy_config(64).text()}));
  EXPECT_NE(search.finalists_key(), key);
  for (const auto& [config, binary] : search.finalists()) {
    ASSERT_TRUE(binary) << config.text();
    EXPECT_EQ(binary->code, config.text());
  }
  EXPECT_EQ(search.best_us(), 5);
  EXPECT_EQ(search.default_us(), 30);
}

TEST_F(ProblemSearchTest, NearestUsableStandsInForADefaultThatFails) {
  ProblemSearch search = this->search();
  EXPECT_FALSE(search.baseline());
  EXPECT_EQ(tell_next(search, 0, TrialStatus::timed_out), toy_config(64));
  EXPECT_NE(search.why_no_default().find("timed_out"), std::string::npos) << search.why_no_default();
  EXPECT_FALSE(search.baseline()) << "nothing is usable";
  EXPECT_EQ(tell_next(search, 0, TrialStatus::wrong_result), toy_config(32)) << "one change, in the space's order";
  EXPECT_EQ(tell_next(search, 20), toy_config(128));
  EXPECT_EQ(search.baseline(), toy_config(128));
  const Config faster = tell_next(search, 10);
  EXPECT_EQ(search.baseline(), toy_config(128)) << "the nearest, not the fastest";
  EXPECT_EQ(finalists(search), (std::vector<std::string>{faster.text(), toy_config(128).text()}));
  EXPECT_EQ(search.default_us(), 0);
}

TEST_F(ProblemSearchTest, StandInThatFailsInTheFinalsLeavesItsPlaceToTheNextNearest) {
  ProblemSearch search = this->search();
  search.recall({known(toy_config(128, kNotANumber), 5), known(toy_config(64), 0, false, TrialStatus::timed_out),
                 known(toy_config(32), 15), known(toy_config(32, kNotANumber), 4)},
                {});
  EXPECT_EQ(search.baseline(), toy_config(32));
  search.discard(toy_config(32));
  EXPECT_EQ(search.baseline(), toy_config(32, kNotANumber)) << "nearer than 128, by the order of values";
  search.discard(toy_config(32, kNotANumber));
  EXPECT_EQ(search.baseline(), toy_config(128, kNotANumber));
  search.discard(toy_config(128, kNotANumber));
  EXPECT_FALSE(search.baseline());
}

TEST_F(ProblemSearchTest, RetriedDefaultTakesItsPlaceAgain) {
  const std::vector<Store::Known> all{known(toy_config(64), 0, false, TrialStatus::timed_out),
                                      known(toy_config(32), 15)};
  ProblemSearch search = this->search();
  search.recall(all, {});
  EXPECT_EQ(search.baseline(), toy_config(32)) << "known already";
  EXPECT_NE(tell_next(search, 30), toy_config(64));
  options_.search.retry_failed = true;
  ProblemSearch again = this->search();
  again.recall(all, {});
  EXPECT_EQ(tell_next(again, 25), toy_config(64));
  EXPECT_EQ(again.baseline(), toy_config(64));
  EXPECT_EQ(again.why_no_default(), "");
}

TEST_F(ProblemSearchTest, FinalistsOfAnEarlierProcessHaveNoBinaryYet) {
  ProblemSearch search = this->search();
  search.recall({known(toy_config(64), 20), known(toy_config(32), 12)}, {});
  ASSERT_EQ(search.finalists().size(), 2U);
  EXPECT_FALSE(search.finalists()[0].second);
  EXPECT_FALSE(search.finalists()[1].second);
}

TEST_F(ProblemSearchTest, UntilTheDefaultIsOnTheDeviceNothingElseIs) {
  ProblemSearch search = this->search();
  const Config standard = search.propose().value();
  const Config other = search.propose().value();
  EXPECT_FALSE(search.compiled(other, compiled("other")));
  EXPECT_FALSE(search.take_ready());
  EXPECT_FALSE(search.compiled(standard, compiled("standard")));
  auto first = search.take_ready();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->config, standard);
  search.put_back(first->config);
  EXPECT_EQ(search.take_ready()->config, standard);
  EXPECT_EQ(search.take_ready()->config, other);
}

TEST_F(ProblemSearchTest, DefaultIsMeasuredThoughItsTwinWasCompiledFirst) {
  ProblemSearch search = this->search();
  const Config twin = toy_config(64, kNotANumber);
  search.recall({}, {twin});
  EXPECT_EQ(search.propose(), twin);
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_FALSE(search.compiled(twin, compiled("same")));
  EXPECT_FALSE(search.compiled(toy_config(64), compiled("same")));
  const auto candidate = search.take_ready();
  ASSERT_TRUE(candidate);
  EXPECT_EQ(candidate->config, toy_config(64));
  const auto settled = search.observe(trial(toy_config(64), 10), 7);
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].trial.config, twin);
  std::ignore = search.observe(settled[0].trial, 8);
  EXPECT_EQ(finalists(search), std::vector<std::string>{toy_config(64).text()}) << "one of each code is enough";
}

TEST_F(ProblemSearchTest, DefaultWaitsForItsTwinOnTheDeviceAndIsAFinalistAllTheSame) {
  ProblemSearch search = this->search();
  const Config twin = toy_config(64, kNotANumber);
  search.recall({}, {twin});
  EXPECT_EQ(search.propose(), twin);
  EXPECT_FALSE(search.compiled(twin, compiled("same")));
  ASSERT_TRUE(search.take_ready());
  EXPECT_EQ(search.propose(), toy_config(64));
  const Config other = search.propose().value();
  EXPECT_FALSE(search.compiled(toy_config(64), compiled("same")));
  EXPECT_FALSE(search.compiled(other, compiled("other")));
  EXPECT_TRUE(search.take_ready()) << "the default does not need the device any more";
  const auto settled = search.observe(trial(twin, 10), 7);
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_TRUE(settled[0].trial.is_default);
  std::ignore = search.observe(settled[0].trial, 8);
  EXPECT_EQ(search.default_us(), 10);
  EXPECT_EQ(finalists(search), (std::vector<std::string>{twin.text(), toy_config(64).text()}));
}

TEST_F(ProblemSearchTest, WhatIsKnownBeforehandIsAskedOnceTheSearchBegins) {
  options_.search.searcher = "auto";
  ProblemSearch search = this->search();
  int asked = 0;
  search.ask_before_search([&](const SearchDomain& domain) {
    ++asked;
    EXPECT_EQ(domain.combinations(), 9);
    Prior prior;
    prior.log_time = [&domain](const Point& point) {
      return domain.space()->space().config_at(point) == toy_config(32, kLastElementLeftOut) ? 0.0 : 1.0;
    };
    return std::vector<Prior>{prior};
  });
  EXPECT_EQ(search.propose(), toy_config(64));
  EXPECT_EQ(asked, 0) << "the default comes first whatever is known";
  EXPECT_LE(search.ahead(), 8U) << "little is compiled before anything is measured";
  const auto texts = all_proposals(search);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(texts.size(), 8U);
}

// By its block: 32 threads are estimated at half of 64, 128 at three times as long.
std::optional<CodeRange> by_block(const Config& config, const Binary&) {
  const auto block = static_cast<double>(config.integer("BLOCK"));
  return block == 128 ? CodeRange{30, 40} : CodeRange{block / 6.4, block / 5.4};
}

TEST_F(ProblemSearchTest, WhatItsMachineCodeSaysCannotWinIsNotMeasured) {
  ProblemSearch search = this->search();
  search.judge_by_code(by_block);
  EXPECT_EQ(tell_next(search, 100), toy_config(64));
  int left_out = 0;
  while (const auto config = search.propose()) {
    const auto settled = search.compiled(*config, compiled(config->text()));
    EXPECT_EQ(settled.has_value(), config->integer("BLOCK") == 128) << config->text();
    if (settled) {
      ++left_out;
      EXPECT_EQ(settled->trial.status, TrialStatus::rejected);
      EXPECT_NE(settled->trial.reason.find("by an estimate from its machine code it takes 3.2 times as long"),
                std::string::npos)
          << settled->trial.reason;
      EXPECT_TRUE(search.observe(settled->trial, next_id_++).empty());
    }
  }
  EXPECT_EQ(left_out, 3);
  EXPECT_EQ(search.ready(), 5U);
  EXPECT_EQ(search.usable(), 1U);
}

TEST_F(ProblemSearchTest, WhatItsMachineCodePromisesMostIsMeasuredFirstButNoneWaitsForEver) {
  ProblemSearch search = this->search();
  search.judge_by_code(by_block);
  (void)tell_next(search, 100);
  std::vector<Config> slower;
  std::vector<Config> faster;
  while (const auto config = search.propose()) {
    if (config->integer("BLOCK") != 128) {
      (config->integer("BLOCK") == 64 ? slower : faster).push_back(*config);
    }
  }
  ASSERT_EQ(slower.size(), 2U);
  ASSERT_EQ(faster.size(), 3U);
  for (const std::vector<Config>& some : {slower, faster}) {
    for (const Config& config : some) {
      EXPECT_FALSE(search.compiled(config, compiled(config.text())));
    }
  }
  for (const Config& config : faster) {
    EXPECT_EQ(search.take_ready()->config, config);
  }
  EXPECT_EQ(search.take_ready()->config, slower[0]);
  search.put_back(slower[0]);
  search.put_back(slower[1]);
  EXPECT_EQ(search.take_ready()->config, slower[1]);
}

TEST_F(ProblemSearchTest, NothingIsLeftOutByCodeBeforeSomethingWasMeasuredOrOfThePortfolio) {
  nlohmann::json document = toy_json({kRight, kNotANumber, kLastElementLeftOut});
  document["portfolio"] = {{{"BLOCK", 128}}};
  space_ = Space::parse(document.dump(), "toy.json");
  ProblemSearch search = this->search();
  search.judge_by_code(by_block);
  EXPECT_EQ(tell_next(search, 100), toy_config(64));
  EXPECT_EQ(tell_next(search, 50), toy_config(128)) << "whatever its code says";
}

TEST_F(ProblemSearchTest, BestIsKnownAfterEachTrial) {
  ProblemSearch search = this->search();
  EXPECT_EQ(search.best_after_us(1), 0);
  tell_next(search, 0, TrialStatus::wrong_result);
  tell_next(search, 40);
  tell_next(search, 30);
  tell_next(search, 20);
  EXPECT_EQ(search.best_after_us(0), 0);
  EXPECT_EQ(search.best_after_us(1), 0) << "it was not usable";
  EXPECT_EQ(search.best_after_us(2), 40);
  EXPECT_EQ(search.best_after_us(4), 20);
  EXPECT_EQ(search.best_after_us(9), 20) << "no more than there are";
}

// What won on other shapes comes after the default and before the portfolio, each once.
TEST_F(PortfolioSearchTest, WinnersOfOtherShapesComeAfterTheDefault) {
  ProblemSearch search = this->search();
  search.begin_with_winners({toy_config(128, kLastElementLeftOut), toy_config(64), toy_config(128)});
  EXPECT_EQ(search.propose(), toy_config(64)) << "the default";
  EXPECT_EQ(search.propose(), toy_config(128, kLastElementLeftOut));
  EXPECT_EQ(search.propose(), toy_config(128)) << "a winner and of the portfolio";
  EXPECT_EQ(search.propose(), toy_config(128, kNotANumber)) << "the first of the portfolio";
}

TEST_F(ProblemSearchTest, NeighboursAreTheNearestThatWereNotTried) {
  ProblemSearch search = this->search();
  tell_next(search, 10);  // the default: BLOCK=64 FAULT=0
  const std::vector<Config> near = search.untried_near({toy_config(64)}, 100);
  ASSERT_GE(near.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string text = near[i].text();
    EXPECT_TRUE(text.find("BLOCK=64") != std::string::npos || text.find("FAULT=0") != std::string::npos)
        << text << " differs in two";
  }
  std::set<std::string> once;
  for (const Config& config : near) {
    EXPECT_TRUE(once.insert(config.text()).second) << config.text() << " twice";
  }
  EXPECT_FALSE(once.contains(toy_config(64).text()));
  EXPECT_EQ(search.untried_near({toy_config(64)}, 2).size(), 2U);
  EXPECT_EQ(search.untried_near({toy_config(128, kLastElementLeftOut)}, 1).front(),
            toy_config(128, kLastElementLeftOut))
      << "a winner of another shape that was not tried here itself comes first";
}

TEST_F(ProblemSearchTest, OnlyTheNeighboursAreProposedAndThenTheSearchIsWhereItWas) {
  ProblemSearch search = this->search();
  tell_next(search, 10);
  tell_next(search, 11);
  const std::vector<Config> near = search.untried_near({toy_config(64)}, 2);
  search.try_only(near);
  EXPECT_EQ(search.remaining(), 2);
  EXPECT_EQ(tell_next(search, 9), near[0]);
  EXPECT_EQ(tell_next(search, 12), near[1]);
  EXPECT_FALSE(search.propose());
  EXPECT_TRUE(search.spent());
  search.search_on();
  EXPECT_FALSE(search.spent());
  EXPECT_EQ(all_proposals(search).size(), 9U - 4U) << "all others, none twice";
  EXPECT_TRUE(search.spent());
  search.try_only({});
  search.search_on();
  EXPECT_TRUE(search.spent()) << "a search that was spent stays so";
}

}  // namespace
}  // namespace pascaline::testing
