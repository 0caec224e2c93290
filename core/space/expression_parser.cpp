#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/space/expression.hpp"

namespace pascaline {

/// Recursive descent with precedence climbing; emits stack code as it goes.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const Symbols& symbols) : text_(text), symbols_(symbols) {}

  Expression parse() {
    if (text_.size() > kMaxLength) {
      throw ExpressionError(fmt::format("expression is longer than {} characters", kMaxLength), 1);
    }
    ternary();
    if (!at_end()) {
      fail(fmt::format("unexpected '{}'", here()));
    }
    out_.text_ = std::string(text_);
    std::sort(out_.used_.begin(), out_.used_.end());
    out_.used_.erase(std::unique(out_.used_.begin(), out_.used_.end()), out_.used_.end());
    return std::move(out_);
  }

 private:
  using Op = Expression::Op;
  static constexpr std::size_t kMaxLength = 4096;
  static constexpr int kMaxNesting = 64;
  static constexpr std::size_t kMaxInstructions = 16384;

  struct BinaryOperator {
    std::string_view token;
    int precedence;
    Op op;
  };
  // Longest tokens first, so that '<=' is not read as '<'. '&&' and '||' are handled apart: they jump.
  static constexpr std::array<BinaryOperator, 16> kOperators{{
      {"<<", 8, Op::shift_left},
      {">>", 8, Op::shift_right},
      {"<=", 7, Op::less_equal},
      {">=", 7, Op::greater_equal},
      {"==", 6, Op::equal},
      {"!=", 6, Op::not_equal},
      {"<", 7, Op::less},
      {">", 7, Op::greater},
      {"+", 9, Op::add},
      {"-", 9, Op::subtract},
      {"*", 10, Op::multiply},
      {"/", 10, Op::divide},
      {"%", 10, Op::modulo},
      {"&", 5, Op::bitwise_and},
      {"^", 4, Op::bitwise_xor},
      {"|", 3, Op::bitwise_or},
  }};
  static constexpr int kAndPrecedence = 2;
  static constexpr int kOrPrecedence = 1;

  struct Function {
    std::string_view name;
    int arguments;
    Op op;
  };
  static constexpr std::array<Function, 7> kFunctions{{
      {"min", 2, Op::min},
      {"max", 2, Op::max},
      {"ceil_div", 2, Op::ceil_div},
      {"round_up", 2, Op::round_up},
      {"abs", 1, Op::abs},
      {"is_pow2", 1, Op::is_pow2},
      {"log2", 1, Op::log2},
  }};

  [[noreturn]] void fail(const std::string& message) const {
    throw ExpressionError(message, static_cast<int>(position_) + 1);
  }

