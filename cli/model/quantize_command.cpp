#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/weights_option.hpp"
#include "cli/command.hpp"
#include "cli/model/new_folder.hpp"
#include "cli/model/tensor_progress_line.hpp"
#include "core/error.hpp"
#include "core/util/byte_size.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/convert/quantized_file.hpp"
#include "model/residency/filled_rows.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

struct QuantizeCommandOptions {
  std::string folder;
  std::string output;
  std::string weights;
  std::int64_t jobs = 0;
  bool force = false;
  bool quiet = false;
};

// What a model's folder has beside weights: configuration, tokenizer, templates, licence. An adapter that lies there is
// not part of it.
bool belongs_to_model(const fs::path& file) {
  static constexpr std::array<std::string_view, 5> kEndings{".json", ".jinja", ".txt", ".model", ".md"};
  static constexpr std::array<std::string_view, 3> kNames{"LICENSE", "NOTICE", "USE_POLICY"};
  const std::string name = file.filename().string();
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  const auto begins = [&](std::string_view beginning) { return name.starts_with(beginning); };
  return !name.starts_with('.') && !name.starts_with("adapter_") && !name.ends_with(".index.json") &&
         (std::any_of(kEndings.begin(), kEndings.end(), ends) || std::any_of(kNames.begin(), kNames.end(), begins));
}

// Once quantized, an embedding and a head with values of its own can no longer be compared: config.json tells them
// apart.
std::string config_of_copy(const std::string& text, const ModelConfig& config) {
  if (parse_model_config(text, "config.json").text.tied == config.text.tied) {
    return text;
  }
  auto root = nlohmann::ordered_json::parse(text);
  root["tie_word_embeddings"] = config.text.tied;
  return root.dump(2) + "\n";
}

void copy_files(const fs::path& from, const fs::path& to, const ModelConfig& config) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file() && belongs_to_model(entry.path())) {
      const std::string text = read_file(entry.path(), kMaxBytes);
      const fs::path name = entry.path().filename();
      write_file_atomically(to / name, name == "config.json" ? config_of_copy(text, config) : text);
    }
  }
}

int quantize_folder(const QuantizeCommandOptions& options) {
  if (is_gguf_path(options.folder)) {
    throw Error(fmt::format(
        "{} is a GGUF file; a model is quantized from the folder of its original weights: give that, or make "
        "one of the file with pascaline convert",
        options.folder));
  }
  const WeightRecipe recipe = given_weights(options.weights);
  const ModelConfig config = load_model_config(options.folder);
  const Checkpoint checkpoint = Checkpoint::open(options.folder, config);
  std::error_code ignored;
  if (fs::equivalent(options.folder, options.output, ignored)) {
    throw Error(fmt::format("{} is the model itself; name another folder", options.output));
  }
  if (const auto hidden = recipe.hidden_patterns(checkpoint.tensors()); !hidden.empty()) {
    fmt::print(stderr, "pascaline: warning: {}\n", hidden_patterns_text(recipe.name(), hidden));
  }
  catch_interrupts();
  NewFolder folder(options.output, options.force);
  const fs::path file = folder.path() / "model.safetensors";
  TensorProgress last;
  bool complete = false;
  {
    TensorProgressLine line(options.quiet);
    QuantizeSettings settings;
    settings.threads = static_cast<int>(options.jobs);
    settings.goes_on = [&](const TensorProgress& at) {
      last = at;
      line.show(at);
      return !interrupted();
    };
    complete = write_quantized(checkpoint, config, recipe, file, settings);
  }
  if (!complete) {
    fmt::print(stderr, "pascaline: interrupted; nothing was written\n");
    return kInterrupted;
  }
  copy_files(options.folder, folder.path(), config);
  (void)Checkpoint::open(folder.path(), config);
  folder.complete();
  if (const auto note = filled_rows_note(config, recipe)) {
    fmt::print(stderr, "pascaline: {}\n", *note);
  }
  if (last.lost_blocks > 0) {
    fmt::print(
        stderr,
        "pascaline: warning: {} of weights became 0, as the scale of values so small is below what {} can hold\n",
        counted(last.lost_blocks, "block"), recipe.name());
  }
  fmt::print("{}: {} in {}, {} instead of {}, in {}\n", options.output, counted(last.all_tensors, "tensor"),
             recipe.name(), shown_bytes(last.written_bytes), shown_bytes(last.all_bytes), duration_text(last.seconds));
  return kSuccess;
}

void add_quantize_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model's folder with its weights in fewer bits");
  const auto options = std::make_shared<QuantizeCommandOptions>();
  command->add_option("-m,--model", options->folder, "Model folder: config.json, *.safetensors, tokenizer.json, …")
      ->required();
  command->add_option("-o,--output", options->output, "Folder to write; it must not exist, or see --force")->required();
  command
      ->add_option("--weights", options->weights,
                   fmt::format("What to: {}; or a JSON file that says it for single tensors",
                               fmt::join(WeightRecipe::names(), ", ")))
      ->required()
      ->check(check_given_weights);
  command->add_flag("--force", options->force, "Replace a model's folder that is there");
  command->add_option("-j,--jobs", options->jobs, "Threads (default: every processor)")
      ->transform(whole_number(1, 1024));
  command->add_flag("-q,--quiet", options->quiet, "No progress on standard error");
  command->footer(
      "The new folder is one that every command loads, with the weights as they are in it unless --weights says\n"
      "otherwise. Nothing is there before it is complete.\n\nExamples:\n"
      "  pascaline quantize --model Qwen3-VL-2B-Instruct -o Qwen3-VL-2B-q4_k --weights q4_k\n"
      "  pascaline quantize --model Qwen3-VL-2B-Instruct -o Qwen3-VL-2B-own --weights recipe.json");
  command->callback([&action, options] {
    action = [options] {
      options->folder = downloaded_model(options->folder).string();
      return quantize_folder(*options);
    };
  });
}

const Command kQuantizeCommand(Heading::models, 7, add_quantize_command);

}  // namespace

}  // namespace pascaline::cli
