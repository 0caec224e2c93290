#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace pascaline {

class Expression;

/// Slots of a type variable: what `sizeof` gives (0 for a format of matrices, of which none may be asked), bits of a
/// value, and its MatrixLayout.
inline constexpr std::size_t kTypeSlots = 7;
[[nodiscard]] std::array<std::int64_t, kTypeSlots> type_slots(ElementType type);

/// Names an expression may use. A name's slot is its index in the values given to `evaluate`.
class Symbols {
 public:
  /// Adds a name and returns its slot; throws Error if it is taken, is a word of the language or is no identifier.
  int add(std::string_view name);
  /// Adds `sizeof(type)` for a type variable and returns its slot; throws as `add`. With a reason, using it is an error
  /// that says so.
  int add_size_of(std::string_view type, std::string_view why_not = {});
  /// Adds what else expressions may ask of it, in the order of `type_slots`; throws as `add`.
  void add_layout_of(std::string_view type);
  /// Takes a slot for a name that may not be used in expressions; throws as `add`.
  int add_forbidden(std::string_view name, std::string_view why);
  /// Adds a name that exists but may not be used in expressions; using it is an error that says `why`.
  void forbid(std::string_view name, std::string_view why);
  /// Adds a name that stands for an expression over these symbols; throws as `add`.
  void define(std::string_view name, Expression value);
  [[nodiscard]] std::optional<int> slot(std::string_view name) const noexcept;
  /// What a defined name stands for, or nullptr.
  [[nodiscard]] const Expression* definition(std::string_view name) const noexcept;
  [[nodiscard]] const std::string* forbidden(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  void require_free(std::string_view name) const;
  int add_name(std::string name);

  std::vector<std::string> names_;                 // by slot
  std::map<std::string, int, std::less<>> slots_;  // of the names
  std::map<std::string, std::string, std::less<>> forbidden_;
  std::map<std::string, std::shared_ptr<const Expression>, std::less<>> definitions_;
};

/// An expression's text is wrong; `column` is 1-based.
class ExpressionError : public std::runtime_error {
 public:
  ExpressionError(const std::string& message, int column) : std::runtime_error(message), column_(column) {}
  [[nodiscard]] int column() const noexcept { return column_; }

 private:
  int column_;
};

/// Why an evaluation gave no value.
enum class Arithmetic : std::uint8_t { fine, division_by_zero, overflow, bad_shift };

/// A C integer expression over named 64-bit values: decimal and hexadecimal literals, `+ - * / %`, shifts,
/// comparisons, `& ^ | ~`, `&& || !` and `?:` (short-circuit), parentheses, names that stand for other expressions, and
/// the functions min, max, abs, ceil_div, round_up, is_pow2, log2 (rounded down). Of a type variable: `sizeof(NAME)`,
/// `bitsof(NAME)` (of a value without scales), `blockof(NAME)` (columns that a matrix of it is padded to),
/// `tailof(NAME)` (bytes that a group of rows has beside its columns) and `matrix_bytes(NAME, rows, columns)`. Division
/// truncates as in C; overflow and division by zero have no value instead of undefined behaviour. Depth of nesting is
/// bounded.
class Expression {
 public:
  /// Parses `text`; throws ExpressionError with the column.
  static Expression parse(std::string_view text, const Symbols& symbols);
  /// The constant `value`.
  static Expression constant(std::int64_t value);
  /// The constant 0.
  Expression() = default;

  /// The value over `slots` (as many as the symbols had), or nothing with the cause in `*why`. Never throws or
  /// allocates.
  [[nodiscard]] std::optional<std::int64_t> try_evaluate(std::span<const std::int64_t> slots,
                                                         Arithmetic* why = nullptr) const noexcept;
  /// As above; throws Error naming the expression if it has no value.
  [[nodiscard]] std::int64_t evaluate(std::span<const std::int64_t> slots) const;

  /// Slots read anywhere in it, ascending.
  [[nodiscard]] const std::vector<int>& used_slots() const noexcept { return used_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  friend class ExpressionParser;
  enum class Op : std::uint8_t {
    push,           // operand: the constant
    load,           // operand: the slot
    jump,           // operand: target
    jump_if_false,  // pops; operand: target
    negate,
    logical_not,
    bitwise_not,
    to_bool,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    shift_left,
    shift_right,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    min,
    max,
    ceil_div,
    round_up,
    abs,
    is_pow2,
    log2,
  };
  struct Instruction {
    Op op;
    std::int64_t operand;
  };
  static constexpr int kMaxStack = 64;

  static bool apply_unary(Op op, std::int64_t& value, Arithmetic& why) noexcept;
  static bool apply_binary(Op op, std::int64_t& left, std::int64_t right, Arithmetic& why) noexcept;

  std::string text_;
  std::vector<Instruction> code_;
  std::vector<int> used_;
  int stack_ = 1;  // values it needs room for
};

}  // namespace pascaline
