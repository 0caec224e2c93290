#include "cli/command_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/util/suggestion.hpp"

namespace pascaline::cli {
namespace {

const CLI::App* subcommand(const CLI::App& app, const std::string& word) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->check_name(word); });
  return found.empty() ? nullptr : found.front();
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0 && option.get_items_expected_max() != 0;
}

/// A word that names an option of a command, and the word that follows it.
struct NamedOption {
  const CLI::Option* option = nullptr;  ///< null: the word names none
  std::string name;                     ///< as it was written
  bool has_equals = false;
  std::string value;
};

NamedOption named_option(const CLI::App& command, const std::string& word) {
  const bool is_long = word.starts_with("--");
  if (word.size() < 2 || word.front() != '-' || word == "--") {
    return {};
  }
  NamedOption named;
  const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
  named.name = word.substr(0, end);
  named.option = command.get_option_no_throw(named.name);
  named.has_equals = end < word.size() && word[end] == '=';
  named.value = word.substr(std::min(end + (named.has_equals ? 1 : 0), word.size()));
  return named;
}

// What is wrong with the word that an option takes for its value.
std::string fault_of_value(const CLI::App& command, const std::string& name, const std::string& value) {
  if (value.empty()) {
    return fmt::format("{}: its value is empty", name);
  }
  if (named_option(command, value).option != nullptr) {
    return fmt::format("{} has no value: the option {} follows; if that is its value, write {}", name, value,
                       name.starts_with("--") ? fmt::format("{}={}", name, value) : name + value);
  }
  return {};
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    known.push_back(command->get_name());
  }
  return fmt::format("there is no command '{}{}'{}", app.get_parent() != nullptr ? app.get_name() + " " : "", word,
                     did_you_mean(word, known));
}

// What is wrong with a word that stands where an option may, and names none.
std::string fault_of_name(const CLI::App& command, const std::string& word) {
  const bool negative = word.size() > 1 && ((word[1] >= '0' && word[1] <= '9') || word[1] == '.');
  if (word.size() < 2 || word.front() != '-' || negative) {
    return {};
  }
  const std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) {
      known.push_back("--" + long_name);
    }
  }
  return fmt::format("{} no option {}{}",
                     command.get_parent() != nullptr ? full_name(command) + " has" : std::string("there is"), name,
                     did_you_mean(name, known));
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const CLI::App* const above = command.get_parent();
  const bool nested = above != nullptr && above->get_parent() != nullptr;
  return nested ? above->get_name() + " " + command.get_name() : command.get_name();
}

const CLI::App* command_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* const command = words.size() > 1 ? subcommand(app, words[1]) : nullptr;
  if (command == nullptr || command->get_group().empty()) {
    return nullptr;
  }
  const CLI::App* const below = words.size() > 2 ? subcommand(*command, words[2]) : nullptr;
  return below != nullptr ? below : command;
}

std::string fault_of_words(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = nullptr;
  bool options_ended = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty()) {
      return "an argument is empty ('')";
    }
    const CLI::App& above = command != nullptr ? *command : app;
    const bool has_commands = !above.get_subcommands([](const CLI::App*) { return true; }).empty();
    if (has_commands && word.front() != '-') {
      command = subcommand(above, word);
      if (command == nullptr) {
        return unknown_command(above, word);
      }
      continue;
    }
    options_ended = options_ended || word == "--";
    if (options_ended) {
      continue;
    }
    const CLI::App& owner = command != nullptr ? *command : app;
    const NamedOption named = named_option(owner, word);
    if (named.option == nullptr) {
      if (std::string fault = fault_of_name(owner, word); !fault.empty()) {
        return fault;
      }
      continue;
    }
    if (named.has_equals && named.value.empty()) {
      return fmt::format("{}: its value is empty", named.name);
    }
    if (takes_value(*named.option) && named.value.empty() && i + 1 < words.size()) {
      if (std::string fault = fault_of_value(owner, named.name, words[i + 1]); !fault.empty()) {
        return fault;
      }
      ++i;
    }
  }
  return {};
}

}  // namespace pascaline::cli
