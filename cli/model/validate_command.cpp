#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/model/logit_agreement.hpp"
#include "app/model/logit_reference.hpp"
#include "app/model/model_options.hpp"
#include "cli/command.hpp"
#include "cli/model/float32_comparison.hpp"
#include "cli/model/reference_model.hpp"
#include "cli/model/validation_text.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "runtime/device/device_names.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kUsualWindow = 512;

struct ValidateCommandOptions {
  ModelCommandOptions model;
  std::string reference;  // a folder or a file
  std::string text;
  std::string float32_device;
  std::int64_t tokens = 2048;
  std::int64_t window = 0;  // 0: kUsualWindow, or the context if that is less
  double tolerance = 1e-3;
  std::optional<double> max_kl;
  bool as_json = false;
};

int validate_by_reference(const ValidateCommandOptions& options) {
  ModelFolder folder = options.model.read_for_numbers();
  const LogitReference reference = read_reference(options.reference, folder.config());
  if (options.model.plan) {
    options.model.show_plan(folder, request_of(reference), options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder), request_of(reference));
  const std::vector<LogitAgreement> parts = compare_with_reference(session->model(), reference);
  bool good = true;
  json all = json::array();
  for (const LogitAgreement& part : parts) {
    good = good && part.relative_error() <= options.tolerance;  // false for NaN, too
    all.push_back(part.to_json());
    if (!options.as_json) {
      fmt::print("{}\n", part.text());
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", json{{"device", session->device_name()},
                            {"tolerance", options.tolerance},
                            {"within_tolerance", good},
                            {"parts", all}}
                           .dump(2));
  } else {
    fmt::print("{}: {} a relative L2 error of {:g}\n", session->device_name(), good ? "within" : "beyond",
               options.tolerance);
  }
  return good ? kSuccess : kNegative;
}

// Whether the model is compared with that of another folder, and not with recorded logits.
bool has_reference_folder(const ValidateCommandOptions& options) {
  std::error_code unseen;
  return fs::is_directory(options.reference, unseen) || is_gguf_path(options.reference);
}

// What the option says, or what is usual, within the context of both models.
std::int64_t window_of(const ValidateCommandOptions& options, std::int64_t context) {
  if (options.window > context) {
    throw Error(
        fmt::format("windows of {} tokens exceed the context of {}; give a smaller --window, or a larger "
                    "--context",
                    options.window, context));
  }
  return options.window > 0 ? options.window : std::min(kUsualWindow, context);
}

// In shorter windows the mask would leave nothing out, and the comparison show nothing of it.
void require_sparse(const ValidateCommandOptions& options, std::int64_t window, const char* larger) {
  const AttentionChoice attention = parse_attention(options.model.attention);
  if (const std::int64_t shortest = shortest_sparse(attention); shortest > window) {
    throw Error(
        fmt::format("--attention {} leaves nothing out of windows of {} tokens, only of {} or more: give a {}, or a "
                    "mask that leaves out more",
                    attention.name(), window, shortest, larger));
  }
}

// The same of texts that do not fill a window.
void require_sparse(const ValidateCommandOptions& options, const Passages& passages, std::int64_t window) {
  std::int64_t longest = 0;
  for (const TextWindow& part : windows_of(passages, window)) {
    longest = std::max(longest, static_cast<std::int64_t>(part.tokens.size()));
  }
  require_sparse(options, longest,
                 longest == window      ? "larger --window"
                 : options.text.empty() ? "longer text with --text"
                                        : "longer --text, or more of it with --tokens");
}

bool is_within(const Float32Comparison& result, const ValidateCommandOptions& options) {
  return !options.max_kl || result.divergence.mean() <= *options.max_kl;
}

