#include "runtime/device/emulator/kernel_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

struct Token {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view text;
};

// Splits source text into words, literals and single characters; comments and preprocessor lines are left out.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> tokens() {
    while (at_ < text_.size()) {
      step();
    }
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (text_.substr(at_).starts_with("//") || (c == '#' && line_start_)) {
      skip_line();
    } else if (text_.substr(at_).starts_with("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      line_start_ = line_start_ || c == '\n';
      ++at_;
    } else {
      line_start_ = false;
      add_token(token_end());
    }
  }

  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_, text_.size());
  }

  void add_token(std::size_t end) {
    tokens_.push_back({at_, end, text_.substr(at_, end - at_)});
    at_ = end;
  }

  [[nodiscard]] std::size_t token_end() const {
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      return literal_end(at_, c);
    }
    if (!is_word(c)) {
      return at_ + 1;
    }
    std::size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || digit_separator(end))) {
      ++end;
    }
    const bool raw = end < text_.size() && text_[end] == '"' && text_[end - 1] == 'R';
    return raw ? raw_end(end) : end;
  }

  [[nodiscard]] bool digit_separator(std::size_t i) const {
    return text_[i] == '\'' && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && i + 1 < text_.size() &&
           is_word(text_[i + 1]);
  }

  [[nodiscard]] std::size_t literal_end(std::size_t i, char quote) const {
    for (++i; i < text_.size() && text_[i] != quote && text_[i] != '\n'; ++i) {
      i += text_[i] == '\\' ? 1 : 0;
    }
    return std::min(i + 1, text_.size());
  }

  [[nodiscard]] std::size_t raw_end(std::size_t quote) const {
    const std::size_t open = text_.find('(', quote);
    if (open == std::string_view::npos) {
      return text_.size();
    }
    const std::string close = ")" + std::string(text_.substr(quote + 1, open - quote - 1)) + "\"";
    const std::size_t end = text_.find(close, open);
    return end == std::string_view::npos ? text_.size() : end + close.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::vector<Token> tokens_;
};

// The open braces. One that only names a scope (namespace, extern "C") leaves what it holds at file scope.
class Scopes {
 public:
  void see(const std::vector<Token>& tokens, std::size_t i) {
    if (tokens[i].text == "{") {
      open_.push_back(scope_of(tokens, i));
    } else if (tokens[i].text == "}" && !open_.empty()) {
      open_.pop_back();
    }
  }

  [[nodiscard]] bool at_file() const {
    return std::all_of(open_.begin(), open_.end(), [](const auto& scope) { return scope.has_value(); });
  }

  /// "a::b"
  [[nodiscard]] std::string name() const {
    std::string names;
    for (const std::optional<std::string>& scope : open_) {
      if (scope && !scope->empty() && *scope != kOfC) {
        names += (names.empty() ? "" : "::") + *scope;
      }
    }
    return names;
  }

  [[nodiscard]] bool c_linkage() const { return std::ranges::find(open_, kOfC) != open_.end(); }

 private:
  static constexpr const char* kOfC = "\"C\"";

  // The name of the scope that a brace opens, empty for one without; nothing for other braces.
  static std::optional<std::string> scope_of(const std::vector<Token>& tokens, std::size_t brace) {
    std::string name;
    for (std::size_t i = brace; i-- > 0;) {
      const std::string_view text = tokens[i].text;
      if (text == "namespace") {
        return name;
      }
      if (text == kOfC && i > 0 && tokens[i - 1].text == "extern") {
        return kOfC;
      }
      if (text != ":" && !is_word(text.front())) {
        return std::nullopt;
      }
      name = std::string(text == "inline" ? std::string_view() : text) + name;
    }
    return std::nullopt;
  }

  std::vector<std::optional<std::string>> open_;
};

// A declaration of dynamic shared memory, from `extern` to `;`.
struct Declaration {
  std::string type;
  std::string name;
  std::string inner_extents;  // "[32]" of `T name[][32]`
  std::size_t last = 0;       // token index of the `;`
  bool complete = false;
};

std::size_t closing(const std::vector<Token>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    depth += tokens[i].text == "(" ? 1 : 0;
    depth -= tokens[i].text == ")" ? 1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return tokens.size() - 1;
}

