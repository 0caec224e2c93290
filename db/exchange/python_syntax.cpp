#include "db/exchange/python_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace pascaline {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20U;
constexpr int kMaxNesting = 200;

constexpr std::array<std::string_view, 11> kWords{"and", "or", "not",  "in",    "if",    "else",
                                                  "for", "is", "True", "False", "lambda"};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class PythonParser {
 public:
  explicit PythonParser(std::string_view text) : text_(text) {}

  PythonNode parse() {
    if (text_.size() > kMaxText) {
      throw PythonError(fmt::format("longer than {} characters", kMaxText), 1);
    }
    PythonNode node = expression();
    skip_space();
    if (at_ < text_.size() && text_[at_] == ',') {
      node = tuple(std::move(node), '\0');
    }
    skip_space();
    if (at_ < text_.size()) {
      fail(fmt::format("unexpected '{}'", here()));
    }
    return node;
  }

 private:
  // One level of nesting for as long as it lives.
  class Level {
   public:
    explicit Level(PythonParser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) {
        parser_.fail(fmt::format("nested deeper than {} levels", kMaxNesting));
      }
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --parser_.nesting_; }

   private:
    PythonParser& parser_;
  };

  [[noreturn]] void fail(const std::string& message) const { throw PythonError(message, static_cast<int>(at_) + 1); }

  // The character at the position, all its bytes.
  [[nodiscard]] std::string_view here() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }

  [[nodiscard]] std::string_view peek_word() {
    skip_space();
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || (end > at_ && is_digit(text_[end])))) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  bool accept_word(std::string_view word) {
    if (peek_word() != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) {
      return false;
    }
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) {
      fail(at_ >= text_.size() ? fmt::format("expected '{}' before the end", token)
                               : fmt::format("expected '{}' before '{}'", token, here()));
    }
  }

  [[nodiscard]] PythonNode node_here(PythonKind kind) {
    skip_space();
    PythonNode node;
    node.kind = kind;
    node.column = static_cast<int>(at_) + 1;
    return node;
  }

  PythonNode expression() {
    const Level level(*this);
    PythonNode conditional = node_here(PythonKind::conditional);
    PythonNode value = disjunction();
    if (!accept_word("if")) {
      return value;
    }
    PythonNode condition = disjunction();
    if (!accept_word("else")) {
      fail("expected 'else'");
    }
    conditional.children.push_back(std::move(value));
    conditional.children.push_back(std::move(condition));
    conditional.children.push_back(expression());
    return conditional;
  }

  PythonNode disjunction() {
    return joined(PythonKind::disjunction, "or",
                  [this] { return joined(PythonKind::conjunction, "and", [this] { return negation(); }); });
  }

  template <typename Operand>
  PythonNode joined(PythonKind kind, std::string_view word, const Operand& operand) {
    PythonNode all = node_here(kind);
    all.children.push_back(operand());
    while (accept_word(word)) {
      all.children.push_back(operand());
    }
    return all.children.size() > 1 ? std::move(all) : PythonNode(std::move(all.children.front()));
  }

  PythonNode negation() {
    const Level level(*this);
    PythonNode node = node_here(PythonKind::unary);
    if (!accept_word("not")) {
      return comparison();
    }
    node.text = "not";
    node.children.push_back(negation());
    return node;
  }

  PythonNode comparison() {
    PythonNode chain = node_here(PythonKind::comparison);
    chain.children.push_back(bits(0));
    while (const auto found = comparison_operator()) {
      chain.operators.push_back(*found);
      chain.children.push_back(bits(0));
    }
    return chain.operators.empty() ? PythonNode(std::move(chain.children.front())) : std::move(chain);
  }

  std::optional<std::string> comparison_operator() {
    for (const std::string_view token : {"<=", ">=", "==", "!=", "<", ">"}) {
      skip_space();
      if (text_.substr(at_).starts_with("<<") || text_.substr(at_).starts_with(">>")) {
        fail("shifts cannot be used");
      }
      if (accept(token)) {
        return std::string(token);
      }
    }
    if (accept_word("in")) {
      return "in";
    }
    const std::size_t start = at_;
    if (accept_word("not")) {
      if (accept_word("in")) {
        return "not in";
      }
      at_ = start;
      fail("expected 'not in'");
    }
    if (peek_word() == "is") {
      fail("'is' cannot be used; compare with ==");
    }
    return std::nullopt;
  }

  // `|` loosest, then `^`, `&`, sums, products.
  PythonNode bits(int tightness) {
    constexpr std::array<std::string_view, 3> kBits{"|", "^", "&"};
    const auto operand = [&] { return tightness < 2 ? bits(tightness + 1) : sum(); };
    PythonNode left = operand();
    const std::string_view token = kBits[static_cast<std::size_t>(tightness)];
    for (;;) {
      PythonNode node = node_here(PythonKind::binary);
      if (!accept(token)) {
        return left;
      }
      left = binary(std::move(node), token, std::move(left), operand());
    }
  }

  // Operators that bind to the left nest without brackets.
  void count_operator() {
    if (++operators_ > kMaxOperators) {
      fail(fmt::format("has more than {} operators", kMaxOperators));
    }
  }

  PythonNode binary(PythonNode node, std::string_view token, PythonNode left, PythonNode right) {
    count_operator();
    node.text = token;
    node.children.push_back(std::move(left));
    node.children.push_back(std::move(right));
    return node;
  }

  PythonNode sum() {
    PythonNode left = product();
    for (;;) {
      PythonNode node = node_here(PythonKind::binary);
      const char token = at_ < text_.size() ? text_[at_] : '\0';
      if (token != '+' && token != '-') {
        return left;
      }
      ++at_;
      left = binary(std::move(node), std::string_view(&token, 1), std::move(left), product());
    }
  }

  PythonNode product() {
    PythonNode left = factor();
    for (;;) {
      PythonNode node = node_here(PythonKind::binary);
      if (text_.substr(at_).starts_with("**")) {
        return left;
      }
      std::string_view token;
      for (const std::string_view candidate : {"//", "/", "%", "*"}) {
        if (token.empty() && accept(candidate)) {
          token = candidate;
        }
      }
      if (token.empty()) {
        return left;
      }
      left = binary(std::move(node), token, std::move(left), factor());
    }
  }

  PythonNode factor() {
    const Level level(*this);
    PythonNode node = node_here(PythonKind::unary);
    if (accept("~")) {
      fail("'~' cannot be used");
    }
    if (accept("-") || accept("+")) {
      node.text = text_[at_ - 1];
      node.children.push_back(factor());
      return node;
    }
    PythonNode base = postfix();
    PythonNode power = node_here(PythonKind::binary);
    if (!accept("**")) {
      return base;
    }
    return binary(std::move(power), "**", std::move(base), factor());  // binds to the right, and a sign behind it
  }

  PythonNode postfix() {
    PythonNode value = primary();
    for (;;) {
      PythonNode node = node_here(PythonKind::subscript);
      if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == '(')) {
        fail("only functions can be called, by their names, and nothing has members here");
      }
      if (!accept("[")) {
        return value;
      }
      const Level level(*this);
      node.children.push_back(std::move(value));
      node.children.push_back(expression());
      expect("]");
      value = std::move(node);
      count_operator();
    }
  }

  PythonNode primary() {
    skip_space();
    if (at_ >= text_.size()) {
      fail("expected a value before the end");
    }
    const char next = text_[at_];
    if (is_digit(next) || next == '.') {
      return number();
    }
    if (next == '"' || next == '\'') {
      return string();
    }
    if (is_letter(next)) {
      return name();
    }
    if (next == '(' || next == '[') {
      return bracketed();
    }
    fail(fmt::format("expected a value before '{}'", here()));
  }

  // A list, a tuple, a comprehension, or an expression in parentheses.
  PythonNode bracketed() {
    const Level level(*this);
    PythonNode list = node_here(PythonKind::list);
    const bool square = text_[at_++] == '[';
    const std::string_view end = square ? "]" : ")";
    if (accept(end)) {
      return list;
    }
    PythonNode first = expression();
    if (peek_word() == "for") {
      PythonNode all = comprehension(std::move(first));
      expect(end);
      return all;
    }
    if (accept(end)) {
      if (!square) {
        return first;
      }
      list.children.push_back(std::move(first));
      return list;
    }
    first = tuple(std::move(first), end.front());
    expect(end);
    first.column = list.column;
    return first;
  }

  // Further elements behind the first, up to but without `end` (or the text's end).
  PythonNode tuple(PythonNode first, char end) {
    PythonNode list = node_here(PythonKind::list);
    list.column = first.column;
    list.children.push_back(std::move(first));
    while (accept(",")) {
      skip_space();
      if (at_ >= text_.size() || text_[at_] == end) {
        break;  // a comma behind the last one
      }
      list.children.push_back(expression());
    }
    return list;
  }

  PythonNode comprehension(PythonNode element) {
    PythonNode all = node_here(PythonKind::comprehension);
    all.children.push_back(std::move(element));
    for (;;) {
      PythonNode clause = node_here(PythonKind::for_clause);
      if (accept_word("for")) {
        skip_space();
        clause.text = peek_word();
        if (clause.text.empty() || std::find(kWords.begin(), kWords.end(), clause.text) != kWords.end()) {
          fail("expected the name of a variable");
        }
        at_ += clause.text.size();
        if (!accept_word("in")) {
          fail("expected 'in'");
        }
      } else if (accept_word("if")) {
        clause.kind = PythonKind::if_clause;
      } else {
        return all;
      }
      clause.children.push_back(disjunction());
      all.children.push_back(std::move(clause));
      if (all.children.size() > kMaxClauses) {
        fail("has too many clauses");
      }
    }
  }

  PythonNode name() {
    PythonNode node = node_here(PythonKind::name);
    node.text = peek_word();
    if (node.text == "True" || node.text == "False") {
      node.kind = PythonKind::boolean;
      node.integer = node.text == "True" ? 1 : 0;
    } else if (std::find(kWords.begin(), kWords.end(), node.text) != kWords.end()) {
      fail(fmt::format("expected a value before '{}'", node.text));
    }
    at_ += node.text.size();
    if (node.kind == PythonKind::name && accept("(")) {
      const Level level(*this);
      node.kind = PythonKind::call;
      if (accept(")")) {
        return node;
      }
      PythonNode first = expression();
      if (peek_word() == "for") {
        node.children.push_back(comprehension(std::move(first)));
      } else {
        node.children = std::move(tuple(std::move(first), ')').children);
      }
      expect(")");
    }
    return node;
  }

  PythonNode number() {
    PythonNode node = node_here(PythonKind::integer);
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const bool hexadecimal = text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X");
    const char* const digits = begin + (hexadecimal ? 2 : 0);
    auto [stop, code] = std::from_chars(digits, end, node.integer, hexadecimal ? 16 : 10);
    if (stop != end && !hexadecimal && (*stop == '.' || *stop == 'e' || *stop == 'E')) {
      node.kind = PythonKind::real;
      const auto real = std::from_chars(begin, end, node.real);
      stop = real.ptr;
      code = real.ec;
    }
    if (code == std::errc::result_out_of_range) {
      fail("the number is too large");
    }
    if (code != std::errc() || (stop != end && (is_letter(*stop) || is_digit(*stop) || *stop == '.'))) {
      fail("not a number");
    }
    at_ += static_cast<std::size_t>(stop - begin);
    return node;
  }

  PythonNode string() {
    PythonNode node = node_here(PythonKind::text);
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') {
        constexpr std::string_view kLetters = "nt\\'\"";
        constexpr std::string_view kMeanings = "\n\t\\'\"";
        const std::size_t letter = at_ + 1 < text_.size() ? kLetters.find(text_[at_ + 1]) : std::string_view::npos;
        if (letter == std::string_view::npos) {
          fail("this escape in a text is not known");
        }
        node.text += kMeanings[letter];
        at_ += 2;
      } else {
        node.text += text_[at_++];
      }
    }
    if (at_ >= text_.size()) {
      fail("the text has no closing quote");
    }
    ++at_;
    return node;
  }

  static constexpr std::size_t kMaxClauses = 16;
  static constexpr int kMaxOperators = 1000;

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int operators_ = 0;
};

}  // namespace

PythonNode parse_python(std::string_view text) { return PythonParser(text).parse(); }

}  // namespace pascaline
