#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <set>

#include "app/sweep/searcher_names.hpp"
#include "cli/command.hpp"

namespace pascaline::cli {
namespace {

std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words += "--" + name + " ";
    }
  }
  return words;
}

// Of commands below another: their names where one is to be named, then the options of the one that was.
std::string words_below(const std::vector<const CLI::App*>& commands) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : commands) {
    names += command->get_name() + " ";
    cases += fmt::format("        {}) words=\"{}\" ;;\n", command->get_name(), words_of(*command));
  }
  return fmt::format(R"(
      [ "$COMP_CWORD" -eq 2 ] && words="{}$words"
      case ${{COMP_WORDS[2]}} in
{}      esac ;;)",
                     names, cases);
}

// Written from the options themselves, so that it cannot fall behind them.
std::string bash_completion(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) {
      continue;
    }
    commands += command->get_name() + " ";
    const auto below = command->get_subcommands([](const CLI::App*) { return true; });
    cases += fmt::format("    {}) words=\"{}\"{}\n", command->get_name(), words_of(*command),
                         below.empty() ? " ;;" : words_below(below));
  }
  return fmt::format(R"(# bash completion for pascaline
_pascaline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{0}--help --version" -- "$current"))
    return
  fi
  case $previous in
    --device | -d) COMPREPLY=($(compgen -W "emulator cuda:0 cuda:1" -- "$current")); return ;;
    --target | --arch | -a) COMPREPLY=($(compgen -W "sm_61 sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 emulator" -- "$current")); return ;;
    --format | -f) COMPREPLY=($(compgen -W "md csv" -- "$current")); return ;;
    --searcher) COMPREPLY=($(compgen -W "{2}" -- "$current")); return ;;
    --db | --workload | -w | --output | -o | --nvrtc) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --kernels | --spaces | --cache | --emit | --model) COMPREPLY=($(compgen -d -- "$current")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{1}    completion) words="bash" ;;
  esac
  [ "${{COMP_WORDS[1]}}" = show ] && words="$words winners trials sessions"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _pascaline pascaline
)",
                     commands, cases, fmt::join(searcher_list(), " "));
}

void add_completion_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("completion", "Print the shell completion script");
  const auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "Shell")->capture_default_str()->check(one_of({"bash"}));
  command->footer("Example:\n  pascaline completion bash > ~/.local/share/bash-completion/completions/pascaline");
  command->callback([&action, &app, shell] {
    action = [&app] {
      fmt::print("{}", bash_completion(app));
      return kSuccess;
    };
  });
}

const Command kCompletionCommand(Heading::shell, 1, add_completion_command);

}  // namespace

}  // namespace pascaline::cli