bool is_alignment(std::string_view word) {
  constexpr std::array<std::string_view, 4> kWords{"__align__", "alignas", "__attribute__", "__builtin_align__"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

Declaration parse_declaration(const std::vector<Token>& tokens, std::size_t first) {
  Declaration found;
  bool shared = false;
  bool in_extents = false;
  bool first_extent_closed = false;
  for (std::size_t i = first + 1; i < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    if (word == ";") {
      found.last = i;
      found.complete = shared && first_extent_closed;
      return found;
    }
    if (word == "{" || word == "}" || word == "=" || word == "\"C\"") {
      return found;
    }
    if (is_alignment(word) && i + 1 < tokens.size()) {
      i = closing(tokens, i + 1);
    } else if (word == "__shared__") {
      shared = true;
    } else if (in_extents) {
      found.inner_extents += first_extent_closed ? word : std::string_view();
      first_extent_closed = first_extent_closed || word == "]";
    } else if (word == "[") {
      in_extents = true;
    } else {
      found.type += found.name + (found.name.empty() ? "" : " ");
      found.name = word;
    }
  }
  return found;
}

std::string replacement(const Declaration& found, std::string_view original, bool at_file) {
  const std::string pointer = found.type + (found.inner_extents.empty() ? "*" : "(*)" + found.inner_extents);
  // At file scope a thread initialises it at its first use; the address is the same in all its blocks. Its symbol's
  // name tells it from static shared memory.
  std::string text =
      fmt::format("{}auto* const {}{} = ({})::pascaline_dynamic_shared();", at_file ? "static thread_local " : "",
                  found.name, at_file ? fmt::format(" __asm__(\"pascaline_dynamic_{}\")", found.name) : "", pointer);
  text.append(static_cast<std::size_t>(std::count(original.begin(), original.end(), '\n')), '\n');
  return text;
}

// The name of the function that launch bounds at `bounds` belong to.
std::string_view bounded_function(const std::vector<Token>& tokens, std::size_t bounds) {
  for (std::size_t i = closing(tokens, bounds + 1) + 1; i + 1 < tokens.size(); ++i) {
    if (is_alignment(tokens[i].text)) {
      i = closing(tokens, i + 1);
    } else if (tokens[i + 1].text == "(") {
      return tokens[i].text;
    } else if (tokens[i].text == ";" || tokens[i].text == "{") {
      break;
    }
  }
  return {};
}

// The argument list of launch bounds, in one line.
std::string arguments_text(const std::vector<Token>& tokens, std::size_t open) {
  std::string text;
  for (std::size_t i = open, last = closing(tokens, open); i <= last; ++i) {
    text += i > open && tokens[i].begin > tokens[i - 1].end ? " " : "";
    text += tokens[i].text;
  }
  return text;
}

// Whether words before a function's name, which are none of a macro's, declare an ordinary function.
bool is_ordinary(std::string_view word) {
  constexpr std::array<std::string_view, 9> kWords{"extern", "\"C\"",      "static",   "inline",         "void",
                                                   "const",  "__device__", "__host__", "__forceinline__"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// The token after `template <…>`, or `begin` where no template begins.
std::size_t template_end(const std::vector<Token>& tokens, std::size_t begin) {
  if (begin + 1 >= tokens.size() || tokens[begin].text != "template" || tokens[begin + 1].text != "<") {
    return begin;
  }
  int depth = 0;
  for (std::size_t i = begin + 1; i < tokens.size(); ++i) {
    depth += tokens[i].text == "<" ? 1 : tokens[i].text == ">" ? -1 : 0;
    if (depth == 0) {
      return i + 1;
    }
  }
  return tokens.size();
}

// Adds the declarations of a text to the known ones: the first that is a kernel's counts.
void look_for(std::string_view text, std::string_view function, std::string_view given_scope, DeclaredKernel& known) {
  if (text.find(function) == std::string_view::npos) {
    return;
  }
  const std::vector<Token> tokens = Lexer(text).tokens();
  Scopes scopes;
  std::size_t begin = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    scopes.see(tokens, i);
    if (tokens[i].text == ";" || tokens[i].text == "{" || tokens[i].text == "}") {
      begin = i + 1;
    }
    if (tokens[i].text != function || tokens[i + 1].text != "(" || !scopes.at_file()) {
      continue;
    }
    const std::string scope = scopes.name();
    const std::size_t first = template_end(tokens, begin);
    const auto words = std::span(tokens).subspan(first, std::max(first, i) - first);
    const bool global = words.empty() || !std::ranges::all_of(words, is_ordinary, &Token::text);
    if (!("::" + scope).ends_with(std::string(given_scope.empty() ? "" : "::") + std::string(given_scope)) ||
        (known.found && known.global && !global)) {
      continue;
    }
    const bool c_linkage = scopes.c_linkage() || (!words.empty() && std::ranges::find(words, std::string_view("\"C\""),
                                                                                      &Token::text) != words.end());
    if (known.found && known.global == global) {
      known.c_linkage = known.c_linkage && c_linkage;
    } else {
      known = {known.name, scope, global, true, c_linkage, first > begin, text};
    }
  }
}

// Tells an explicit instantiation of `function` that begins at `at`: `template __global__ void k<4>(float*);`
bool instantiates(const std::vector<Token>& tokens, std::size_t at, std::string_view function) {
  if (tokens[at].text != "template" || at + 1 >= tokens.size() || tokens[at + 1].text == "<" ||
      (at > 0 && tokens[at - 1].text == "extern")) {
    return false;
  }
  for (std::size_t i = at; i < tokens.size() && tokens[i].text != ";" && tokens[i].text != "{"; ++i) {
    if (tokens[i].text == function) {
      return true;
    }
  }
  return false;
}

// The brace that opens the body of the function that launch bounds at `bounds` belong to; the end without one.
std::size_t body_of(const std::vector<Token>& tokens, std::size_t bounds) {
  for (std::size_t i = bounds; i < tokens.size() && tokens[i].text != ";"; ++i) {
    if (tokens[i].text == "{") {
      return i;
    }
  }
  return tokens.size();
}

}  // namespace

std::string rewrite_for_emulator(std::string_view text, std::string_view function) {
  const std::vector<Token> tokens = Lexer(text).tokens();
  Scopes scopes;
  std::string out;
  std::size_t copied = 0;
  std::size_t declaration = 0;  // in `out`, where the current one begins
  std::size_t begin = 0;        // its first token
  std::size_t body = tokens.size();
  std::string in_body;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    scopes.see(tokens, i);
    const auto copy_until = [&](std::size_t end, std::size_t next) {
      out += text.substr(copied, end - copied);
      copied = next;
    };
    if (i == 0 || tokens[i - 1].text == ";" || tokens[i - 1].text == "{" || tokens[i - 1].text == "}") {
      copy_until(token.begin, token.begin);
      declaration = out.size();
      begin = i;
    }
    if (i == body) {
      copy_until(token.end, token.end);
      out += in_body;
    }
    if (!function.empty() && scopes.at_file() && instantiates(tokens, i, function)) {
      copy_until(token.begin, token.begin);
      while (i + 1 < tokens.size() && tokens[i].text != ";") {
        ++i;
      }
      const std::string_view gone = text.substr(copied, tokens[i].begin - copied);
      out.append(static_cast<std::size_t>(std::count(gone.begin(), gone.end(), '\n')), '\n');
      copied = tokens[i].begin;
      continue;
    }
    if (token.text == "static" && i + 1 < tokens.size() && tokens[i + 1].text == "__shared__") {
      copy_until(token.begin, token.end);
    }
    if (token.text == "__launch_bounds__" && i + 1 < tokens.size() && !function.empty() && scopes.at_file() &&
        bounded_function(tokens, i) == function) {
      const std::string check = fmt::format("PASCALINE_LAUNCH_BOUNDS{} ", arguments_text(tokens, i + 1));
      const std::size_t after = template_end(tokens, begin);
      if (after == begin) {
        out.insert(declaration, check);
      } else if (after > begin + 3) {  // a specialization, `template <>`, may be another than the launched one
        body = body_of(tokens, i);
        in_body = " " + check;
      }
    }
    if (token.text != "extern") {
      continue;
    }
    const Declaration found = parse_declaration(tokens, i);
    if (found.complete) {
      const std::size_t end = tokens[found.last].end;
      copy_until(token.begin, end);
      out += replacement(found, text.substr(token.begin, end - token.begin), scopes.at_file());
      i = found.last;
    }
  }
  out += text.substr(copied);
  return out;
}

DeclaredKernel declared_kernel(const KernelSource& source, const std::string& function) {
  const std::string_view bare = bare_function(function);
  const std::string_view qualified = std::string_view(function).substr(0, function.find('<'));
  const std::string_view scope =
      qualified.substr(0, qualified.size() - std::min(qualified.size(), bare.size() + (qualified == bare ? 0 : 2)));
  DeclaredKernel kernel{function};
  look_for(source.text, bare, scope, kernel);
  for (auto header = source.headers.begin(); !(kernel.found && kernel.global) && header != source.headers.end();
       ++header) {
    look_for(header->second, bare, scope, kernel);
  }
  if (kernel.found) {
    kernel.name = (kernel.scope.empty() ? "" : kernel.scope + "::") + function.substr(qualified.size() - bare.size());
  }
  return kernel;
}

}  // namespace pascaline