void print(const Float32Comparison& result, const ValidateCommandOptions& options, std::int64_t window) {
  const LogitDivergence& divergence = result.divergence;
  const bool good = is_within(result, options);
  const ModelOptions run = options.model.session_options().options;
  const bool with_text = !options.text.empty();
  if (options.as_json) {
    json out{{"device", result.device},
             {"weights", result.weights},
             {"kv_cache", name_of(run.cache)},
             {"attention", run.attention.name()},
             {"float32_device", result.float32_device},
             {"reference", options.reference.empty() ? json() : json(options.reference)},
             {"text", with_text ? json(options.text) : json()},
             {"tokens", divergence.tokens()},
             {"window", window},
             {"kl_mean", divergence.mean()},
             {"kl_p99", divergence.quantile(0.99)},
             {"top1_agreement", divergence.top1_agreement()}};
    if (with_text) {
      out["predicted_tokens"] = divergence.predicted();
      out["perplexity"] = divergence.perplexity();
      out["float32_perplexity"] = divergence.reference_perplexity();
      out["perplexity_ratio"] = divergence.perplexity() / divergence.reference_perplexity();
    }
    if (options.max_kl) {
      out["max_kl"] = *options.max_kl;
      out["within_max_kl"] = good;
    }
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("this model     {}; weights {}, cache {}{}\n", result.device, result.weights, name_of(run.cache),
             run.attention.is_dense() ? std::string() : ", attention " + run.attention.name());
  fmt::print("float32        {}; weights float32{}, cache float32\n", result.float32_device,
             options.reference.empty() ? "" : " of " + options.reference);
  fmt::print("text           {}; {} in windows of {}\n",
             with_text ? options.text : counted(usual_texts().size(), "built-in text"),
             counted(divergence.tokens(), "token"), window);
  fmt::print("KL divergence  mean {:.4g}, 99th percentile {:.4g} nats per token\n", divergence.mean(),
             divergence.quantile(0.99));
  fmt::print("top-1          {:.2f} % the same\n", 100 * divergence.top1_agreement());
  if (with_text) {
    fmt::print("perplexity     {:.4f}, in float32 {:.4f}: {:.5f} times\n", divergence.perplexity(),
               divergence.reference_perplexity(), divergence.perplexity() / divergence.reference_perplexity());
  }
  if (options.max_kl) {
    fmt::print("{} a mean KL divergence of {:g}\n", good ? "within" : "beyond", *options.max_kl);
  }
}

int validate_by_float32(const ValidateCommandOptions& options) {
  ModelFolder folder = options.model.read_for_numbers();
  const ModelCommandOptions float32 = in_float32(options.model, options.reference, options.float32_device);
  std::optional<ModelFolder> reference;
  std::int64_t context = options.model.prompt_limits(folder).context;
  if (!options.reference.empty()) {
    reference = ModelFolder(options.reference, ModelParts::numbers);
    require_same_architecture(folder, *reference);
    context = std::min(context, float32.prompt_limits(*reference).context);
  }
  const std::int64_t window = window_of(options, context);
  require_sparse(options, window, "larger --window");
  if (options.model.plan) {
    options.model.show_plan(folder, {.tokens = window, .all_logits = true, .is_all = true}, options.as_json);
    return kSuccess;
  }
  const ModelFolder text(folder.location(), ModelParts::words);
  const Passages passages =
      options.text.empty() ? usual_passages(text) : read_passage(text, options.text, options.tokens);
  require_sparse(options, passages, window);
  if (reference) {
    check_reference_model(folder, text.tokenizer(), *reference);
  } else if (!options.model.random_weights) {
    note_if_quantized(folder);
  }
  const Float32Comparison result = compare_with_float32(std::move(folder), options.model, float32, passages, window);
  print(result, options, window);
  return is_within(result, options) ? kSuccess : kNegative;
}

// What goes with a reference depends on what it is, a folder or a file.
void check_reference_options(const CLI::App& command, const ValidateCommandOptions& options) {
  const bool is_given = command.count("--reference") > 0;
  const bool is_folder = has_reference_folder(options);
  if (command.count("--tolerance") > 0 && (!is_given || is_folder)) {
    throw CLI::ValidationError("--tolerance", "it is for recorded logits: give their file with --reference");
  }
  if (is_given && !is_folder) {
    for (const char* name : {"--text", "--window", "--float32-device", "--max-kl"}) {
      if (command.count(name) > 0) {
        throw CLI::ValidationError("--reference", fmt::format("{} is no folder, and {} only goes with a model's folder",
                                                              options.reference, name));
      }
    }
  }
  if (is_folder && options.model.random_weights) {
    throw CLI::ValidationError("--random-weights", "the model of --reference has other weights; leave one of them out");
  }
}

void add_options(CLI::App& command, ValidateCommandOptions& options) {
  options.model.add_to(command);
  options.model.add_residency_to(command);
  command.add_option("--reference", options.reference,
                     "Folder of the model whose float32 is compared with, e.g. the original of a quantized one; or a "
                     "safetensors file of what another implementation computed (default: the model itself)");
  command
      .add_option("--tolerance", options.tolerance, "Largest relative L2 error of each part of a recorded reference")
      ->check(number_within(0, 1e6))
      ->capture_default_str();
  CLI::Option* const text = command.add_option("--text", options.text,
                                               "Text file to compare on, in UTF-8 (default: six short built-in texts)");
  command.add_option("--tokens", options.tokens, "Maximum tokens of the text")
      ->transform(whole_number(2))
      ->capture_default_str()
      ->needs(text);
  command
      .add_option("--window", options.window,
                  "Tokens that are read from an empty context each (default: 512, or the context)")
      ->transform(whole_number(1));
  command
      .add_option("--float32-device", options.float32_device,
                  "Where the float32 model runs: cuda:N, cpu or emulator (default: as the model)")
      ->check(device_name(true));
  command
      .add_option("--max-kl", options.max_kl, "Largest mean KL divergence from the float32 model, in nats per token")
      ->check(number_within(0, 1e6));
  command.add_flag("--json", options.as_json, "Print JSON");
}

void add_validate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("validate", "Compare a model's logits with float32, or with recorded ones");
  const auto options = std::make_shared<ValidateCommandOptions>();
  add_options(*command, *options);
  command->footer(
      "The model runs as it was asked for, then in float32: itself, or that of the folder --reference, which must be\n"
      "of the same architecture and vocabulary. KL(float32 || this) and the likeliest token are compared after every\n"
      "token, with --text also the perplexity of both. Only one of the two is in memory at a time; float32 takes 4\n"
      "bytes a weight, on --float32-device if not here. Logits of the first wait in a temporary file (TMPDIR).\n"
      "A file --reference has input_ids I32[S] and their logits F32[S, vocabulary]; with images also pixel_values\n"
      "F32[patches, values] and image_grid_thw I32[images, 3]; and, if steps were recorded, decode_ids I32[T] and\n"
      "decode_logits F32[T, vocabulary], the tokens fed one by one. A row is clear if its largest logit\n"
      "exceeds the next by more than 0.01.\n"
      "Exit code 3 if a part exceeds the tolerance, or the mean divergence --max-kl.\n\nExamples:\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --weights int8 --text book.txt --tokens 4096\n"
      "  pascaline validate --model Qwen3-VL-2B-q4_k --reference Qwen3-VL-2B-Instruct --text book.txt\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --reference golden.safetensors --weights float32");
  command->callback([&action, command, options] {
    check_reference_options(*command, *options);
    action = [options] {
      const bool is_recorded = !options->reference.empty() && !has_reference_folder(*options);
      return is_recorded ? validate_by_reference(*options) : validate_by_float32(*options);
    };
  });
}

const Command kValidateCommand(Heading::models, 6, add_validate_command);

}  // namespace

}  // namespace pascaline::cli
