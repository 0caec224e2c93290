#include "tuner/probe/conflict_chains.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/sm61/kernel_code.hpp"
#include "runtime/device/sm61/sm_model.hpp"
#include "tests/runtime/device/cuda/nvrtc_here.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/probe/probe_kernels.hpp"

namespace pascaline::testing {
namespace {

CompileTarget sm_61_plan() { return {"sm_61", BinaryKind::cubin, limits_of_architecture("sm_61").value()}; }

ProbeKernels probe_kernels_of(const NvrtcInfo& library) {
  return {sm_61_plan(), library.path, data_folder("kernel_templates") / "probe", test_cache()};
}

std::vector<ConflictChain> compiled_chains(ProbeKernels& kernels) {
  std::vector<ConflictChain> chains;
  for (const std::vector<std::string>& defines : conflict_variants()) {
    chains.push_back(read_chain(fmt::format("{}", fmt::join(defines, " ")),
                                kernels.compile("bank_conflicts", "bank_conflicts", defines)));
  }
  return chains;
}

/// With every NVRTC of this machine that compiles for sm_61: what a card would be given.
class Sm61ProbeTest : public ::testing::Test {
 protected:
  void SetUp() override { PASCALINE_NEED_NVRTC(libraries_); }
  std::vector<NvrtcInfo> libraries_ = nvrtc_for("sm_61");
};

TEST_F(Sm61ProbeTest, ChosenChainsSpanTheRangeAndDifferInConflictsAlone) {
  for (const NvrtcInfo& library : libraries_) {
    SCOPED_TRACE(library.version);
    ProbeKernels kernels = probe_kernels_of(library);
    const std::vector<ConflictChain> chains = choose_chains(compiled_chains(kernels), 24);
    ASSERT_GE(chains.size(), 16U);
    EXPECT_LE(chains.size(), 24U);
    EXPECT_LE(chains.front().conflicts, 0.05);
    EXPECT_GE(chains.back().conflicts, 0.7);
    double widest_gap = 0;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const ConflictChain& chain = chains[i];
      EXPECT_EQ(chain.ffma, 256U) << chain.variant;
      EXPECT_EQ(chain.instructions, chains.front().instructions) << chain.variant;
      EXPECT_EQ(chain.dual_issues, chains.front().dual_issues) << chain.variant;
      EXPECT_EQ(chain.local_bytes, 0) << chain.variant;
      EXPECT_LE(chain.kept, 0.04 * chain.ffma) << chain.variant << ": operands that are kept are not read";
      // 16 warps of them are resident, whatever else a chain needs.
      EXPECT_LE(chain.binary.resources.registers, 96) << chain.variant;
      if (i > 0 && chain.conflicts <= 0.7) {
        widest_gap = std::max(widest_gap, chain.conflicts - chains[i - 1].conflicts);
      }
    }
    EXPECT_LT(widest_gap, 0.2) << "between 0 and 0.7 conflicts";
  }
}

// The model of an SM in place of a card: what it charges for a conflict must come out as the slope, which it can only
// if nothing but issuing limits the chains.
TEST_F(Sm61ProbeTest, TheSlopeIsWhatTheModelOfAnSmCharges) {
  for (const NvrtcInfo& library : libraries_) {
    ProbeKernels kernels = probe_kernels_of(library);
    const std::vector<ConflictChain> chains = choose_chains(compiled_chains(kernels), 24);
    for (const double cost : {0.0, 0.5, 1.0}) {
      sm61::SmRates rates;
      rates.conflict = cost;
      std::vector<ProbeChain> timed;
      for (const ConflictChain& chain : chains) {
        const sm61::KernelCode code = sm61::read_kernel(chain.binary.code, chain.binary.function);
        const double clocks = sm61::time_of_loop(code, code.hottest.value(), {1, 16}, rates).clocks;
        timed.push_back({chain.variant, chain.conflicts, 4 * clocks / (16 * chain.ffma), 0, 0, 1});
      }
      const LinearFit fit = fit_conflicts(timed).value();
      SCOPED_TRACE(conflict_verdict(fit, timed.size()));
      EXPECT_NEAR(fit.slope, cost, 0.02);
      EXPECT_LT(fit.high - fit.low, 0.05);
      EXPECT_NEAR(fit.at_zero, 1.03, 0.03) << "an issue slot for each FFMA, and little for the loop";
    }
  }
}

// What is timed must lie between the two readings of the clock, and must be what its name says.
TEST_F(Sm61ProbeTest, KernelsTimeWhatTheySay) {
  struct Wanted {
    const char* file;
    const char* function;
    std::uint32_t ffma;
    std::uint32_t dp4a;
    std::uint32_t shared_loads;
    std::uint32_t global_loads;
  };
  for (const NvrtcInfo& library : libraries_) {
    ProbeKernels kernels = probe_kernels_of(library);
    for (const Wanted& wanted : {Wanted{"ffma", "ffma_rate", 256, 0, 0, 0},
                                 {"dp4a", "dp4a_rate", 0, 256, 0, 0},
                                 {"ffma", "ffma_latency", 256, 0, 0, 0},
                                 {"shared", "shared_rate", 0, 0, 32, 0},
                                 {"shared", "shared_latency", 0, 0, 64, 0},
                                 {"memory", "cached_read", 0, 0, 0, 8},
                                 {"memory", "chase", 0, 0, 0, 16},
                                 {"bank_conflicts", "bank_conflicts", 256, 0, 0, 0}}) {
      SCOPED_TRACE(fmt::format("{} with NVRTC {}", wanted.function, library.version));
      const Binary binary = kernels.compile(wanted.file, wanted.function);
      const sm61::KernelCode code = sm61::read_kernel(binary.code, wanted.function);
      EXPECT_EQ(code.local_bytes, 0);
      std::optional<std::size_t> timed;
      for (std::size_t i = 0; i < code.costs.size(); ++i) {
        const sm61::IssueCost& cost = code.costs[i].own;
        if (cost.of(sm61::Kind::ffma) == wanted.ffma && cost.of(sm61::Kind::dp4a) == wanted.dp4a &&
            cost.of(sm61::Space::shared).loads == wanted.shared_loads &&
            cost.of(sm61::Space::global).loads == wanted.global_loads) {
          timed = i;
        }
      }
      ASSERT_TRUE(timed) << "no loop of its machine code does what it is to time";
      if (wanted.ffma + wanted.dp4a > 0) {
        EXPECT_EQ(code.costs[*timed].own.bank_conflicts, 0U);
        EXPECT_LE(code.costs[*timed].own.instructions, 256U + 4U);
      }
      std::vector<std::uint32_t> clocks;  // places in the code where the clock is read
      for (std::uint32_t i = 0; i < code.instructions.size(); ++i) {
        if (code.instructions[i].text().find("SR_CLOCKLO") != std::string::npos) {
          clocks.push_back(i);
        }
      }
      ASSERT_EQ(clocks.size(), 2U);
      for (const sm61::Block& block : code.flow.blocks) {
        if (block.loop == static_cast<std::int32_t>(*timed)) {
          EXPECT_GT(block.begin, clocks.front());
          EXPECT_LE(block.end, clocks.back());
        }
      }
    }
    for (const char* function : {"read", "copy"}) {
      EXPECT_EQ(kernels.compile("memory", function).resources.local_bytes, 0);
    }
    EXPECT_EQ(kernels.compile("nothing", "nothing").resources.local_bytes, 0);
  }
}

// On whatever GPU the probe is run. Only dp4a is not for all.
TEST(ProbeKernelsTest, CompileForOtherArchitectures) {
  std::size_t compiled = 0;
  for (const char* architecture : {"sm_50", "sm_60", "sm_75", "sm_90"}) {
    const std::vector<NvrtcInfo> libraries = nvrtc_for(architecture);
    if (libraries.empty()) {
      continue;
    }
    ProbeKernels kernels({architecture, BinaryKind::cubin, limits_of_architecture(architecture).value()},
                         libraries.front().path, data_folder("kernel_templates") / "probe", test_cache());
    using Function = std::pair<const char*, const char*>;
    for (const auto& [file, function] : {Function{"ffma", "ffma_rate"},
                                         {"ffma", "ffma_latency"},
                                         {"shared", "shared_rate"},
                                         {"shared", "shared_latency"},
                                         {"memory", "cached_read"},
                                         {"memory", "read"},
                                         {"memory", "copy"},
                                         {"memory", "chase"},
                                         {"nothing", "nothing"}}) {
      EXPECT_EQ(kernels.compile(file, function).resources.local_bytes, 0) << function << " for " << architecture;
      ++compiled;
    }
  }
  if (compiled == 0) {
    GTEST_SKIP() << "no NVRTC is here";
  }
}

ConflictChain chain_of(double conflicts, std::uint32_t kept = 0, std::uint32_t instructions = 259,
                       int local_bytes = 0) {
  ConflictChain chain;
  chain.variant = fmt::format("{} {}", conflicts, kept);
  chain.conflicts = conflicts;
  chain.ffma = 256;
  chain.instructions = instructions;
  chain.kept = kept;
  chain.local_bytes = local_bytes;
  return chain;
}

TEST(ConflictChainsTest, ChainsThatDifferInMoreThanConflictsAreNotChosen) {
  const auto chosen = choose_chains(
      {chain_of(0.5), chain_of(0), chain_of(0.2, 0, 300), chain_of(0.3, 0, 259, 16), chain_of(0.4, 11)}, 24);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].conflicts, 0);
  EXPECT_EQ(chosen[1].conflicts, 0.5);
  EXPECT_TRUE(choose_chains({}, 24).empty());
}

