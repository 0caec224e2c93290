#include <cstdio>
#include <memory>
#include <utility>

#include "app/sweep/prepared_sweep.hpp"
#include "cli/command.hpp"
#include "cli/tune/shown_sweep.hpp"

namespace pascaline::cli {
namespace {

int sweep(SweepCommandOptions options, const CLI::App& command) {
  const PreparedSweep prepared = prepare_sweep(std::move(options), command);
  catch_interrupts();  // until here nothing was begun, and Ctrl-C ends at once
  return run_shown(prepared, stdout, interrupted());
}

void add_sweep_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sweep", "Find the fastest variant of each shape and store every trial");
  const auto options = std::make_shared<SweepCommandOptions>();
  add_sweep_options(*command, *options);
  command->footer(
      "The default configuration is measured first and is always a finalist: only a configuration that is "
      "significantly\n"
      "faster replaces it. The same holds for --objective, whose winner is stored beside that by time.\n"
      "What the database knows under the same key (source, device, compiler, driver) is not measured again.\n"
      "With --until or --budget, time that the searches leave goes to finals again of what is undecided, to "
      "configurations\n"
      "near the winners and to shapes between those tuned, which the dispatcher then uses for the sizes near them\n"
      "(--time-left). With --trials alone a sweep ends when its finals do.\n"
      "If the time is too short for a first look at every shape, a line says what would suffice. Exit code 3: nothing "
      "was\n"
      "decided.\n"
      "Ctrl-C finishes the trial in flight; a second one stops at once. `--resume` continues after either, after\n"
      "kill -9 and after a power cut. `pascaline status` shows a running sweep in another terminal.\n\nExamples:\n"
      "  pascaline sweep --problem M=512,N=2048,K=2048,STORAGE=float32 --trials 200\n"
      "  pascaline sweep --model Qwen3-VL-2B-Instruct --until 07:00\n"
      "  pascaline sweep --model Qwen3-VL-2B-Instruct --devices all --kernel matmul --kernel matvec --budget 8h\n"
      "  pascaline sweep --nvrtc all --kernel matmul --budget 1h\n"
      "  pascaline sweep --model Qwen3-VL-2B-Instruct --until 07:00 --objective energy\n"
      "  pascaline sweep --workload model.json --trials 200 --shard 2/4 --db part2.db\n"
      "  pascaline sweep --resume");
  command->callback([&action, command, options] { action = [command, options] { return sweep(*options, *command); }; });
}

const Command kSweepCommand(Heading::tune, 4, add_sweep_command);

}  // namespace

}  // namespace pascaline::cli
