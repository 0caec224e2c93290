#include "cli/command.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/measure/measure_worker.hpp"

namespace pascaline::cli {

// Run by the program itself, not by people: no help entry.
namespace {

void add_worker_commands(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("compile-worker", "Compile what a parent process asks for on stdin")->group("");
  struct Options {
    std::string cache;
    std::string architecture;
    std::string nvrtc;
    std::uint64_t memory_bytes = 0;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("--cache", options->cache)->required();
  command->add_option("--arch", options->architecture)->required();
  command->add_option("--nvrtc", options->nvrtc);
  command->add_option("--memory", options->memory_bytes)->transform(any_unsigned());
  command->callback([&action, options] {
    action = [options] {
      return run_compile_worker(options->cache, options->architecture, options->nvrtc, options->memory_bytes);
    };
  });
  app.add_subcommand("measure-worker", "Measure what a parent process asks for on stdin")
      ->group("")
      ->callback([&action] { action = [] { return run_measure_worker(); }; });
}

const Command kWorkerCommands(Heading::hidden, 1, add_worker_commands);

}  // namespace

}  // namespace pascaline::cli