TEST(ConflictChainsTest, OfNeighboursThoseThatKeepLeastStayAndSoDoTheEnds) {
  const auto chosen = choose_chains(
      {chain_of(0, 9), chain_of(0.01), chain_of(0.3, 5), chain_of(0.31, 1), chain_of(0.7), chain_of(0.71, 9)}, 4);
  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen.front().conflicts, 0);
  EXPECT_EQ(chosen[1].conflicts, 0.31);
  EXPECT_EQ(chosen.back().conflicts, 0.71);
}

// Chains of which every conflict costs `cost`, with noise that sums to little.
std::vector<ProbeChain> timed_chains(double cost, double noise, int count = 24) {
  std::vector<ProbeChain> chains;
  for (int i = 0; i < count; ++i) {
    const double conflicts = i * 2.0 / (count - 1);
    chains.push_back({fmt::format("{}", i), conflicts, 1.02 + cost * conflicts + noise * std::sin(37.0 * i), 0, 0, 9});
  }
  return chains;
}

TEST(ConflictChainsTest, TheSlopeIsWhatAConflictCosts) {
  for (const double cost : {0.0, 0.5, 1.0}) {
    const auto fit = fit_conflicts(timed_chains(cost, 0.01));
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->slope, cost, 0.01);
    EXPECT_LE(fit->low, cost);
    EXPECT_GE(fit->high, cost);
    EXPECT_NEAR(fit->at_zero, 1.02, 0.02);
  }
  EXPECT_FALSE(fit_conflicts(timed_chains(1, 0, 7))) << "too few";
  std::vector<ProbeChain> alike = timed_chains(1, 0);
  for (ProbeChain& chain : alike) {
    chain.conflicts /= 10;
  }
  EXPECT_FALSE(fit_conflicts(alike)) << "too alike";
}

TEST(ConflictChainsTest, TheVerdictSaysWhatTheIntervalAllows) {
  const auto verdict = [](double cost, double noise) {
    return conflict_verdict(fit_conflicts(timed_chains(cost, noise)).value(), 24);
  };
  EXPECT_NE(verdict(1, 0.01).find("a register bank conflict costs 1.0"), std::string::npos) << verdict(1, 0.01);
  EXPECT_NE(verdict(0, 0.01).find("cost nothing"), std::string::npos) << verdict(0, 0.01);
  EXPECT_NE(verdict(0.5, 2).find("do not say"), std::string::npos) << verdict(0.5, 2);
}

}  // namespace
}  // namespace pascaline::testing
