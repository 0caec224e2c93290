#include "cli/command_words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline::cli {
namespace {

const CLI::App* subcommand(const CLI::App& app, const std::string& word) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->check_name(word); });
  return found.empty() ? nullptr : found.front();
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0 && option.get_items_expected_max() != 0;
}

/// A word that names an option of a command, and what stands in the word behind the name.
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

}  // namespace

std::string fault_of_words(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = nullptr;
  bool options_ended = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty()) {
      return "an argument is empty ('')";
    }
    if (command == nullptr) {
      command = subcommand(app, word);
      continue;
    }
    options_ended = options_ended || word == "--";
    const NamedOption named = options_ended ? NamedOption() : named_option(*command, word);
    if (named.option == nullptr) {
      continue;
    }
    if (named.has_equals && named.value.empty()) {
      return fmt::format("{}: its value is empty", named.name);
    }
    if (takes_value(*named.option) && named.value.empty() && i + 1 < words.size()) {
      if (std::string fault = fault_of_value(*command, named.name, words[i + 1]); !fault.empty()) {
        return fault;
      }
      ++i;
    }
  }
  return {};
}

}  // namespace pascaline::cli
