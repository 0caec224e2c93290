#include "app/model/model_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <random>
#include <string_view>
#include <utility>

#include "app/model/plan_text.hpp"
#include "app/model/thermal_text.hpp"
#include "app/model/weights_option.hpp"
#include "core/argument_error.hpp"
#include "core/error.hpp"
#include "core/util/byte_size.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/fusion/fusion_file.hpp"
#include "model/requirements.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

ElementType stored_type(const std::string& given, bool without_kernels) {
  if (given.empty()) {
    return without_kernels ? ElementType::float32 : ElementType::float16;
  }
  return given == "float32" ? ElementType::float32 : ElementType::float16;
}

ElementType stored_cache(const std::string& given, bool without_kernels) {
  return given == "int8" ? ElementType::int8 : stored_type(given, without_kernels);
}

std::string weights_help() {
  return fmt::format(
      "Type of the weights: {}, the most accurate first (float16x: 16 bits with the best exponent width for each "
      "matrix); auto: the most accurate that fits; or a JSON file that says it for single tensors (default: as a "
      "quantized folder or GGUF file has them, else float16 on a GPU, float32 on the processor)",
      fmt::join(WeightRecipe::names(), ", "));
}

// Options about kernels that were given, which a model on the processor has no use for.
std::vector<std::string_view> useless_options(const ModelCommandOptions& options) {
  const std::pair<std::string_view, const std::string*> all[] = {
      {"--db", &options.database},        {"--target", &options.target},          {"--nvrtc", &options.nvrtc},
      {"--cache", &options.kernel_cache}, {"--kernels", &options.kernels_folder}, {"--spaces", &options.spaces_folder},
      {"--sensors", &options.sensors}};
  std::vector<std::string_view> given;
  for (const auto& [name, value] : all) {
    if (!value->empty()) {
      given.push_back(name);
    }
  }
  if (options.thermal != "auto") {
    given.emplace_back("--thermal");
  }
  if (options.fusion != "auto") {
    given.emplace_back("--fusion");
  }
  return given;
}

}  // namespace

