#include "runtime/device/macro_expansion.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/space/code_words.hpp"

namespace pascaline {

// One expansion: each macro has the definition that `chosen` says, or its first. Hides in each token the macros that it
// came from (Prosser's algorithm, which the C standard's text follows).
class Expansion {
 public:
  using Tokens = std::vector<CodeToken>;

  Expansion(const PossibleMacros& macros, const std::string& file) : macros_(macros), file_("\"" + file + "\"") {}

  Tokens expand(Tokens tokens) {
    std::deque<CodeToken> rest(tokens.begin(), tokens.end());
    Tokens out;
    while (!rest.empty()) {
      CodeToken token = std::move(rest.front());
      rest.pop_front();
      token.text = token.text == "__FILE__" ? file_ : token.text;
      const PossibleMacros::Definition* const definition = definition_of(token);
      std::optional<std::vector<Tokens>> arguments{std::in_place};
      if (definition != nullptr && definition->has_arguments) {
        arguments = take_arguments(rest);
      }
      if (definition == nullptr || !arguments || ++steps_ > kMaxSteps) {
        out.push_back(std::move(token));
        continue;
      }
      Tokens body = substituted(*definition, std::move(*arguments));
      for (auto part = body.rbegin(); part != body.rend(); ++part) {
        part->hidden.push_back(token.text);
        part->hidden.insert(part->hidden.end(), token.hidden.begin(), token.hidden.end());
        rest.push_front(std::move(*part));
      }
      if (!body.empty()) {
        rest.front().spaced = token.spaced;
      }
    }
    return out;
  }

  // Goes on to the next choice of definitions; false where each was tried.
  bool next() {
    steps_ = 0;
    while (!chosen_.empty()) {
      Choice& last = chosen_.back();
      if (++last.index < last.count) {
        return true;
      }
      chosen_.pop_back();
    }
    return false;
  }

 private:
  static constexpr int kMaxSteps = 2000;

  struct Choice {
    std::string macro;
    std::size_t index = 0;
    std::size_t count = 0;
  };

  const PossibleMacros::Definition* definition_of(const CodeToken& token) {
    const auto found = macros_.macros_.find(token.text);
    if (found == macros_.macros_.end() ||
        std::find(token.hidden.begin(), token.hidden.end(), token.text) != token.hidden.end()) {
      return nullptr;
    }
    if (found->second.size() == 1) {
      return &found->second.front();
    }
    auto choice =
        std::find_if(chosen_.begin(), chosen_.end(), [&](const Choice& one) { return one.macro == token.text; });
    if (choice == chosen_.end()) {
      choice = chosen_.insert(choice, {token.text, 0, found->second.size()});
    }
    return &found->second[choice->index];
  }

  // Between parentheses, which are taken too; nothing, and nothing taken, if there are none.
  static std::optional<std::vector<Tokens>> take_arguments(std::deque<CodeToken>& rest) {
    if (rest.empty() || rest.front().text != "(") {
      return std::nullopt;
    }
    std::vector<Tokens> arguments(1);
    int depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const std::string& text = rest[i].text;
      depth += text == "(" ? 1 : text == ")" ? -1 : 0;
      if (depth == 0) {
        rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return arguments;
      }
      if (depth == 1 && text == ",") {
        arguments.emplace_back();
      } else if (i > 0) {
        arguments.back().push_back(rest[i]);
      }
    }
    return std::nullopt;
  }

  Tokens substituted(const PossibleMacros::Definition& definition, std::vector<Tokens> arguments) {
    const std::vector<std::string>& parameters = definition.parameters;
    while (definition.variadic && arguments.size() > parameters.size()) {
      Tokens& last = arguments[parameters.size() - 1];
      last.push_back({","});
      last.insert(last.end(), arguments[parameters.size()].begin(), arguments[parameters.size()].end());
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(parameters.size()));
    }
    const auto argument_of = [&](const CodeToken& token) -> const Tokens* {
      const auto at =
          static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), token.text) - parameters.begin());
      return at < parameters.size() && at < arguments.size() ? &arguments[at] : nullptr;
    };
    const Tokens& body = definition.body;
    Tokens out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const bool quotes = body[i].text == "#" && i + 1 < body.size() && argument_of(body[i + 1]) != nullptr;
      if (quotes) {
        out.push_back({quoted(*argument_of(body[i + 1])), body[i].spaced});
        ++i;
        continue;
      }
      const bool pastes = body[i].text == "##" && i > 0 && i + 1 < body.size();
      const CodeToken& token = pastes ? body[++i] : body[i];
      const Tokens* const argument = argument_of(token);
      const bool pasted_next = i + 1 < body.size() && body[i + 1].text == "##";
      Tokens parts = argument == nullptr ? Tokens{token} : pastes || pasted_next ? *argument : expand(*argument);
      if (!parts.empty()) {
        parts.front().spaced = token.spaced;
      }
      if (pastes && !out.empty() && !parts.empty()) {
        out.back().text += parts.front().text;
        parts.erase(parts.begin());
      }
      out.insert(out.end(), parts.begin(), parts.end());
    }
    return out;
  }

  static std::string quoted(const Tokens& tokens) {
    std::string text = "\"";
    for (const CodeToken& token : tokens) {
      text += (token.spaced && &token != &tokens.front() ? " " : "") + token.text;
    }
    return text + "\"";
  }

  const PossibleMacros& macros_;
  std::string file_;
  std::vector<Choice> chosen_;
  int steps_ = 0;
};

void PossibleMacros::define(std::string_view text) {
  const std::size_t end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
  const std::string name(text.substr(0, end));
  Definition definition;
  if (end < text.size() && text[end] == '(') {
    const std::size_t close = std::min(text.find(')', end), text.size());
    definition.has_arguments = true;
    bool named = false;
    for (CodeToken& token : tokens_of(text.substr(end + 1, close - end - 1))) {
      const bool dots = token.text == "." && !std::exchange(definition.variadic, token.text == ".");
      named = is_word(token.text.front()) || (named && dots);
      if (is_word(token.text.front()) || (dots && !named)) {
        definition.parameters.push_back(dots ? "__VA_ARGS__" : std::move(token.text));
      }
    }
    text.remove_prefix(std::min(close + 1, text.size()));
  } else {
    text.remove_prefix(end);
  }
  definition.body = tokens_of(text);
  if (!name.empty()) {
    macros_[name].push_back(std::move(definition));
  }
}

std::vector<std::vector<CodeToken>> PossibleMacros::expansions(std::string_view text, const std::string& file) const {
  constexpr std::size_t kMost = 65536;
  std::vector<std::vector<CodeToken>> found;
  Expansion expansion(*this, file);
  do {
    found.push_back(expansion.expand(tokens_of(text)));
  } while (expansion.next() && found.size() < kMost);
  return found;
}

}  // namespace pascaline
