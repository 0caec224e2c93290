#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/model/weights_option.hpp"
#include "cli/command.hpp"
#include "cli/model/new_file.hpp"
#include "cli/model/new_folder.hpp"
#include "cli/model/tensor_progress_line.hpp"
#include "core/error.hpp"
#include "core/util/byte_size.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/convert/to_folder.hpp"
#include "model/convert/to_gguf.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

struct ConvertCommandOptions {
  std::string input;
  std::string output;
  std::string projector;
  std::string weights;
  std::int64_t jobs = 0;
  bool random_weights = false;
  bool force = false;
  bool quiet = false;
};

constexpr std::array<std::pair<std::string_view, GgufType>, 3> kNumbers{
    {{"float32", GgufType::F32}, {"float16", GgufType::F16}, {"bfloat16", GgufType::BF16}}};

std::optional<GgufType> named_numbers(std::string_view name) {
  const auto* const found =
      std::find_if(kNumbers.begin(), kNumbers.end(), [name](const auto& type) { return type.first == name; });
  return found == kNumbers.end() ? std::nullopt : std::optional(found->second);
}

WantedTypes wanted_types(const std::string& given) {
  if (given.empty()) {
    return {};
  }
  if (const auto numbers = named_numbers(given)) {
    return {numbers, {}};
  }
  return {{}, given_weights(given)};
}

// Writes by `work`, with a line of progress; what was done, or nothing if it was interrupted.
template <typename Work>
std::optional<TensorProgress> with_progress(const ConvertCommandOptions& options, const Work& work) {
  catch_interrupts();
  TensorProgressLine line(options.quiet);
  ConvertSettings settings;
  settings.threads = static_cast<int>(options.jobs);
  settings.goes_on = [&](const TensorProgress& at) {
    line.show(at);
    return !interrupted();
  };
  settings.tell = [](const std::string& line_of_text) { fmt::print(stderr, "pascaline: warning: {}\n", line_of_text); };
  return work(settings);
}

int tell_interrupted() {
  fmt::print(stderr, "pascaline: interrupted; nothing was written\n");
  return kInterrupted;
}

void tell_done(const std::string& written, const TensorProgress& done) {
  if (done.lost_blocks > 0) {
    fmt::print(stderr,
               "pascaline: warning: {} of weights became 0, as the scale of values so small is below what the format "
               "can hold\n",
               counted(done.lost_blocks, "block"));
  }
  fmt::print("{}: {}, {} instead of {}, in {}\n", written, counted(done.all_tensors, "tensor"),
             shown_bytes(done.written_bytes), shown_bytes(done.all_bytes), duration_text(done.seconds));
}

// Beside the text model, unless it was named.
fs::path projector_place(const ConvertCommandOptions& options) {
  const fs::path text = options.output;
  return options.projector.empty() ? text.parent_path() / fmt::format("mmproj-{}", text.filename().string())
                                   : fs::path(options.projector);
}

int convert_to_gguf(const ConvertCommandOptions& options) {
  const WantedTypes wanted = wanted_types(options.weights);
  const ModelConfig config = load_model_config(options.input);
  const bool reads_images = config.vision.has_value();
  if (!reads_images && !options.projector.empty()) {
    throw Error(fmt::format("--mmproj: {} only reads text, so it has no projector; leave it out", options.input));
  }
  NewFile text(options.output, options.force);
  std::optional<NewFile> projector;
  if (reads_images) {
    projector.emplace(projector_place(options), options.force);
    if (is_same_place(projector->place(), text.place())) {
      throw Error(fmt::format("--mmproj: {} is the text model; name another file", options.output));
    }
  }
  const GgufTargets targets{text.path(), projector ? projector->path() : fs::path()};
  const auto done = with_progress(options, [&](const ConvertSettings& settings) {
    return write_gguf_files(options.input, targets, wanted, settings, options.random_weights);
  });
  if (!done) {
    return tell_interrupted();
  }
  const ModelLocation files(targets.text, targets.projector);
  (void)Checkpoint::open(files, load_model_config(files));
  if (projector) {
    projector->complete();
  }
  text.complete();
  tell_done(projector ? fmt::format("{} and {}", options.output, projector->place().string()) : options.output, *done);
  return kSuccess;
}

