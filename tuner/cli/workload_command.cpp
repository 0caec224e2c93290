#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tuner/cli/model_options.hpp"
#include "tuner/cli/model_passes.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::ordered_json;

struct WorkloadCommandOptions {
  ModelCommandOptions model;
  std::vector<std::int64_t> prompts{128, 512, 1024, 2048};
  std::vector<std::int64_t> image;
  std::string output;
};

// Untuned shapes first, then those that take most time.
bool comes_before(const LaunchSum& a, const LaunchSum& b) {
  const auto is_tuned = [](const LaunchSum& sum) { return sum.prepared->plan.provenance == Provenance::exact; };
  if (is_tuned(a) != is_tuned(b)) {
    return is_tuned(b);
  }
  return a.time_us > b.time_us;
}

// Collects what passes launch as a workload.
class WorkloadWriter {
 public:
  void add(const ModelPass& pass, std::int64_t size, const std::vector<LaunchSum>& sums) {
    const std::string phase = fmt::format("{}_{}", pass.name, size);
    phases_.push_back({{"name", phase}, {"per", pass.per}, {"symbols", ordered_json::object()}});
    int number = 0;
    for (const LaunchSum& sum : sums) {
      const Problem& problem = sum.prepared->plan.problem;
      ordered_json dimensions = ordered_json::object();
      for (const auto& [name, value] : problem.dimensions) {
        dimensions[name] = value;
      }
      for (const auto& [name, type] : problem.types) {
        types_[name].insert(std::string(name_of(type)));
      }
      untuned_ += sum.prepared->plan.provenance == Provenance::exact ? 0 : 1;
      entries_.push_back({sum,
                          {{"kernel", problem.kernel},
                           {"name", fmt::format("{}_{}", problem.kernel, ++number)},
                           {"phase", phase},
                           {"dimensions", dimensions},
                           {"count", sum.count}}});
    }
  }

  [[nodiscard]] ordered_json document(const std::string& name, const std::string& source) const {
    ordered_json types = ordered_json::object();
    for (const auto& [variable, values] : types_) {
      types[variable] = values;
    }
    std::vector<Entry> sorted = entries_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Entry& a, const Entry& b) { return comes_before(a.sum, b.sum); });
    ordered_json entries = ordered_json::array();
    for (const Entry& entry : sorted) {
      entries.push_back(entry.text);
    }
    return {{"schema", 1},
            {"name", name},
            {"description", "What the runtime launches for this model: measured, untuned shapes first."},
            {"source", source},
            {"types", types},
            {"phases", phases_},
            {"entries", entries}};
  }
  [[nodiscard]] std::size_t entries() const noexcept { return entries_.size(); }
  [[nodiscard]] int untuned() const noexcept { return untuned_; }

 private:
  struct Entry {
    LaunchSum sum;
    ordered_json text;
  };

  std::map<std::string, std::set<std::string>> types_;
  std::vector<ordered_json> phases_;
  std::vector<Entry> entries_;
  int untuned_ = 0;
};

int write_workload(const WorkloadCommandOptions& given) {
  WorkloadCommandOptions options = given;
  options.model.no_graph = true;
  const auto session = options.model.open_for_numbers();
  Model& model = session->model();
  WorkloadWriter writer;
  for (const std::int64_t tokens : std::set<std::int64_t>(options.prompts.begin(), options.prompts.end())) {
    for (const ModelPass& pass : {prefill_pass(model, tokens), decode_pass(model, tokens)}) {
      writer.add(pass, tokens, observe_pass(session->executor(), pass));
    }
  }
  if (!options.image.empty()) {
    const ModelPass pass = image_pass(model, options.image[0], options.image[1]);
    writer.add(pass, options.image[0], observe_pass(session->executor(), pass));
  }
  const std::filesystem::path file = options.output;
  const ordered_json document = writer.document(
      file.stem().string(),
      fmt::format("{} on {}", std::filesystem::path(options.model.folder).filename().string(), session->device_name()));
  std::ofstream out(file);
  out << document.dump(1) << '\n';
  if (!out.flush()) {
    throw Error(fmt::format("cannot write {}", file.string()));
  }
  fmt::print("{}: {} shapes, {} of them not tuned for this device\n", file.string(), writer.entries(),
             writer.untuned());
  return kSuccess;
}

}  // namespace

void add_workload_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("workload", "Write the shapes that a model really launches, for a sweep");
  const auto options = std::make_shared<WorkloadCommandOptions>();
  options->model.add_to(*command);
  command->add_option("--prompt-tokens", options->prompts, "Lengths of prompts, and of contexts decoded at")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--image-size", options->image, "Also a picture of HEIGHT WIDTH pixels")
      ->expected(2)
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", options->output, "Workload file to write")->required();
  command->footer(
      "Shapes that were dispatched as nearest or default come first.\n\nExample:\n"
      "  pascaline workload --model Qwen3-VL-2B-Instruct --db tuned.db -o mine.json\n"
      "  pascaline sweep --kernel matmul --workload mine.json --db tuned.db --budget 8h");
  command->callback([&action, options] { action = [options] { return write_workload(*options); }; });
}

}  // namespace pascaline::cli
