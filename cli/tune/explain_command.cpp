#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/documents.hpp"
#include "cli/model/explain_model.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/statistics.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct ExplainCommandOptions {
  KernelOptions kernel;
  DeviceOptions device;
  std::string database;
  bool as_json = false;
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {512}, .usual_image = kUsualImage, .prompts = {}, .image = {}};
};

DispatcherOptions dispatcher_options(const KernelOptions& kernel, const DeviceOptions& device,
                                     const std::string& given) {
  DispatcherOptions out;
  const std::filesystem::path database = database_path(given);
  if (!given.empty() || std::filesystem::exists(database)) {
    out.database = database;
  }
  out.kernels = kernel.kernels_folder;
  out.spaces = kernel.spaces_folder;
  out.target = device.target;
  out.nvrtc = device.nvrtc;
  out.cache = device.cache_path();
  return out;
}

// What the search of the winner that a plan takes began with, of other devices.
std::vector<std::string> taken_over_by(const Store& store, const std::vector<Winner>& winners, const Plan& plan) {
  std::vector<std::string> texts;
  for (const Winner& winner : winners) {
    if (winner.trial.problem == plan.tuned_for && winner.trial.config == plan.config &&
        same_compiler(winner.toolkit, plan.toolkit)) {
      for (const TakenOver& taken_over : store.taken_over(winner.trial_id)) {
        texts.push_back(text_of(taken_over));
      }
      break;
    }
  }
  return texts;
}

json to_json(const Plan& plan, const Geometry& geometry, const std::vector<std::string>& taken_over) {
  json out{{"problem", plan.problem.text()},
           {"provenance", name_of(plan.provenance)},
           {"reason", plan.reason},
           {"config", plan.config.json()},
           {"compiler", plan.toolkit.compiler},
           {"compiler_version", plan.toolkit.version},
           {"grid", geometry.grid},
           {"block", geometry.block},
           {"dynamic_shared_bytes", geometry.shared_bytes}};
  if (plan.tuned_for) {
    out["tuned_for"] = plan.tuned_for->text();
    out["distance"] = plan.distance;
    out["confidence"] = plan.confidence;
  }
  if (plan.expected) {
    out["expected_us"] = plan.expected->median_us;
    out["expected_low_us"] = plan.expected->low_us;
    out["expected_high_us"] = plan.expected->high_us;
  }
  if (!taken_over.empty()) {
    out["search_began_with"] = taken_over;
  }
  return out;
}

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

void explain_each(const KernelOptions& kernel, const DeviceOptions& on, const std::string& database,
                  const std::function<void(const Plan&, const Geometry&, const std::vector<std::string>&)>& tell) {
  const Space space = kernel.load_space();
  const std::vector<Problem> problems = kernel.load_problems(space);
  const auto device = open_device(on.chosen_device());
  const DispatcherOptions dispatcher_settings = dispatcher_options(kernel, on, database);
  const Dispatcher dispatcher(*device, dispatcher_settings);
  std::optional<Store> store;
  std::vector<Winner> winners;  // of such a device
  if (dispatcher_settings.database) {
    const DeviceRow row = device_row(device->info());
    winners = store.emplace(*dispatcher_settings.database, OpenMode::read_only).winners(space.kernel, &row);
  }
  for (const Problem& problem : problems) {
    const Plan plan = dispatcher.plan(problem);
    tell(plan, BoundSpace(space, problem, dispatcher.target().limits).geometry(space.launch, plan.config),
         store ? taken_over_by(*store, winners, plan) : std::vector<std::string>());
  }
}

int explain_places(const ExplainCommandOptions& options) {
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
    return explain_places(options);
  }
  if (options.as_json) {
    fmt::print("{}\n", explain_document(options.kernel, options.device, options.database).dump(2));
    return kSuccess;
  }
  explain_each(options.kernel, options.device, options.database, print_dispatch_plan);
  return kSuccess;
}

}  // namespace

nlohmann::json explain_document(const KernelOptions& kernel, const DeviceOptions& device, const std::string& database) {
  json plans = json::array();
  explain_each(kernel, device, database,
               [&](const Plan& plan, const Geometry& geometry, const std::vector<std::string>& taken_over) {
                 plans.push_back(to_json(plan, geometry, taken_over));
               });
  return plans;
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
      "Show how each place of this model is computed, its fusion plan: a folder with config.json, or a GGUF file");
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

}  // namespace pascaline::cli
