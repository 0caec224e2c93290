#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/model/float32_comparison.hpp"
#include "cli/model/logit_agreement.hpp"
#include "cli/model/logit_reference.hpp"
#include "cli/model/model_options.hpp"
#include "cli/model/validation_text.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "runtime/device/device_names.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kUsualWindow = 512;

struct ValidateCommandOptions {
  ModelCommandOptions model;
  std::string reference;
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

// What the option says, or what is usual, within the context.
std::int64_t window_of(const ValidateCommandOptions& options, const ModelFolder& folder) {
  const std::int64_t context = options.model.prompt_limits(folder).context;
  if (options.window > context) {
    throw Error(
        fmt::format("windows of {} tokens exceed the context of {}; give a smaller --window, or a larger "
                    "--context",
                    options.window, context));
  }
  return options.window > 0 ? options.window : std::min(kUsualWindow, context);
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
             {"float32_device", result.float32_device},
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
  fmt::print("this model     {}; weights {}, cache {}\n", result.device, result.weights, name_of(run.cache));
  fmt::print("float32        {}; weights float32, cache float32\n", result.float32_device);
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
  if (!options.float32_device.empty()) {
    check_device_name(options.float32_device, {"cpu"});
  }
  ModelFolder folder = options.model.read_for_numbers();
  const std::int64_t window = window_of(options, folder);
  if (options.model.plan) {
    options.model.show_plan(folder, {.tokens = window, .all_logits = true, .is_all = true}, options.as_json);
    return kSuccess;
  }
  const Tokenizer tokenizer =
      Tokenizer::load(folder.path() / "tokenizer.json", static_cast<std::size_t>(folder.config().text.vocab));
  const Passages passages =
      options.text.empty() ? usual_passages(tokenizer) : read_passage(tokenizer, options.text, options.tokens);
  const Float32Comparison result = compare_with_float32(
      std::move(folder), options.model, in_float32(options.model, options.float32_device), passages, window);
  print(result, options, window);
  return is_within(result, options) ? kSuccess : kNegative;
}

void add_options(CLI::App& command, ValidateCommandOptions& options) {
  options.model.add_to(command);
  options.model.add_placement_to(command);
  CLI::Option* const reference =
      command.add_option("--reference", options.reference,
                         "Safetensors file of what another implementation computed (default: compare "
                         "with the model in float32)");
  command.add_option("--tolerance", options.tolerance, "Largest relative L2 error of each part of the reference")
      ->check(number_within(0, 1e6))
      ->capture_default_str()
      ->needs(reference);
  CLI::Option* const text =
      command
          .add_option("--text", options.text, "Text file to compare on, in UTF-8 (default: six short built-in texts)")
          ->excludes(reference);
  command.add_option("--tokens", options.tokens, "Maximum tokens of the text")
      ->transform(whole_number(2))
      ->capture_default_str()
      ->needs(text);
  command
      .add_option("--window", options.window,
                  "Tokens that are read from an empty context each (default: 512, or the context)")
      ->transform(whole_number(1))
      ->excludes(reference);
  command
      .add_option("--float32-device", options.float32_device,
                  "Where the float32 model runs: cuda:N, cpu or emulator (default: as the model)")
      ->excludes(reference);
  command
      .add_option("--max-kl", options.max_kl, "Largest mean KL divergence from the float32 model, in nats per token")
      ->check(number_within(0, 1e6))
      ->excludes(reference);
  command.add_flag("--json", options.as_json, "Print JSON");
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("validate", "Compare a model's logits with float32, or with recorded ones");
  const auto options = std::make_shared<ValidateCommandOptions>();
  add_options(*command, *options);
  command->footer(
      "Without --reference the model runs as it was asked for, then with float32 weights and cache, one after the\n"
      "other; the logits of the first wait in a temporary file (TMPDIR). KL(float32 || this) and the likeliest token\n"
      "are compared after every token, with --text also the perplexity of both.\n"
      "A reference has input_ids I32[S] and their logits F32[S, vocabulary]; with images also pixel_values\n"
      "F32[patches, values] and image_grid_thw I32[images, 3]; and, if steps were recorded, decode_ids I32[T] and\n"
      "decode_logits F32[T, vocabulary], the tokens fed one by one. A row is clear if its largest logit\n"
      "exceeds the next by more than 0.01.\n"
      "Exit code 3 if a part exceeds the tolerance, or the mean divergence --max-kl.\n\nExamples:\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --weights int8 --text book.txt --tokens 4096\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --reference golden.safetensors --weights float32");
  command->callback([&action, options] {
    action = [options] {
      return options->reference.empty() ? validate_by_float32(*options) : validate_by_reference(*options);
    };
  });
}

}  // namespace pascaline::cli
