#include "python/src/command_words.hpp"

#include <algorithm>
#include <cctype>

#include "python/src/errors.hpp"

namespace pascaline::python {

std::string python_names(const std::string& text) {
  std::string out;
  bool quoted = false;  // a command between backticks
  for (std::size_t i = 0; i < text.size();) {
    quoted = quoted != (text[i] == '`');
    const bool begins = !quoted && text.compare(i, 2, "--") == 0 && i + 2 < text.size() &&
                        std::islower(text[i + 2]) != 0 && (i == 0 || text[i - 1] != '-');
    if (!begins) {
      out += text[i++];
      continue;
    }
    for (i += 2; i < text.size() && (std::isalnum(text[i]) != 0 || text[i] == '-'); ++i) {
      out += text[i] == '-' ? '_' : text[i];
    }
  }
  return out;
}

void read_words(CLI::App& app, std::vector<std::string> words) {
  app.set_help_flag();                       // there is none
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw ArgumentError(python_names(error.what()));
  }
}

std::vector<std::string> option_names(CLI::App& app) {
  app.set_help_flag();
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) {
      names.push_back(option->get_lnames().front());
    }
  }
  return names;
}

}  // namespace pascaline::python
