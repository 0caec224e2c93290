#include "tuner/probe/conflict_chains.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kFewestChains = 8;
constexpr double kMinRange = 0.3;
// An operand that is kept is not read again, if the reader is right about that: to be nearly none.
constexpr std::uint32_t kFfmaOfKept = 25;

// What every chain that is compared must have alike.
using Shape = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

Shape shape_of(const ConflictChain& chain) { return {chain.ffma, chain.instructions, chain.dual_issues}; }

Shape commonest_shape(const std::vector<ConflictChain>& chains) {
  std::map<Shape, int> counts;
  for (const ConflictChain& chain : chains) {
    ++counts[shape_of(chain)];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Shape{} : most->first;
}

}  // namespace

std::vector<std::vector<std::string>> conflict_variants() {
  std::vector<std::vector<std::string>> variants;
  const auto add = [&](int pairs, int triples, int order) {
    variants.push_back(
        {fmt::format("PAIRS={}", pairs), fmt::format("TRIPLES={}", triples), fmt::format("ORDER={}", order)});
  };
  // The compiler works against conflicts, so that fewer are left than are asked for.
  for (int pairs = 0; pairs <= 64; pairs += 8) {
    add(pairs, 0, 0);
    add(pairs, 0, 1);
  }
  for (int triples = 8; triples <= 56; triples += 8) {
    add(0, triples, 0);
    add(0, triples, 3);
    add((64 - triples) / 2, triples, 3);
  }
  // With 64 of triples alone nothing is left to the compiler: two conflicts, so far from all others that this one would
  // decide the slope.
  return variants;
}

ConflictChain read_chain(std::string variant, Binary binary) {
  const sm61::KernelCode kernel = sm61::read_kernel(binary.code, binary.function);
  if (!kernel.hottest) {
    throw Error(fmt::format("{} has no loop in its machine code", variant));
  }
  const sm61::IssueCost& cost = kernel.costs[*kernel.hottest].own;
  ConflictChain chain;
  chain.variant = std::move(variant);
  chain.ffma = cost.of(sm61::Kind::ffma);
  chain.instructions = cost.instructions;
  chain.dual_issues = cost.dual_issues;
  chain.local_bytes = kernel.local_bytes;
  chain.conflicts = chain.ffma > 0 ? static_cast<double>(cost.bank_conflicts) / chain.ffma : 0;
  chain.kept =
      static_cast<std::uint32_t>(std::count_if(kernel.instructions.begin(), kernel.instructions.end(),
                                               [](const sm61::Instruction& each) { return each.control.reuse != 0; }));
  chain.binary = std::move(binary);
  return chain;
}

std::vector<ConflictChain> choose_chains(std::vector<ConflictChain> chains, std::size_t most) {
  const Shape shape = commonest_shape(chains);
  std::erase_if(chains, [&](const ConflictChain& chain) {
    return shape_of(chain) != shape || chain.local_bytes > 0 || chain.kept * kFfmaOfKept > chain.ffma;
  });
  std::stable_sort(chains.begin(), chains.end(), [](const ConflictChain& a, const ConflictChain& b) {
    return std::tie(a.conflicts, a.kept) < std::tie(b.conflicts, b.kept);
  });
  // As long as there are too many, of the two nearest neighbours the one that keeps more operands goes. The ends stay.
  while (chains.size() > std::max<std::size_t>(most, 2)) {
    std::size_t nearest = 0;
    for (std::size_t i = 1; i + 1 < chains.size(); ++i) {
      const auto gap = [&](std::size_t at) { return chains[at + 1].conflicts - chains[at].conflicts; };
      nearest = gap(i) < gap(nearest) ? i : nearest;
    }
    const bool first_goes =
        nearest > 0 && (nearest + 2 == chains.size() || chains[nearest].kept > chains[nearest + 1].kept);
    chains.erase(chains.begin() + static_cast<std::ptrdiff_t>(first_goes ? nearest : nearest + 1));
  }
  return chains;
}

std::optional<LinearFit> fit_conflicts(std::span<const ProbeChain> chains) {
  std::vector<double> conflicts;
  std::vector<double> slots;
  for (const ProbeChain& chain : chains) {
    conflicts.push_back(chain.conflicts);
    slots.push_back(chain.slots);
  }
  if (chains.size() < kFewestChains) {
    return std::nullopt;
  }
  const auto [least, greatest] = std::minmax_element(conflicts.begin(), conflicts.end());
  return *greatest - *least < kMinRange ? std::nullopt : fit_line(conflicts, slots);
}

std::string conflict_verdict(const LinearFit& fit, std::size_t chains) {
  const std::string figures = fmt::format(
      "{:.3f} issue slots (95 %: {:.3f} to {:.3f}) by {} loops; conflicts explain {:.0f} % of what their "
      "times differ by",
      fit.slope, fit.low, fit.high, chains, 100 * fit.explained);
  constexpr double kTooWide = 0.2;
  constexpr double kNothing = 0.05;
  if (fit.high - fit.low > kTooWide) {
    return fmt::format(
        "the times do not say what a register bank conflict costs: {}. The banks may lie otherwise than "
        "is assumed, or the card was disturbed",
        figures);
  }
  if (fit.high < kNothing) {
    return fmt::format("register bank conflicts cost nothing here: {}", figures);
  }
  return fmt::format("a register bank conflict costs {}", figures);
}

}  // namespace pascaline
