#include "core/space/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/error.hpp"
#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// Words that would mean something else in an expression than the name they are given to.
bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 12> kTaken{"sizeof", "bitsof", "blockof",  "tailof",   "matrix_bytes", "min",
                                                    "max",    "abs",    "ceil_div", "round_up", "is_pow2",      "log2"};
  return std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
}

bool divide(std::int64_t left, std::int64_t right, std::int64_t& quotient, Arithmetic& why) noexcept {
  if (right == 0) {
    why = Arithmetic::division_by_zero;
    return false;
  }
  if (left == kMin && right == -1) {
    why = Arithmetic::overflow;
    return false;
  }
  quotient = left / right;
  return true;
}

bool shift(bool to_left, std::int64_t& value, std::int64_t by, Arithmetic& why) noexcept {
  if (by < 0 || by > 63 || (to_left && value < 0)) {
    why = Arithmetic::bad_shift;
    return false;
  }
  if (to_left && value > (std::numeric_limits<std::int64_t>::max() >> by)) {
    why = Arithmetic::overflow;
    return false;
  }
  value = to_left ? value << by : value >> by;
  return true;
}

// Quotient rounded towards positive infinity.
bool ceil_divide(std::int64_t left, std::int64_t right, std::int64_t& quotient, Arithmetic& why) noexcept {
  if (!divide(left, right, quotient, why)) {
    return false;
  }
  const bool exact = quotient * right == left;
  quotient += !exact && ((left < 0) == (right < 0)) ? 1 : 0;
  return true;
}

std::string_view cause(Arithmetic why) {
  switch (why) {
    case Arithmetic::division_by_zero:
      return "divides by zero";
    case Arithmetic::overflow:
      return "overflows 64 bits";
    case Arithmetic::bad_shift:
      return "shifts by an impossible amount or shifts a negative value left";
    default:
      return "has no value";
  }
}

}  // namespace

void Symbols::require_free(std::string_view name) const {
  if (!is_identifier(name)) {
    throw Error(fmt::format("'{}' is not an identifier", name));
  }
  if (is_reserved(name)) {
    throw Error(fmt::format("'{}' is a keyword of the expression language", name));
  }
  if (slot(name) || forbidden(name) != nullptr || definition(name) != nullptr) {
    throw Error(fmt::format("the name '{}' is used twice", name));
  }
}

int Symbols::add(std::string_view name) {
  require_free(name);
  return add_name(std::string(name));
}

int Symbols::add_name(std::string name) {
  const auto slot = static_cast<int>(names_.size());
  slots_.try_emplace(name, slot);
  names_.push_back(std::move(name));
  return slot;
}

std::array<std::int64_t, kTypeSlots> type_slots(ElementType type) {
  const MatrixLayout layout = layout_of(type);
  return {is_packed_format(type) ? 0 : static_cast<std::int64_t>(size_of(type)),
          static_cast<std::int64_t>(bits_of(type)),
          layout.group_rows,
          layout.chunk_columns,
          layout.chunk_bytes,
          layout.tail_bytes,
          layout.head_bytes};
}

int Symbols::add_size_of(std::string_view type, std::string_view why_not) {
  std::string name = fmt::format("sizeof({})", type);
  if (!is_identifier(type) || slot(name)) {
    throw Error(fmt::format("'{}' is not an identifier, or is used twice", type));
  }
  if (!why_not.empty()) {
    forbidden_.emplace(name, why_not);
  }
  return add_name(std::move(name));
}

void Symbols::add_layout_of(std::string_view type) {
  for (const char* of : {"bitsof", "group_rows", "blockof", "chunk_bytes", "tailof", "headof"}) {
    add_name(fmt::format("{}({})", of, type));
  }
}

int Symbols::add_forbidden(std::string_view name, std::string_view why) {
  forbid(name, why);
  return add_name(std::string(name));
}

void Symbols::forbid(std::string_view name, std::string_view why) {
  require_free(name);
  forbidden_.emplace(name, why);
}

void Symbols::define(std::string_view name, Expression value) {
  require_free(name);
  definitions_.emplace(name, std::make_shared<const Expression>(std::move(value)));
}

const Expression* Symbols::definition(std::string_view name) const noexcept {
  const auto at = definitions_.find(name);
  return at == definitions_.end() ? nullptr : at->second.get();
}

std::optional<int> Symbols::slot(std::string_view name) const noexcept {
  if (forbidden(name) != nullptr) {
    return std::nullopt;
  }
  const auto at = slots_.find(name);
  return at == slots_.end() ? std::nullopt : std::optional<int>(at->second);
}

const std::string* Symbols::forbidden(std::string_view name) const noexcept {
  const auto at = forbidden_.find(name);
  return at == forbidden_.end() ? nullptr : &at->second;
}

