#include <fmt/format.h>

#include "app/model/model_workload.hpp"
#include "cli/command.hpp"
#include "core/util/counted.hpp"
#include "core/util/paths.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::cli {
namespace {

struct WorkloadCommandOptions {
  ModelCommandOptions model;
  PassCommandOptions sizes{
      .usual_prompts = {128, 512, 1024, 2048}, .usual_image = kUsualImage, .prompts = {}, .image = {}};
  std::string output;
};

int write_workload(const WorkloadCommandOptions& options) {
  require_writable(options.output);
  const std::filesystem::path file = options.output;
  options.model.require_kernels();
  const ModelSessionOptions session = options.model.session_options();
  const std::unique_ptr<Device> device =
      open_device(session.device.empty() ? list_devices().front().id : session.device);
  const Dispatcher dispatcher(*device, session.dispatcher);
  const ModelWorkload workload = observe_workload(options.model, options.sizes, file.stem().string(), &dispatcher);
  write_file_atomically(file, workload.text);
  fmt::print("{}: {}, {} of them not tuned for this device\n", file.string(), counted(workload.entries, "shape"),
             workload.untuned);
  return kSuccess;
}

void add_workload_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("workload", "Write the shapes that a model really launches, for a sweep");
  const auto options = std::make_shared<WorkloadCommandOptions>();
  options->model.add_to(*command);
  for (const char* without_effect : {"--no-graph", "--memory-limit", "--random-weights"}) {  // nothing is run
    command->remove_option(command->get_option(without_effect));
  }
  options->sizes.add_to(*command);
  command->add_option("-o,--output", options->output, "Workload file to write")->required();
  command->footer(
      "Shapes that were dispatched as nearest or default come first.\n\nExample:\n"
      "  pascaline workload --model Qwen3-VL-2B-Instruct --db tuned.db -o mine.json\n"
      "  pascaline sweep --workload mine.json --db tuned.db --budget 8h");
  command->callback([&action, options] { action = [options] { return write_workload(*options); }; });
}

const Command kWorkloadCommand(Heading::models, 5, add_workload_command);

}  // namespace

}  // namespace pascaline::cli