int convert_to_folder(const ConvertCommandOptions& options) {
  if (options.random_weights) {
    throw UsageError("--random-weights: only GGUF files are written of random weights");
  }
  const auto numbers = named_numbers(options.weights);
  if (!options.weights.empty() && !numbers) {
    throw UsageError(
        "--weights: a GGUF file becomes a folder of float32, float16 or bfloat16, or, without --weights, of what is in "
        "it; pascaline quantize makes fewer bits of the original weights");
  }
  NewFolder folder(options.output, options.force);
  const ModelLocation files(options.input, options.projector);
  const auto done = with_progress(options, [&](const ConvertSettings& settings) {
    return write_model_files(files, folder.path(), numbers, settings);
  });
  if (!done) {
    return tell_interrupted();
  }
  (void)Checkpoint::open(folder.path(), load_model_config(folder.path()));
  folder.complete();
  tell_done(options.output, *done);
  return kSuccess;
}

int convert(const ConvertCommandOptions& options) {
  const bool to_gguf = fs::path(options.output).extension() == ".gguf";
  if (is_gguf_path(options.input) == to_gguf) {
    throw UsageError(to_gguf ? fmt::format("{} and {} are both GGUF files; one of the two is a folder", options.input,
                                           options.output)
                             : fmt::format("neither {} nor {} is a GGUF file, which end in .gguf; one of the two is",
                                           options.input, options.output));
  }
  return to_gguf ? convert_to_gguf(options) : convert_to_folder(options);
}

// Names of what matrices can be written as in a GGUF file.
std::vector<std::string> convert_names() {
  std::vector<std::string> names;
  for (const auto& [name, type] : kNumbers) {
    names.emplace_back(name);
  }
  for (const std::string_view name : WeightRecipe::names()) {
    if (gguf_type_of(WeightRecipe::named(name).of(""))) {
      names.emplace_back(name);
    }
  }
  return names;
}

std::string check_convert_weights(const std::string& given) { return check_weights_among(given, convert_names()); }

void add_convert_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("convert", "Write a model's folder as GGUF files, or the other way");
  const auto options = std::make_shared<ConvertCommandOptions>();
  command->add_option("IN", options->input, "Model folder, or the GGUF file of a text model")->required();
  command->add_option("OUT", options->output, "GGUF file (….gguf) or folder to write; see --force if it exists")
      ->required();
  command->add_option("--mmproj", options->projector,
                      "GGUF file of the projector of a model that reads images: to read it with IN, or to write it "
                      "(default: mmproj- and OUT's name, beside OUT)");
  command
      ->add_option("--weights", options->weights,
                   fmt::format("What matrices are written as: {} (of which folders take numbers only), or a JSON file "
                               "that says it for single tensors (default: as they are stored)",
                               fmt::join(convert_names(), ", ")))
      ->check(check_convert_weights);
  command->add_flag("--random-weights", options->random_weights,
                    "Draw weights at random, for measurements; the folder needs only config.json");
  command->add_flag("--force", options->force, "Replace files or a model's folder that are there");
  command->add_option("-j,--jobs", options->jobs, "Threads (default: every processor)")
      ->transform(whole_number(1, 1024));
  command->add_flag("-q,--quiet", options->quiet, "No progress on standard error");
  command->footer(
      "Tokenizer, chat template and recommended sampling come along, as far as IN has them. Nothing is there before "
      "it\n"
      "is complete.\n\nExamples:\n"
      "  pascaline convert Qwen3-VL-2B-Instruct Qwen3-VL-2B.gguf --weights q8_0\n"
      "  pascaline convert Qwen3-VL-2B.gguf Qwen3-VL-2B-folder --mmproj mmproj-Qwen3-VL-2B.gguf");
  command->callback([&action, options] {
    action = [options] {
      options->input = downloaded_model(options->input).string();
      return convert(*options);
    };
  });
}

const Command kConvertCommand(Heading::models, 8, add_convert_command);

}  // namespace

}  // namespace pascaline::cli
