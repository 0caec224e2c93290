#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/documents.hpp"
#include "cli/command.hpp"
#include "cli/model/explain_model.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/statistics.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::cli {
namespace {

struct ExplainCommandOptions {
  KernelOptions kernel;
  DeviceOptions device;
  std::string database;
  bool as_json = false;
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {512}, .usual_image = kUsualImage, .prompts = {}, .image = {}};
};

void print_dispatch_plan(const Plan& plan, const Geometry& geometry, const std::vector<std::string>& taken_over) {
  fmt::print("{}\n  {}: {}\n", plan.problem.text(), name_of(plan.provenance), clean_line(plan.reason));
  fmt::print("  {}\n", clean_line(plan.config.text()));
  fmt::print("  compiled by {} {}\n", clean_line(plan.toolkit.compiler), clean_line(plan.toolkit.version));
  fmt::print("  grid {}, block {}, {} bytes of dynamic shared memory\n", fmt::join(geometry.grid, "x"),
             fmt::join(geometry.block, "x"), geometry.shared_bytes);
  if (plan.expected) {
    fmt::print("  measured: {:.2f} us ± {:.1f} %\n", plan.expected->median_us,
               100 * relative_half_width(*plan.expected));
  }
  for (const std::string& text : taken_over) {
    fmt::print("  its search began with {}\n", clean_line(text));
  }
}

int explain_sites(const ExplainCommandOptions& options) {
  ModelCommandOptions model = options.model;
  model.device = options.device.device.empty() ? options.device.chosen_device() : options.device.device;
  model.database = options.database;
  model.target = options.device.target;
  model.nvrtc = options.device.nvrtc;
  model.kernel_cache = options.device.cache;
  model.kernels_folder = options.kernel.kernels_folder;
  model.spaces_folder = options.kernel.spaces_folder;
  explain_model(model, options.sizes, options.as_json);
  return kSuccess;
}

int explain(const ExplainCommandOptions& options) {
  if (!options.model.folder.empty()) {
    return explain_sites(options);
  }
  if (options.as_json) {
    fmt::print("{}\n", explain_document(options.kernel, options.device, options.database).dump(2));
    return kSuccess;
  }
  explain_each(options.kernel, options.device, options.database, print_dispatch_plan);
  return kSuccess;
}

void add_explain_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("explain", "Show which variant the dispatcher picks for a shape, and why");
  const auto options = std::make_shared<ExplainCommandOptions>();
  options->kernel.add_kernel_to(*command);
  options->kernel.add_problems_to(*command);
  options->device.add_to(*command);
  add_database_option(*command, options->database, "Database to dispatch from");
  CLI::Option* const folder = command->add_option(
      "-m,--model", options->model.folder,
      "Show how each site of this model is computed, its fusion plan: a folder with config.json, or a GGUF file");
  folder->excludes(command->get_option("--kernel"))->excludes(command->get_option("--problem"));
  options->model.add_projector_to(*command);
  options->model.add_types_to(*command);
  options->model.add_fusion_to(*command);
  options->sizes.add_to(*command);
  for (const char* const of_model : {"--mmproj", "--weights", "--kv-cache", "--context", "--chunk", "--attention",
                                     "--fusion", "--prompt-tokens", "--image-size"}) {
    command->get_option(of_model)->needs(folder);
  }
  command->add_flag("--json", options->as_json, "Print JSON; with --model a plan for --fusion FILE");
  command->footer(
      "exact: tuned for exactly this shape on this kind of device; nearest: the winner of the closest tuned shape;\n"
      "default: the space's default; fallback: the closest valid configuration where the default cannot run.\n"
      "Of the winners of several compilers the fastest is taken whose compiler is here; a faster one that needs a\n"
      "compiler that is missing is named, with how to get it.\n\nExamples:\n"
      "  pascaline explain --model Qwen3-VL-2B-Instruct --json > plan.json\n"
      "  pascaline explain --problem M=512,N=2048,K=2048\n"
      "  pascaline explain --db tuned.db --device cuda:0 --target sm_61 -p M=1,N=6144,K=2048 -p M=7,N=100,K=33 --json");
  command->callback([&action, options] { action = [options] { return explain(*options); }; });
}

const Command kExplainCommand(Heading::tune, 7, add_explain_command);

}  // namespace

}  // namespace pascaline::cli
