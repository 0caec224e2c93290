#include "runtime/device/sm61/loop_cost.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/device/sm61/heaviest_path.hpp"

namespace pascaline::sm61 {
namespace {

constexpr std::size_t kBanks = 4;
constexpr std::size_t kSlots = 3;
constexpr int kEmpty = -1;

/// The registers that one instruction has left in the operand slots.
using Kept = std::array<int, kSlots>;

// Whether the instruction reads registers through the operand slots: loads and stores have another path.
bool is_arithmetic(Kind kind) {
  switch (kind) {
    case Kind::ffma:
    case Kind::float32:
    case Kind::float64:
    case Kind::float16:
    case Kind::dp4a:
    case Kind::integer:
    case Kind::conversion:
    case Kind::special:
    case Kind::move:
      return true;
    default:
      return false;
  }
}

struct OperandReads {
  std::uint32_t conflicts = 0;
  std::uint32_t reuses = 0;
};

OperandReads operand_reads(const Instruction& instruction, const Kept& kept) {
  OperandReads reads;
  std::array<int, 2 * Instruction::kMaxOperands> read{};
  std::size_t count = 0;
  for (const Operand& operand : instruction.operand_list()) {
    if (operand.type != Operand::Type::reg || operand.slot >= kSlots || operand.number == Operand::kZeroRegister) {
      continue;
    }
    if (kept[operand.slot] == operand.number) {
      ++reads.reuses;
      continue;
    }
    for (int i = 0; i < std::min<int>(operand.registers, 2); ++i) {
      if (std::find(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(count), operand.number + i) ==
          read.begin() + static_cast<std::ptrdiff_t>(count)) {
        read[count++] = operand.number + i;
      }
    }
  }
  std::array<std::uint32_t, kBanks> banks{};
  for (std::size_t i = 0; i < count; ++i) {
    ++banks[static_cast<std::size_t>(read[i]) % kBanks];
  }
  const std::uint32_t most = *std::max_element(banks.begin(), banks.end());
  reads.conflicts = most > 1 && is_arithmetic(instruction.kind) ? most - 1 : 0;
  return reads;
}

Kept kept_by(const Instruction& instruction) {
  Kept kept{kEmpty, kEmpty, kEmpty};
  for (const Operand& operand : instruction.operand_list()) {
    if (operand.slot < kSlots && (instruction.control.reuse >> operand.slot & 1U) != 0) {
      kept[operand.slot] = operand.number;
    }
  }
  return kept;
}

Kept kept_before(const Instruction* before) {
  return before == nullptr ? Kept{kEmpty, kEmpty, kEmpty} : kept_by(*before);
}

void add_access(IssueCost& cost, const Instruction& instruction) {
  Accesses& accesses = cost.by_space[static_cast<std::size_t>(instruction.space)];
  if (instruction.kind == Kind::load) {
    ++accesses.loads;
    accesses.loaded_bytes += instruction.bytes;
  } else if (instruction.kind == Kind::store) {
    ++accesses.stores;
    accesses.stored_bytes += instruction.bytes;
  }
}

void add_instruction(IssueCost& cost, const Instruction& instruction, const Kept& kept) {
  const OperandReads reads = operand_reads(instruction, kept);
  ++cost.instructions;
  ++cost.by_kind[static_cast<std::size_t>(instruction.kind)];
  add_access(cost, instruction);
  cost.dual_issues += instruction.control.stall == 0 ? 1 : 0;
  cost.stall_clocks += instruction.control.stall;
  cost.reuses += reads.reuses;
  cost.bank_conflicts += reads.conflicts;
  if (instruction.kind == Kind::ffma || instruction.kind == Kind::dp4a) {
    cost.arithmetic_conflicts += reads.conflicts;
  }
}

double ratio(std::uint32_t value, std::uint32_t of) {
  return of == 0 ? 0 : static_cast<double>(value) / static_cast<double>(of);
}

}  // namespace

void IssueCost::add(const IssueCost& other) {
  instructions += other.instructions;
  for (std::size_t i = 0; i < kKinds; ++i) {
    by_kind[i] += other.by_kind[i];
  }
  for (std::size_t i = 0; i < kSpaces; ++i) {
    by_space[i].loads += other.by_space[i].loads;
    by_space[i].stores += other.by_space[i].stores;
    by_space[i].loaded_bytes += other.by_space[i].loaded_bytes;
    by_space[i].stored_bytes += other.by_space[i].stored_bytes;
  }
  dual_issues += other.dual_issues;
  bank_conflicts += other.bank_conflicts;
  arithmetic_conflicts += other.arithmetic_conflicts;
  reuses += other.reuses;
  stall_clocks += other.stall_clocks;
}

double IssueCost::arithmetic_share() const noexcept { return ratio(arithmetic(), instructions); }
double IssueCost::arithmetic_per_slot() const noexcept { return ratio(arithmetic(), issue_slots()); }
double IssueCost::conflicts_per_arithmetic() const noexcept { return ratio(arithmetic_conflicts, arithmetic()); }

std::uint32_t bank_conflicts(const Instruction& instruction, const Instruction* before) {
  return operand_reads(instruction, kept_before(before)).conflicts;
}

IssueCost cost_of(const KernelCode& kernel, std::span<const std::uint32_t> blocks) {
  IssueCost cost;
  for (const std::uint32_t index : blocks) {
    const Block& block = kernel.flow.blocks[index];
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      add_instruction(cost, kernel.instructions[i], kept_before(i == 0 ? nullptr : &kernel.instructions[i - 1]));
    }
  }
  return cost;
}

std::vector<LoopCost> loop_costs(std::span<const Instruction> code, const ControlFlow& flow) {
  std::vector<LoopCost> costs(flow.loops.size());
  for (const Block& block : flow.blocks) {
    if (block.loop == Block::kNone) {
      continue;
    }
    IssueCost& own = costs[static_cast<std::size_t>(block.loop)].own;
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      add_instruction(own, code[i], kept_before(i == 0 ? nullptr : &code[i - 1]));
    }
  }
  // Outer loops come first, so that from the end every loop is complete before it is added to the one around it.
  for (std::size_t i = costs.size(); i > 0; --i) {
    LoopCost& cost = costs[i - 1];
    cost.total.add(cost.own);
    if (const std::int32_t parent = flow.loops[i - 1].parent; parent != Block::kNone) {
      costs[static_cast<std::size_t>(parent)].total.add(cost.total);
    }
  }
  return costs;
}

std::optional<std::size_t> hottest_loop(const ControlFlow& flow, std::span<const LoopCost> costs) {
  constexpr double kRepeats = 10;
  constexpr std::uint32_t kMaxDepth = 16;
  const bool computes =
      std::any_of(costs.begin(), costs.end(), [](const LoopCost& cost) { return cost.own.arithmetic() > 0; });
  std::optional<std::size_t> hottest;
  double highest = -1;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const std::uint32_t work = computes ? costs[i].own.arithmetic() : costs[i].own.instructions;
    const double weight = work * std::pow(kRepeats, std::min(flow.loops[i].depth, kMaxDepth));
    if (weight > highest) {
      highest = weight;
      hottest = i;
    }
  }
  return hottest;
}

}  // namespace pascaline::sm61
