#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/binary.hpp"
#include "core/device/probe.hpp"
#include "tuner/probe/linear_fit.hpp"

namespace pascaline {

/// A compiled loop of FFMA with what the reader of machine code (runtime/device/sm61/) says of it.
struct ConflictChain {
  std::string variant;  ///< "PAIRS=8 TRIPLES=0 ORDER=1"
  Binary binary;
  double conflicts = 0;            ///< all of the loop's, for each FFMA
  std::uint32_t ffma = 0;          ///< of a round of the loop
  std::uint32_t instructions = 0;  ///< …
  std::uint32_t dual_issues = 0;   ///< …
  std::uint32_t kept = 0;          ///< instructions that keep an operand for the next one
  int local_bytes = 0;             ///< of a thread: spills
};

/// Definitions for the compiler of each loop that is tried: from no conflicts to one for each FFMA.
[[nodiscard]] std::vector<std::vector<std::string>> conflict_variants();

/// Reads the loop of a cubin for sm_50 to sm_62; throws Error if it has none or its code cannot be read.
[[nodiscard]] ConflictChain read_chain(std::string variant, Binary binary);

/// At most `most` of the loops, so that conflicts alone differ: as many FFMA, instructions and dual issues as most of
/// them have, no spills, hardly an operand that is kept for the next instruction. Spread over the range of conflicts as
/// evenly as there are loops; of two with about as many conflicts, the one that keeps fewer operands. In order of
/// conflicts.
[[nodiscard]] std::vector<ConflictChain> choose_chains(std::vector<ConflictChain> chains, std::size_t most);

/// What a conflict costs by the times of chains: the slope of issue slots over conflicts. Nothing with fewer than eight
/// chains, or where their conflicts are less than 0.3 for each FFMA apart.
[[nodiscard]] std::optional<LinearFit> fit_conflicts(std::span<const ProbeChain> chains);

/// The fit in one sentence, for people.
[[nodiscard]] std::string conflict_verdict(const LinearFit& fit, std::size_t chains);

}  // namespace pascaline