Expression Expression::constant(std::int64_t value) {
  Expression expression;
  expression.text_ = fmt::format("{}", value);
  expression.code_.push_back({Op::push, value});
  return expression;
}

bool Expression::apply_unary(Op op, std::int64_t& value, Arithmetic& why) noexcept {
  switch (op) {
    case Op::negate:
    case Op::abs:
      if (value == kMin) {
        why = Arithmetic::overflow;
        return false;
      }
      value = op == Op::negate || value < 0 ? -value : value;
      return true;
    case Op::logical_not:
      value = value == 0 ? 1 : 0;
      return true;
    case Op::bitwise_not:
      value = ~value;
      return true;
    case Op::to_bool:
      value = value != 0 ? 1 : 0;
      return true;
    case Op::is_pow2:
      value = value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)) ? 1 : 0;
      return true;
    default:  // log2
      if (value <= 0) {
        why = Arithmetic::overflow;
        return false;
      }
      value = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(value))) - 1;
      return true;
  }
}

bool Expression::apply_binary(Op op, std::int64_t& left, std::int64_t right, Arithmetic& why) noexcept {
  bool overflow = false;
  std::int64_t quotient = 0;
  switch (op) {
    case Op::add:
      overflow = __builtin_add_overflow(left, right, &left);
      break;
    case Op::subtract:
      overflow = __builtin_sub_overflow(left, right, &left);
      break;
    case Op::multiply:
      overflow = __builtin_mul_overflow(left, right, &left);
      break;
    case Op::divide:
      return divide(left, right, left, why);
    case Op::modulo:
      if (!divide(left, right, quotient, why)) {
        return false;
      }
      left -= quotient * right;
      return true;
    case Op::ceil_div:
      return ceil_divide(left, right, left, why);
    case Op::round_up:
      if (!ceil_divide(left, right, quotient, why)) {
        return false;
      }
      overflow = __builtin_mul_overflow(quotient, right, &left);
      break;
    case Op::shift_left:
      return shift(true, left, right, why);
    case Op::shift_right:
      return shift(false, left, right, why);
    case Op::less:
      left = left < right ? 1 : 0;
      break;
    case Op::less_equal:
      left = left <= right ? 1 : 0;
      break;
    case Op::greater:
      left = left > right ? 1 : 0;
      break;
    case Op::greater_equal:
      left = left >= right ? 1 : 0;
      break;
    case Op::equal:
      left = left == right ? 1 : 0;
      break;
    case Op::not_equal:
      left = left != right ? 1 : 0;
      break;
    case Op::bitwise_and:
      left &= right;
      break;
    case Op::bitwise_or:
      left |= right;
      break;
    case Op::bitwise_xor:
      left ^= right;
      break;
    case Op::min:
      left = std::min(left, right);
      break;
    default:
      left = std::max(left, right);
      break;
  }
  if (overflow) {
    why = Arithmetic::overflow;
  }
  return !overflow;
}

std::optional<std::int64_t> Expression::try_evaluate(std::span<const std::int64_t> slots,
                                                     Arithmetic* why) const noexcept {
  if (code_.empty()) {
    return 0;
  }
  std::array<std::int64_t, kMaxStack> stack;
  std::size_t top = 0;  // number of values on the stack
  Arithmetic trouble = Arithmetic::fine;
  for (std::size_t at = 0; at < code_.size(); ++at) {
    const Instruction& instruction = code_[at];
    bool good = true;
    if (instruction.op == Op::push) {
      stack[top++] = instruction.operand;
    } else if (instruction.op == Op::load) {
      stack[top++] = slots[static_cast<std::size_t>(instruction.operand)];
    } else if (instruction.op == Op::jump) {
      at = static_cast<std::size_t>(instruction.operand) - 1;
    } else if (instruction.op == Op::jump_if_false) {
      at = stack[--top] == 0 ? static_cast<std::size_t>(instruction.operand) - 1 : at;
    } else if (instruction.op >= Op::abs || instruction.op <= Op::to_bool) {
      good = apply_unary(instruction.op, stack[top - 1], trouble);
    } else {
      --top;
      good = apply_binary(instruction.op, stack[top - 1], stack[top], trouble);
    }
    if (!good) {
      if (why != nullptr) {
        *why = trouble;
      }
      return std::nullopt;
    }
  }
  return stack[0];
}

std::int64_t Expression::evaluate(std::span<const std::int64_t> slots) const {
  Arithmetic why = Arithmetic::fine;
  const auto value = try_evaluate(slots, &why);
  if (!value) {
    throw Error(fmt::format("expression '{}' {}", text_, cause(why)));
  }
  return *value;
}

}  // namespace pascaline
