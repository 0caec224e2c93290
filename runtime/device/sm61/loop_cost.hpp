#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/sm61/control_flow.hpp"
#include "runtime/device/sm61/instruction.hpp"

namespace pascaline::sm61 {

/// Loads and stores of one memory space.
struct Accesses {
  std::uint32_t loads = 0;         ///< instructions
  std::uint32_t stores = 0;        ///< instructions
  std::uint64_t loaded_bytes = 0;  ///< per thread
  std::uint64_t stored_bytes = 0;  ///< per thread
};

/// What instructions cost to issue, each counted once whatever its predicate. Estimates from the machine code: nothing
/// here knows of waiting for memory or for other warps.
struct IssueCost {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::nop) + 1;
  static constexpr std::size_t kSpaces = static_cast<std::size_t>(Space::generic) + 1;

  std::uint32_t instructions = 0;
  std::array<std::uint32_t, kKinds> by_kind{};
  std::array<Accesses, kSpaces> by_space{};
  std::uint32_t dual_issues = 0;           ///< instructions that issue in one clock with the next
  std::uint32_t bank_conflicts = 0;        ///< clocks by which operands in one register bank delay arithmetic
  std::uint32_t arithmetic_conflicts = 0;  ///< those of FFMA and dp4a
  std::uint32_t reuses = 0;                ///< source operands that the instruction before has kept
  std::uint64_t stall_clocks = 0;          ///< sum of the stall counts: clocks of one warp that waits for nothing else

  void add(const IssueCost& other);
  [[nodiscard]] std::uint32_t of(Kind kind) const noexcept { return by_kind[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Accesses& of(Space space) const noexcept { return by_space[static_cast<std::size_t>(space)]; }
  /// FFMA and dp4a.
  [[nodiscard]] std::uint32_t arithmetic() const noexcept { return of(Kind::ffma) + of(Kind::dp4a); }
  /// Clocks in which a scheduler issues: instructions, two in one clock where they are issued together, and one more
  /// for each bank conflict.
  [[nodiscard]] std::uint32_t issue_slots() const noexcept { return instructions - dual_issues + bank_conflicts; }
  /// FFMA and dp4a per instruction, per issue slot; bank conflicts of FFMA and dp4a for each of them. 0 for none.
  [[nodiscard]] double arithmetic_share() const noexcept;
  [[nodiscard]] double arithmetic_per_slot() const noexcept;
  [[nodiscard]] double conflicts_per_arithmetic() const noexcept;
};

/// Clocks by which source registers in one bank delay an arithmetic instruction: registers are in bank number modulo 4,
/// each bank gives one at a time, and what the instruction before it in the code (null if there is none) keeps for the
/// same operand slot is not read.
[[nodiscard]] std::uint32_t bank_conflicts(const Instruction& instruction, const Instruction* before);

/// The cost of a loop's blocks: without those of loops inside it, and with them (each counted once).
struct LoopCost {
  IssueCost own;
  IssueCost total;
};

/// Cost of each loop of `flow`, which was found in `code`.
[[nodiscard]] std::vector<LoopCost> loop_costs(std::span<const Instruction> code, const ControlFlow& flow);

/// The loop in which most time is likely to go: the most FFMA and dp4a of its own (of instructions, where no loop has
/// any), with every level of nesting taken to run ten times as often. None if there is no loop.
[[nodiscard]] std::optional<std::size_t> hottest_loop(const ControlFlow& flow, std::span<const LoopCost> costs);

}  // namespace pascaline::sm61
