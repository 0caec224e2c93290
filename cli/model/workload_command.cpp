#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/model/model_options.hpp"
#include "cli/model/model_passes.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::ordered_json;

struct WorkloadCommandOptions {
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {128, 512, 1024, 2048}, .prompts = {}, .image = {}};
  std::string output;
};

bool is_tuned(const LaunchSum& sum) { return sum.prepared->plan.provenance == Provenance::exact; }

// Untuned shapes first, then those that take most time.
bool comes_before(const LaunchSum& a, const LaunchSum& b) {
  if (is_tuned(a) != is_tuned(b)) {
    return is_tuned(b);
  }
  return a.time_us > b.time_us;
}

// Collects what passes launch as a workload: every problem once, with all its launches.
class WorkloadWriter {
 public:
  void add(const ModelPass& pass, const std::vector<LaunchSum>& sums) {
    per_ += (per_.empty() ? "" : "; ") + pass.per;
    for (const LaunchSum& sum : sums) {
      const Problem& problem = sum.prepared->plan.problem;
      const auto known = std::find_if(launches_.begin(), launches_.end(),
                                      [&](const LaunchSum& other) { return other.prepared->plan.problem == problem; });
      if (known == launches_.end()) {
        launches_.push_back(sum);
      } else {
        known->count += sum.count;
        known->time_us += sum.time_us;
      }
    }
  }

  [[nodiscard]] ordered_json document(const std::string& name, const std::string& source) const {
    std::vector<LaunchSum> sorted = launches_;
    std::stable_sort(sorted.begin(), sorted.end(), comes_before);
    std::map<std::string, int> numbers;
    ordered_json entries = ordered_json::array();
    for (const LaunchSum& sum : sorted) {
      const std::string& kernel = sum.prepared->plan.problem.kernel;
      entries.push_back(entry_of(sum, fmt::format("{}_{}", kernel, ++numbers[kernel])));
    }
    return {{"schema", 1},
            {"name", name},
            {"description", "What the runtime launches for this model: measured, untuned shapes first."},
            {"source", source},
            {"phases", {{{"name", kPhase}, {"per", per_}}}},
            {"entries", entries}};
  }
  [[nodiscard]] std::size_t entries() const noexcept { return launches_.size(); }
  [[nodiscard]] auto untuned() const noexcept {
    return std::count_if(launches_.begin(), launches_.end(), [](const LaunchSum& sum) { return !is_tuned(sum); });
  }

 private:
  static constexpr const char* kPhase = "model";

  static ordered_json entry_of(const LaunchSum& sum, const std::string& name) {
    const Problem& problem = sum.prepared->plan.problem;
    ordered_json dimensions = ordered_json::object();
    for (const auto& [dimension, value] : problem.dimensions) {
      dimensions[dimension] = value;
    }
    ordered_json types = ordered_json::object();
    for (const auto& [variable, type] : problem.types) {
      types[variable] = name_of(type);
    }
    ordered_json entry{{"kernel", problem.kernel}, {"name", name}, {"phase", kPhase}, {"dimensions", dimensions}};
    if (!types.empty()) {
      entry["types"] = types;
    }
    entry["count"] = sum.count;
    return entry;
  }

  std::string per_;  // what the passes are, for people
  std::vector<LaunchSum> launches_;
};

// Whether the picture is looked at in a prompt, which the context must have room for; `request` then counts it.
bool fit_picture(const WorkloadCommandOptions& options, const ModelFolder& folder, ModelRequest& request) {
  if (options.sizes.image.empty()) {
    return false;
  }
  const std::int64_t tokens = image_prompt_tokens(folder.config(), options.sizes.image[0], options.sizes.image[1]);
  const std::int64_t context = options.model.prompt_limits(folder).context;
  if (tokens > context) {
    fmt::print(stderr,
               "pascaline: the context of {} has no room for a prompt with the image, of {} tokens; what such a prompt "
               "launches behind the vision tower is left out: give a larger --context or a smaller --image-size\n",
               context, tokens);
    return false;
  }
  request.tokens = std::max(request.tokens, tokens);
  return true;
}

int write_workload(const WorkloadCommandOptions& given) {
  WorkloadCommandOptions options = given;
  require_writable(options.output);
  options.model.no_graph = true;
  options.model.require_kernels();
  ModelFolder folder = options.model.read_for_numbers();
  options.sizes.choose_prompts(options.model.prompt_limits(folder).context, kObservedSteps);
  ModelRequest request = request_of(folder, options.sizes, kObservedSteps);
  const bool picture_fits = fit_picture(options, folder, request);
  const auto session = options.model.open(std::move(folder), request);
  Model& model = session->model();
  WorkloadWriter writer;
  for (const std::int64_t tokens : std::set<std::int64_t>(options.sizes.prompts.begin(), options.sizes.prompts.end())) {
    for (const ModelPass& pass : {prefill_pass(model, tokens), decode_pass(model, tokens)}) {
      writer.add(pass, observe_pass(session->executor(), pass));
    }
  }
  if (!options.sizes.image.empty()) {
    const auto make = picture_fits ? image_prompt_pass : image_pass;
    const ModelPass pass = make(model, options.sizes.image[0], options.sizes.image[1]);
    writer.add(pass, observe_pass(session->executor(), pass));
  }
  const std::filesystem::path file = options.output;
  const ordered_json document = writer.document(
      file.stem().string(),
      fmt::format("{} on {}", std::filesystem::path(options.model.folder).filename().string(), session->device_name()));
  write_file_atomically(file, document.dump(1) + "\n");
  fmt::print("{}: {} shapes, {} of them not tuned for this device\n", file.string(), writer.entries(),
             writer.untuned());
  return kSuccess;
}

}  // namespace

void add_workload_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("workload", "Write the shapes that a model really launches, for a sweep");
  const auto options = std::make_shared<WorkloadCommandOptions>();
  options->model.add_to(*command);
  options->sizes.add_to(*command);
  command->add_option("-o,--output", options->output, "Workload file to write")->required();
  command->footer(
      "Shapes that were dispatched as nearest or default come first.\n\nExample:\n"
      "  pascaline workload --model Qwen3-VL-2B-Instruct --db tuned.db -o mine.json\n"
      "  pascaline sweep --kernel matmul --workload mine.json --db tuned.db --budget 8h");
  command->callback([&action, options] { action = [options] { return write_workload(*options); }; });
}

}  // namespace pascaline::cli