void ModelCommandOptions::add_to(CLI::App& command) {
  command
      .add_option("-m,--model", folder, "Model folder (config.json, *.safetensors, tokenizer.json, …), or a GGUF file")
      ->required();
  add_projector_to(command);
  command
      .add_option("-d,--device", device, "cuda:N, cpu, or emulator (default: cuda:0 where there is a GPU, else cpu)")
      ->check(device_name(true));
  CLI::Option* const bundle_file =
      command.add_option("--bundle", bundle, "Bundle of winners with their code (pascaline bundle); needs no compiler");
  add_database_option(command, database, "Tuned database to choose kernels from");
  command.get_option("--db")->excludes(bundle_file);
  command.add_flag("--untuned", untuned, "Use no database, but every kernel's default configuration")
      ->excludes(bundle_file);
  command
      .add_flag("--any-device", any_device, "Use the bundle even if it was tuned on another device of the architecture")
      ->needs(bundle_file);
  command.add_option("--target", target, "Compile for this architecture, e.g. sm_61 (default: the device's own)")
      ->check(target_name())
      ->excludes(bundle_file);
  command.add_option("--nvrtc", nvrtc, kNvrtcHelp)->transform(nvrtc_choice())->excludes(bundle_file);
  command.add_option("--cache", kernel_cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  command.add_option("--kernels", kernels_folder, "Folder of kernel templates (default: the installed ones)");
  command.add_option("--spaces", spaces_folder, "Folder of search spaces (default: the installed ones)");
  command.add_option("--weights", weights, weights_help())->check(check_weights_or_auto);
  add_cache_to(command);
  command
      .add_option("--max-image-tokens", most_image_tokens,
                  "Maximum tokens per image (default: what the model allows and the context has room for)")
      ->transform(whole_number(1));
  command
      .add_option("--memory-limit", memory_limit,
                  "Take no more of the device's memory, e.g. 1.5GiB (default: what is free); code comes on top")
      ->check(byte_size());
  command.add_flag("--random-weights", random_weights, "Draw weights at random; the folder needs only config.json");
  command.add_flag("--strict", strict, "Refuse a model whose files cause a warning, such as one about unknown keys");
  add_fusion_to(command);
  command
      .add_option(
          "--thermal", thermal,
          "Which winners run while the card is cool, hot or throttled: by default those by time, and by sustained "
          "time or energy where the database has some (auto); always those by time (off); or as a file says")
      ->check(thermal_choice())
      ->capture_default_str();
  command
      .add_option(
          "--sensors", sensors,
          "Read temperatures, clocks and throttling from this trace instead of the card (for trying things out)")
      ->check(CLI::ExistingFile);
  command.add_flag("--no-graph", no_graph, "Launch every kernel of a decoding step by itself");
  command.parse_complete_callback([this] {
    if (device == "cpu" && !bundle.empty()) {
      throw CLI::ValidationError("--bundle",
                                 "a bundle has kernels, which the processor does not run; leave out --bundle, or "
                                 "choose a GPU with --device cuda:0");
    }
    if (const auto given = given_residency(); given && device == "cpu") {
      throw CLI::ValidationError(*given,
                                 "with --device cpu all of the model runs on the processor; leave it out, or "
                                 "choose a device, e.g. --device cuda:0");
    }
  });
}

void ModelCommandOptions::add_projector_to(CLI::App& command) {
  command.add_option("--mmproj", projector,
                     "Projector of a GGUF model that reads images, as a GGUF file (mmproj-….gguf)");
}

void ModelCommandOptions::add_fusion_to(CLI::App& command) {
  command
      .add_option("--fusion", fusion,
                  "Which operations run as one launch: those for which that was measured to be faster (auto), none "
                  "(off), or as a file says (pascaline explain --model FOLDER --json writes one)")
      ->check(not_empty())
      ->capture_default_str();
}

void ModelCommandOptions::add_residency_to(CLI::App& command) {
  const CLI::Validator layers(
      [](std::string& text) {
        std::string number = text;
        return text == "auto" || whole_number(0)(number).empty()
                   ? std::string()
                   : fmt::format("'{}' is neither a number of layers, 0 or more, nor auto", text);
      },
      "N|auto");
  command
      .add_option("--gpu-layers", gpu_layers, "Layers of the decoder kept on the device: a number, or as many as fit")
      ->check(layers)
      ->capture_default_str();
  command
      .add_option(
          "--vision", vision,
          "Where images are encoded: on the device with the weights kept there (gpu) or copied to it as they are "
          "used (stream), by the processor (cpu), or what is expected to answer soonest")
      ->check(one_of({"gpu", "cpu", "stream", "auto"}))
      ->capture_default_str();
  command
      .add_option(
          "--offload", offload,
          "What is done with layers that are not kept on the device: computed by the processor (cpu), copied to "
          "the device when they are used (stream), or what a measurement says is faster")
      ->check(one_of({"cpu", "stream", "auto"}))
      ->capture_default_str();
  command.add_flag("--plan", plan,
                   "Only print where the model's parts would be, what they take, and the speed to expect");
}

// One of the options about residency, if it says something.
std::optional<std::string> ModelCommandOptions::given_residency() const {
  for (const auto& [name, value] :
       {std::pair{"--gpu-layers", &gpu_layers}, {"--vision", &vision}, {"--offload", &offload}}) {
    if (*value != "auto") {
      return name;
    }
  }
  return std::nullopt;
}

ResidencyOptions ModelCommandOptions::residency() const {
  ResidencyOptions options;
  if (gpu_layers != "auto") {
    std::string number = gpu_layers;
    (void)whole_number(0)(number);
    options.gpu_layers = std::stoll(number);
  }
  options.vision = vision_residency_named(vision);
  options.offload = offload_named(offload);
  return options;
}

void ModelCommandOptions::add_template_to(CLI::App& command) {
  command.add_option("--template", chat_template,
                     "Chat template to render messages with: chatml, smollm2, qwen3, qwen3-vl, llama3, llama3.1, or a "
                     "file with the text of a known one (default: the model's own)");
}

void ModelCommandOptions::add_types_to(CLI::App& command) {
  command.add_option("--weights", weights, weights_help())->check(check_weights_or_auto);
  add_cache_to(command);
}

void ModelCommandOptions::add_cache_to(CLI::App& command) {
  command
      .add_option(
          "--kv-cache", kv_cache,
          "Type of cached keys and values: float16 (default on a GPU), float32 (on the processor), or int8 with "
          "a scale for each head, about half of float16")
      ->check(one_of({"float32", "float16", "int8"}));
  command.add_option("--context", context, "Maximum tokens of a conversation (default: 4096, or the model's maximum)")
      ->transform(whole_number(1));
  command.add_option("--chunk", chunk, "Maximum tokens of a prompt read at once")
      ->transform(whole_number(1))
      ->capture_default_str();
  command
      .add_option("--attention", attention,
                  "Tokens that a token attends to: all before it (dense), the last N and the first M "
                  "(window=N,sinks=M), besides the last N also every K-th block (strided=K,window=N), or the likeliest "
                  "part of the blocks (topk=25%); block=B says how long blocks are; all but dense changes answers")
      ->check(CLI::Validator(
          [](std::string& text) {
            try {
              (void)parse_attention(text);
              return std::string();
            } catch (const Error& error) {
              return std::string(error.what());
            }
          },
          ""))
      ->capture_default_str();
}

bool ModelCommandOptions::on_processor() const {
  return device == "cpu" || (device.empty() && list_devices().front().kind != DeviceKind::cuda);
}

void ModelCommandOptions::require_kernels() const {
  if (on_processor()) {
    throw ArgumentError("on the processor a model launches no kernels: choose a device, e.g. --device emulator");
  }
}

void ModelCommandOptions::check_kernel_options() const {
  if (!on_processor()) {
    return;
  }
  if (!bundle.empty()) {
    throw Error(fmt::format(
        "there is no GPU here; the model would run on the processor, which does not run the kernels of {}: leave "
        "out --bundle, or choose a device with --device",
        bundle));
  }
  if (const auto given = given_residency()) {
    throw Error(
        fmt::format("there is no GPU here, so all of the model would run on the processor: leave out {}, or "
                    "choose a device with --device",
                    *given));
  }
  if (const std::vector<std::string_view> given = useless_options(*this); !given.empty()) {
    fmt::print(stderr, "pascaline: warning: the model runs on the processor, without kernels: {} {} ignored\n",
               fmt::join(given, ", "), given.size() == 1 ? "is" : "are");
  }
}

ModelSessionOptions ModelCommandOptions::session_options() const {
  ModelSessionOptions options;
  options.model = location();
  options.device = device;
  if (!bundle.empty()) {
    options.dispatcher.bundle = bundle;
    options.dispatcher.any_device = any_device;
  } else if (!untuned && !on_processor()) {
    if (std::filesystem::path path = database_path(database); !database.empty() || std::filesystem::exists(path)) {
      options.dispatcher.database = std::move(path);
      options.database_may_be_foreign = database.empty();
    }
  }
  options.dispatcher.kernels = kernels_folder;
  options.dispatcher.spaces = spaces_folder;
  options.dispatcher.target = target;
  options.dispatcher.nvrtc = nvrtc;
  options.dispatcher.cache = kernel_cache;
  const bool without_kernels = on_processor();
  const ElementType usual = stored_type("", without_kernels);
  if (weights == kAutomaticWeights) {
    if (observe_only) {
      throw UsageError(
          "--weights auto is decided by the memory that is free when a model is loaded: name the type that it "
          "then chooses, e.g. --weights q8_0");
    }
    options.weight_choices = automatic_weights(random_weights ? ModelLocation() : location(), without_kernels);
    options.options.weights = options.weight_choices.front();
  } else if (weights.empty()) {
    options.options.weights = random_weights ? usual : weights_of_folder(location(), usual);
  } else {
    options.options.weights = given_weights(weights);
  }
  options.options.cache = stored_cache(kv_cache, without_kernels);
  options.options.context = context;
  options.options.chunk = chunk;
  options.options.graphs = !no_graph;
  options.options.fusion = fusion == "off" ? Fusion::off : Fusion::automatic;
  if (fusion != "off" && fusion != "auto") {
    if (!std::filesystem::exists(fusion)) {
      throw UsageError(fmt::format("--fusion: '{}' is neither auto, off nor a file with a plan", clean_line(fusion)));
    }
    options.options.fusion_file = load_fusion(fusion);
  }
  options.options.attention = parse_attention(attention);
  options.options.residency = residency();
  options.random_weights = random_weights;
  options.observe_only = observe_only;
  if (!memory_limit.empty()) {
    options.memory_limit = parse_byte_size(memory_limit);
  }
  return options;
}

ModelFolder ModelCommandOptions::read_folder(ModelParts parts) const {
  check_kernel_options();
  const StrictKeys strict_keys(strict);
  const bool takes_what_is_there = random_weights && parts == ModelParts::all;
  ModelFolder model(location(), takes_what_is_there ? ModelParts::present : parts, chat_template);
  if (most_image_tokens > 0) {
    (void)limit_tokens(model.preprocessor(), most_image_tokens);
  }
  return model;
}

ModelFolder ModelCommandOptions::read_for_numbers() const {
  check_kernel_options();
  const StrictKeys strict_keys(strict);
  return ModelFolder(location(), ModelParts::numbers);
}

PromptLimits ModelCommandOptions::prompt_limits(const ModelFolder& model) const {
  PromptLimits limits;
  limits.context = checked_options(model.config(), session_options().options, model.location()).context;
  limits.most_image_tokens = most_image_tokens;
  return limits;
}

std::unique_ptr<ModelSession> ModelCommandOptions::open(ModelFolder model, const ModelRequest& request) const {
  ModelSessionOptions options = session_options();
  options.options.request = request;
  if (!on_processor()) {
    options.dispatcher.thermal = thermal_options(thermal, sensors);
  }
  return std::make_unique<ModelSession>(std::move(model), options);
}

void ModelCommandOptions::show_plan(const ModelFolder& model, const ModelRequest& request, bool as_json) const {
  ModelSessionOptions options = session_options();
  options.options.request = request;
  print_plan(estimate_session(model, options), as_json);
}

void note_fitted(const FittedImages& images, std::int64_t context) {
  if (images.max_tokens > 0) {
    fmt::print(stderr,
               "pascaline: images were made smaller, to at most {} tokens each, to fit the context of {}; --context "
               "allows larger ones, --max-image-tokens sets their size\n",
               images.max_tokens, context);
  }
}

void note_image(const Image& image) {
  for (const std::string& note : image.notes) {
    fmt::print(stderr, "pascaline: {}: {}\n", clean_line(image.name), note);
  }
}

void SamplingCommandOptions::add_to(CLI::App& command) {
  command
      .add_option("-n,--max-tokens", max_tokens, "Maximum tokens of an answer (default: 512, if the context has room)")
      ->transform(whole_number(1));
  command.add_option("--stop", stop, "A text that ends the answer, which is shown up to it (repeatable)")
      ->allow_extra_args(false);
  CLI::Option* const no_draw = command.add_flag("--greedy", greedy, "Always choose the likeliest token");
  command.add_option("--temperature", temperature, "0: the likeliest token")
      ->check(number_within(0, 1000))
      ->excludes(no_draw);
  command.add_option("--top-k", top_k, "Draw from the k likeliest tokens; 0: from all")
      ->transform(whole_number(0, std::numeric_limits<std::int32_t>::max()));
  command.add_option("--top-p", top_p, "Draw from the likeliest tokens with this total probability")
      ->check(number_within(0, 1));
  command
      .add_option("--min-p", min_p,
                  "Draw from tokens that have at least this part of the likeliest one's probability; 0: from all")
      ->check(number_within(0, 1));
  command.add_option("--repetition-penalty", repetition, "Divide positive logits of tokens seen before; 1: off")
      ->check(number_within(1e-3, 1e3));
  command.add_option("--presence-penalty", presence, "Subtract from logits of tokens seen before")
      ->check(number_within(-1e3, 1e3));
  command.add_option("--seed", seed, "Seed of the draws (default: a new one each time)")->transform(any_unsigned());
}

AnswerOptions SamplingCommandOptions::answer_options(const ModelFolder& model) const {
  AnswerOptions options;
  options.max_tokens = max_tokens.value_or(kUsualTokens);
  options.stop = stop;
  const auto narrow = [](const std::optional<double>& given) {
    return given ? std::optional(static_cast<float>(*given)) : std::nullopt;
  };
  options.sampling = model.sampling({.greedy = greedy,
                                     .temperature = narrow(temperature),
                                     .top_k = top_k,
                                     .top_p = narrow(top_p),
                                     .min_p = narrow(min_p),
                                     .repetition = narrow(repetition),
                                     .presence = narrow(presence),
                                     .seed = seed.value_or(std::random_device()())});
  return options;
}

}  // namespace pascaline
