#include "cli/fleet/batch_template.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/text.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline::cli {

std::string_view batch_template() {
  return R"(#!/bin/bash
#SBATCH --job-name={{name}}
#SBATCH --array={{array}}
#SBATCH --gres={{gres}}
#SBATCH --time={{time}}
#SBATCH --output={{output}}
#SBATCH --open-mode=append
# After a preemption or the loss of a node Slurm starts the task again, and the shard is resumed.
#SBATCH --requeue
# Two minutes before the time limit the sweep is told to end properly.
#SBATCH --signal=B:TERM@120

# Each task of the array is a shard. exec: signals for the script are for the program.
exec {{command}}
)";
}

std::string batch_word(const std::string& path) {
  const bool has_control =
      std::ranges::any_of(path, [](unsigned char letter) { return letter < 0x20 || letter == 0x7F; });
  if (has_control || path.find('\\') != std::string::npos) {
    throw Error(fmt::format("Slurm cannot use the folder {}: its name has {}; rename the folder", clean_line(path),
                            has_control ? "a line break or another control character" : "a backslash"));
  }
  if (shell_word(path) == path) {
    return path;
  }
  std::string quoted = "\"";  // within these both take a backslash away and keep what it stands before
  for (const char letter : path) {
    quoted += std::string_view("\"$`").find(letter) == std::string_view::npos ? "" : "\\";
    quoted += letter;
  }
  return quoted + "\"";
}

std::string filled_template(std::string_view text, const std::string& name,
                            const std::vector<std::pair<std::string, std::string>>& values,
                            const std::vector<std::string>& required) {
  for (const std::string& placeholder : required) {
    if (text.find("{{" + placeholder + "}}") == std::string_view::npos) {
      throw Error(
          fmt::format("{} lacks the placeholder {{{{{}}}}}: `pascaline fleet submit --print-template` shows where "
                      "it belongs",
                      name, placeholder));
    }
  }
  std::string filled;
  std::size_t at = 0;
  for (std::size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{", at)) {
    const std::size_t close = text.find("}}", open);
    const std::string placeholder(text.substr(open + 2, close == std::string_view::npos ? 40 : close - open - 2));
    const auto value = std::ranges::find_if(values, [&](const auto& one) { return one.first == placeholder; });
    if (close == std::string_view::npos || value == values.end()) {
      std::vector<std::string> known;
      for (const auto& one : values) {
        known.push_back(one.first);
      }
      throw Error(fmt::format("{}: there is no placeholder {{{{{}}}}}{} (there are: {})", name, placeholder,
                              did_you_mean(placeholder, known), fmt::join(known, ", ")));
    }
    filled += text.substr(at, open - at);
    filled += value->second;
    at = close + 2;
  }
  return filled + std::string(text.substr(at));
}

}  // namespace pascaline::cli