  // The character at the position; all bytes of it if it is one of UTF-8, so that messages stay valid text.
  [[nodiscard]] std::string_view here() const {
    std::size_t end = position_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) {
      ++end;
    }
    return text_.substr(position_, end - position_);
  }

  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0) {
      ++position_;
    }
  }

  bool at_end() {
    skip_space();
    return position_ == text_.size();
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(position_).starts_with(token)) {
      return false;
    }
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) {
      fail(at_end() ? fmt::format("expected '{}' before the end", token)
                    : fmt::format("expected '{}' before '{}'", token, here()));
    }
  }

  void enter() {
    if (++nesting_ > kMaxNesting) {
      fail(fmt::format("nested deeper than {} levels", kMaxNesting));
    }
  }

  // Makes room for `values` more.
  void require_stack(int values) {
    out_.stack_ = std::max(out_.stack_, depth_ + values);
    if (out_.stack_ > Expression::kMaxStack) {
      fail("needs too many intermediate values");
    }
  }

  void push(Op op, std::int64_t operand) {
    require_stack(1);
    ++depth_;
    out_.code_.push_back({op, operand});
  }

  // Whether its last step compares, and is not the last one of a branch only.
  static bool is_comparison(const Expression& other) {
    const Op last = other.code_.back().op;
    const auto end = static_cast<std::int64_t>(other.code_.size());
    return last >= Op::less && last <= Op::not_equal &&
           std::none_of(other.code_.begin(), other.code_.end(), [&](const Expression::Instruction& instruction) {
             return instruction.op == Op::jump && instruction.operand == end;
           });
  }

  // Puts the whole of another expression in, as if it stood there in parentheses.
  void insert(const Expression& other) {
    if (out_.code_.size() + other.code_.size() > kMaxInstructions) {
      fail("too long once the names it uses are expanded");
    }
    require_stack(other.stack_);
    ++depth_;
    const auto base = static_cast<std::int64_t>(out_.code_.size());
    for (Expression::Instruction instruction : other.code_) {
      instruction.operand += instruction.op == Op::jump || instruction.op == Op::jump_if_false ? base : 0;
      out_.code_.push_back(instruction);
    }
    out_.used_.insert(out_.used_.end(), other.used_.begin(), other.used_.end());
  }

  void emit(Op op, int pops) {
    depth_ -= pops;
    out_.code_.push_back({op, 0});
  }

  std::size_t emit_jump(Op op) {
    depth_ -= op == Op::jump_if_false ? 1 : 0;
    out_.code_.push_back({op, 0});
    return out_.code_.size() - 1;
  }

  void land(std::size_t jump) { out_.code_[jump].operand = static_cast<std::int64_t>(out_.code_.size()); }

  void ternary() {
    enter();
    binary(kOrPrecedence);
    if (accept("?")) {
      const std::size_t to_else = emit_jump(Op::jump_if_false);
      ternary();
      --depth_;  // only one of the branches leaves its value
      const std::size_t to_end = emit_jump(Op::jump);
      land(to_else);
      expect(":");
      ternary();
      compared_ = {};
      land(to_end);
    }
    --nesting_;
  }

  // `a && b`: a; if false → 0; b as a bool. `a || b`: a; if false → b as a bool; 1.
  void logical(bool is_and) {
    const std::size_t to_false = emit_jump(Op::jump_if_false);
    if (is_and) {
      binary(kAndPrecedence + 1);
      emit(Op::to_bool, 0);
    } else {
      push(Op::push, 1);
    }
    --depth_;
    const std::size_t to_end = emit_jump(Op::jump);
    land(to_false);
    if (is_and) {
      push(Op::push, 0);
    } else {
      binary(kOrPrecedence + 1);
      emit(Op::to_bool, 0);
    }
    land(to_end);
  }

  const BinaryOperator* peek_operator(int least) {
    skip_space();
    const std::string_view rest = text_.substr(position_);
    for (const BinaryOperator& candidate : kOperators) {
      if (rest.starts_with(candidate.token)) {
        return candidate.precedence >= least ? &candidate : nullptr;
      }
    }
    return nullptr;
  }

  // An operand that is a comparison: where it stands in the text, with and without its parentheses.
  struct Compared {
    int precedence = 0;  // of its operator; 0: it is no comparison
    bool enclosed = false;
    std::size_t outer_begin = 0;
    std::size_t begin = 0;
    std::size_t operator_begin = 0;
    std::size_t operator_end = 0;
    std::size_t end = 0;
    std::size_t outer_end = 0;
  };
  static constexpr int kEqualityPrecedence = 6;
  static constexpr int kOrderPrecedence = 7;

  // The place after the last character before `end` that is no space.
  [[nodiscard]] std::size_t before_space(std::size_t end) const {
    while (end > 0 && std::isspace(static_cast<unsigned char>(text_[end - 1])) != 0) {
      --end;
    }
    return end;
  }

  [[nodiscard]] std::string trimmed(std::size_t begin, std::size_t end) const {
    end = before_space(end);
    while (begin < end && std::isspace(static_cast<unsigned char>(text_[begin])) != 0) {
      ++begin;
    }
    return std::string(text_.substr(begin, end - begin));
  }

  [[nodiscard]] static bool is_chain(const Compared& left, const BinaryOperator& by, const Compared& right) {
    const bool continued = !left.enclosed && left.precedence == by.precedence;
    const bool ordered = by.precedence == kOrderPrecedence;
    return continued || (ordered && (left.precedence != 0) != (right.precedence != 0));
  }

  // In C `a < b < c`, as `(a < b) < c`, compares 0 or 1 with c, which nobody means. Two comparisons may be ordered:
  // `(a < b) <= (c < d)` is true where the second follows from the first.
  [[noreturn]] void refuse_chain(const Compared& left, std::size_t begin, std::size_t by, const Compared& right) {
    const auto text = [this](std::size_t from, std::size_t to) { return std::string(text_.substr(from, to - from)); };
    const Compared& inner = left.precedence != 0 ? left : right;
    std::string first = trimmed(inner.begin, inner.end);
    std::string second = trimmed(inner.operator_end, inner.end) + text(inner.outer_end, before_space(position_));
    if (left.precedence == 0) {
      second = std::move(first);
      first = text(begin, inner.outer_begin) + trimmed(inner.begin, inner.operator_begin);
    }
    position_ = by;
    fail(inner.operator_end == 0
             ? fmt::format("comparisons cannot be chained; {} is 0 or 1, so join comparisons with &&",
                           trimmed(inner.outer_begin, inner.outer_end))
             : fmt::format("comparisons cannot be chained; write {} && {}", first, second));
  }

  void binary(int least) {
    skip_space();
    const std::size_t begin = position_;
    unary();
    for (;;) {
      skip_space();
      const std::string_view rest = text_.substr(position_);
      if (rest.starts_with("&&") || rest.starts_with("||")) {
        const bool is_and = rest.front() == '&';
        if ((is_and ? kAndPrecedence : kOrPrecedence) < least) {
          return;
        }
        position_ += 2;
        logical(is_and);
        compared_ = {};
        continue;
      }
      const BinaryOperator* found = peek_operator(least);
      if (found == nullptr) {
        return;
      }
      const std::size_t token = position_;
      const Compared left = compared_;
      position_ += found->token.size();
      const std::size_t end = position_;
      binary(found->precedence + 1);
      if (is_chain(left, *found, compared_)) {
        refuse_chain(left, begin, token, compared_);
      }
      const bool compares = found->precedence == kEqualityPrecedence || found->precedence == kOrderPrecedence;
      const std::size_t last = before_space(position_);
      compared_ = compares ? Compared{found->precedence, false, begin, begin, token, end, last, last} : Compared{};
      emit(found->op, 1);
    }
  }

  void unary() {
    enter();
    skip_space();
    const char next = position_ < text_.size() ? text_[position_] : '\0';
    const bool not_equal = text_.substr(position_).starts_with("!=");
    if (next == '-' || next == '~' || next == '+' || (next == '!' && !not_equal)) {
      ++position_;
      unary();
      compared_ = {};
      if (next != '+') {
        emit(next == '-' ? Op::negate : next == '~' ? Op::bitwise_not : Op::logical_not, 0);
      }
    } else {
      primary();
    }
    --nesting_;
  }

  void primary() {
    if (at_end()) {
      fail("expected a value before the end");
    }
    const auto next = static_cast<unsigned char>(text_[position_]);
    const std::size_t begin = position_;
    compared_ = {};
    if (accept("(")) {
      ternary();
      expect(")");
      compared_.enclosed = true;
      compared_.outer_begin = begin;
      compared_.outer_end = position_;
    } else if (std::isdigit(next) != 0) {
      number();
    } else if (std::isalpha(next) != 0 || next == '_') {
      name();
    } else {
      fail(fmt::format("expected a value before '{}'", here()));
    }
  }

  void number() {
    const bool hexadecimal = text_.substr(position_).starts_with("0x") || text_.substr(position_).starts_with("0X");
    const std::size_t start = position_;
    if (!hexadecimal && text_[position_] == '0' && position_ + 1 < text_.size() &&
        std::isdigit(static_cast<unsigned char>(text_[position_ + 1])) != 0) {
      fail("a number must not begin with 0 (octal literals are not part of the language)");
    }
    position_ += hexadecimal ? 2 : 0;
    std::int64_t value = 0;
    bool any = false;
    for (; position_ < text_.size(); ++position_) {
      const auto c = static_cast<unsigned char>(text_[position_]);
      if (std::isalnum(c) == 0 && c != '_' && c != '.') {
        break;
      }
      const int digit = std::isdigit(c) != 0 ? c - '0' : std::isxdigit(c) != 0 ? std::tolower(c) - 'a' + 10 : 99;
      if (digit >= (hexadecimal ? 16 : 10)) {
        fail("not an integer literal");
      }
      if (__builtin_mul_overflow(value, hexadecimal ? 16 : 10, &value) ||
          __builtin_add_overflow(value, digit, &value)) {
        position_ = start;
        fail("the number does not fit 64 bits");
      }
      any = true;
    }
    if (!any) {
      fail("expected hexadecimal digits");
    }
    push(Op::push, value);
  }

  std::string_view identifier() {
    skip_space();
    const std::size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 || text_[position_] == '_')) {
      ++position_;
    }
    return text_.substr(start, position_ - start);
  }

  void load(std::string_view symbol, std::size_t start) {
    if (const Expression* definition = symbols_.definition(symbol)) {
      insert(*definition);
      if (is_comparison(*definition)) {
        compared_ = {.precedence = kOrderPrecedence, .enclosed = true, .outer_begin = start, .outer_end = position_};
      }
      return;
    }
    const auto slot = symbols_.slot(symbol);
    if (!slot) {
      const std::string* why = symbols_.forbidden(symbol);
      position_ = start;
      fail(why != nullptr ? fmt::format("'{}' cannot be used here: {}", symbol, *why)
                          : fmt::format("unknown name '{}'", symbol));
    }
    push(Op::load, *slot);
    out_.used_.push_back(*slot);
  }

  void name() {
    const std::size_t start = position_;
    const std::string_view word = identifier();
    if (word == "sizeof" || word == "bitsof" || word == "blockof" || word == "tailof") {
      expect("(");
      const std::string type(identifier());
      expect(")");
      load(std::string(word) + "(" + type + ")", start);
      return;
    }
    if (word == "matrix_bytes") {
      matrix_bytes();
      return;
    }
    const auto function =
        std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& entry) { return entry.name == word; });
    if (function != kFunctions.end() && accept("(")) {
      for (int i = 0; i < function->arguments; ++i) {
        if (i > 0) {
          expect(",");
        }
        ternary();
      }
      expect(")");
      compared_ = {};
      emit(function->op, function->arguments - 1);
      return;
    }
    load(word, start);
  }

  // As MatrixLayout::bytes.
  void matrix_bytes() {
    expect("(");
    const std::size_t start = position_;
    const std::string type(identifier());
    const auto of_type = [&](const char* what, Op op) {
      load(fmt::format("{}({})", what, type), start);
      emit(op, 1);
    };
    expect(",");
    ternary();
    of_type("group_rows", Op::ceil_div);
    expect(",");
    ternary();
    of_type("blockof", Op::ceil_div);
    of_type("chunk_bytes", Op::multiply);
    of_type("tailof", Op::add);
    emit(Op::multiply, 1);
    of_type("headof", Op::add);
    compared_ = {};
    expect(")");
  }

  std::string_view text_;
  const Symbols& symbols_;
  std::size_t position_ = 0;
  Compared compared_;  // the operand read last
  int nesting_ = 0;
  int depth_ = 0;
  Expression out_;
};

Expression Expression::parse(std::string_view text, const Symbols& symbols) {
  return ExpressionParser(text, symbols).parse();
}

}  // namespace pascaline
