// A model under a limit of the device's memory beside the same model without one: what the driver says is used, the
// time of a prompt with an image and of decoding, and whether the greedily chosen tokens are the same wherever the
// likeliest is ahead by more than a margin. Weights are drawn at random; the folder needs only config.json.
//
//   compare_placement --model DIR [--memory-limit 1900M] [--offload stream] [--vision stream] [--weights q4_k]
//   [--context 2048] [--image 512] [--tokens 64] [--device cuda:0] [--target sm_61] [--db tuned.db] [--alone]
//
// --offload and --vision are of the model under the limit alone; the other has all on the device, if it fits.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/byte_size.hpp"
#include "runtime/checkpoint/weight_source.hpp"
#include "runtime/memory/pool.hpp"
#include "runtime/model/model.hpp"

namespace {

using namespace pascaline;
using Clock = std::chrono::steady_clock;

constexpr double kMiB = 1 << 20;

struct Options {
  std::string model;
  std::string device = "cuda:0";
  std::string target;
  std::string database;
  std::string weights = "q4_k";
  std::string limit;
  std::string offload = "auto";
  std::string vision = "auto";
  std::int64_t context = 2048;
  std::int64_t image = 512;
  std::int64_t prompt = 512;
  int tokens = 64;
  double margin = 0.01;
  bool alone = false;
};

/// A model with all that it runs with.
struct Instance {
  Instance(Device& device, const Options& options, const ModelConfig& config, std::uint64_t limit, bool is_limited)
      : pool(device.memory(), limit), dispatcher(device, dispatch(options), &pool), executor(dispatcher) {
    ModelOptions model_options;
    model_options.weights =
        options.weights.ends_with(".json") ? WeightRecipe::load(options.weights) : WeightRecipe::named(options.weights);
    model_options.context = options.context;
    if (is_limited) {
      model_options.placement.vision = vision_place_named(options.vision);
      model_options.placement.offload = offload_named(options.offload);
    }
    model_options.request = {options.context, options.image > 0 ? 1 : 0, 0, 0, false, true};
    if (options.image > 0) {
      const std::int64_t side = options.image / config.vision.value().patch;
      model_options.request.patches = side * side;
      model_options.request.longest_side = side;
    }
    WeightSource weights = random_weights(config, 1);
    model = std::make_unique<Model>(executor, config, weights, model_options);
  }
  static DispatcherOptions dispatch(const Options& options) {
    DispatcherOptions result;
    result.target = options.target;
    if (!options.database.empty()) {
      result.database = options.database;
    }
    return result;
  }

  MemoryPool pool;
  Dispatcher dispatcher;
  Executor executor;
  std::unique_ptr<Model> model;
};

/// What was chosen after a prompt, and how sure it was.
struct Run {
  std::vector<std::int32_t> tokens;
  std::vector<float> ahead;  // of the likeliest token's logit over the next
  std::vector<std::int32_t> likeliest;
  std::vector<std::vector<float>> logits;
  double image_ms = 0;  // of encoding alone
  double prompt_ms = 0;
  double token_ms = 0;
};

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Reads the prompt, then as many tokens as asked for: those of `forced`, or the likeliest.
Run answer(Instance& instance, const Options& options, const std::vector<std::int32_t>* forced) {
  Model& model = *instance.model;
  const ModelConfig& config = model.config();
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(options.prompt));
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<std::int32_t>((7919 * i + 13) % static_cast<std::size_t>(config.text.vocab / 2));
  }
  std::vector<float> pixels;
  std::vector<PatchView> images;
  if (options.image > 0) {
    const VisionConfig& vision = config.vision.value();
    const std::int64_t side = options.image / vision.patch;
    const auto count = static_cast<std::size_t>(side * side * vision.patch_values());
    const std::vector<double> drawn =
        widen(ElementType::float32, draw_elements(ElementType::float32, count, Fill::uniform, -1, 1, 5));
    pixels.assign(drawn.begin(), drawn.end());
    images.push_back({side, side, pixels});
    const std::int64_t merged = side * side / (vision.merge * vision.merge);
    if (merged + 8 > options.prompt) {
      throw Error(fmt::format("the image has {} tokens, the prompt {}", merged, options.prompt));
    }
    std::fill_n(prompt.begin() + 4, merged, static_cast<std::int32_t>(vision.image_token));
  }
  Run run;
  model.clear();
  (void)model.append({prompt, images});  // the first time code is compiled
  model.clear();
  Clock::time_point begin = Clock::now();
  if (!images.empty()) {
    (void)model.encode(images);
    instance.executor.device().synchronize();
    run.image_ms = milliseconds_since(begin);
  }
  begin = Clock::now();
  (void)model.append({prompt, images});
  (void)model.logits();
  run.prompt_ms = milliseconds_since(begin);
  begin = Clock::now();
  for (int i = 0; i < options.tokens; ++i) {
    std::vector<float> logits = model.logits();
    const auto best = std::max_element(logits.begin(), logits.end());
    run.likeliest.push_back(static_cast<std::int32_t>(best - logits.begin()));
    run.logits.push_back(logits);
    const float highest = *best;
    *best = -std::numeric_limits<float>::infinity();
    run.ahead.push_back(highest - *std::max_element(logits.begin(), logits.end()));
    run.tokens.push_back(forced == nullptr ? run.likeliest.back() : forced->at(static_cast<std::size_t>(i)));
    model.choose(run.tokens.back());
    (void)model.step();
  }
  (void)model.logits();
  run.token_ms = milliseconds_since(begin) / options.tokens;
  return run;
}

// Root mean square of the differences of both runs' logits, over the standard deviation of the second's.
double difference(const Run& one, const Run& other) {
  double sum = 0;
  double square = 0;
  double apart = 0;
  double count = 0;
  for (std::size_t row = 0; row < other.logits.size(); ++row) {
    for (std::size_t i = 0; i < other.logits[row].size(); ++i) {
      const double value = other.logits[row][i];
      const double by = one.logits[row][i] - value;
      sum += value;
      square += value * value;
      apart += by * by;
      ++count;
    }
  }
  const double mean = sum / count;
  return std::sqrt(apart / count) / std::sqrt(square / count - mean * mean);
}

void print_used(const char* when, Device& device) {
  const MemoryState state = device.memory().state();
  fmt::print("{}: the driver has {:.0f} MiB in use of {:.0f}, its context took {:.0f}\n", when,
             static_cast<double>(state.total_bytes - state.free_bytes) / kMiB,
             static_cast<double>(state.total_bytes) / kMiB, static_cast<double>(state.context_bytes) / kMiB);
}

void print_run(const char* name, const Instance& instance, const Run& run) {
  const ModelPlan& plan = instance.model->plan();
  const Placement& placement = plan.placement;
  const std::string tower =
      placement.vision == Place::streamed
          ? fmt::format("{} of {} parts streamed", placement.streamed_of_tower(), placement.tower.size())
          : std::string(name_of(placement.vision));
  fmt::print(
      "{}: {} of {} layers on the device, {} streamed, head: {}, vision tower: {}; image {:.1f} ms, prompt with "
      "it {:.1f} ms, token {:.2f} ms; pool's most {:.0f} MiB\n",
      name, placement.count(Place::device), placement.layers.size(), placement.count(Place::streamed),
      name_of(placement.head), plan.sizes.has_vision() ? tower : "none", run.image_ms, run.prompt_ms, run.token_ms,
      static_cast<double>(instance.pool.statistics().peak_held_bytes) / kMiB);
}

// What was expected, if it was measured for.
void print_expected(const Model& model) {
  if (const ModelPlan& plan = model.plan(); plan.rates) {
    const PassTimes& times = plan.choices.front().times;
    fmt::print(
        "expected: image {:.1f} ms, prompt of {} without it {:.1f} ms, token {:.2f} ms; copies {:.1f} GB/s, "
        "processor {:.1f} GB/s and {:.1f} GFLOP/s\n",
        1e3 * times.images, kPlannedPrompt, 1e3 * times.prompt, 1e3 * times.token, 1e-9 * plan.rates->copy,
        1e-9 * plan.rates->processor_bytes, 1e-9 * plan.rates->processor_flops);
  }
}

int compare(const Options& options) {
  const ModelConfig config = load_model_config(options.model);
  const std::uint64_t limit = options.limit.empty() ? MemoryPool::kUnlimited : parse_byte_size(options.limit);
  const auto device = open_device(options.device);
  print_used("before loading", *device);
  Run limited;
  {
    Instance instance(*device, options, config, limit, true);
    print_used("loaded with the limit", *device);
    limited = answer(instance, options, nullptr);
    print_used("after the answer", *device);
    print_run("with the limit", instance, limited);
    print_expected(*instance.model);
  }
  if (options.alone) {
    return 0;
  }
  Instance instance(*device, options, config, MemoryPool::kUnlimited, false);
  const Run whole = answer(instance, options, &limited.tokens);
  print_run("without", instance, whole);
  int sure = 0;
  int other = 0;
  int other_unsure = 0;
  for (std::size_t i = 0; i < whole.tokens.size(); ++i) {
    const bool is_other = whole.likeliest[i] != limited.tokens[i];
    const bool is_sure = whole.ahead[i] > options.margin;
    sure += is_sure ? 1 : 0;
    other += is_other && is_sure ? 1 : 0;
    other_unsure += is_other && !is_sure ? 1 : 0;
  }
  fmt::print("{} tokens, {} of them ahead by more than {}: {} differ; of the others {}\n", whole.tokens.size(), sure,
             options.margin, other, other_unsure);
  fmt::print("logits differ by {:.2e} of their standard deviation (root mean square)\n", difference(limited, whole));
  return other == 0 ? 0 : 1;
}

int command(int argc, char** argv) {
  Options options;
  CLI::App app("A model under a limit of memory beside the same without one");
  app.add_option("-m,--model", options.model, "Folder with config.json")->required();
  app.add_option("-d,--device", options.device, "cuda:N or emulator")->capture_default_str();
  app.add_option("--target", options.target, "Compile for this architecture");
  app.add_option("--db", options.database, "Tuned database");
  app.add_option("--weights", options.weights, "Type of the weights, or a recipe's file")->capture_default_str();
  app.add_option("--memory-limit", options.limit, "E.g. 1900MiB");
  app.add_option("--offload", options.offload, "cpu, stream or auto: what is done with layers that are not kept")
      ->check(CLI::IsMember({"cpu", "stream", "auto"}))
      ->capture_default_str();
  app.add_option("--vision", options.vision, "gpu, stream, cpu or auto: where images are encoded")
      ->check(CLI::IsMember({"gpu", "stream", "cpu", "auto"}))
      ->capture_default_str();
  app.add_option("--context", options.context, "Tokens")->capture_default_str();
  app.add_option("--image", options.image, "Side of the image in pixels; 0: none")->capture_default_str();
  app.add_option("--prompt-tokens", options.prompt, "Tokens of the prompt")->capture_default_str();
  app.add_option("-n,--tokens", options.tokens, "Tokens to choose")->capture_default_str();
  app.add_option("--margin", options.margin, "A logit ahead by more decides")->capture_default_str();
  app.add_flag("--alone", options.alone, "Without the model without a limit");
  CLI11_PARSE(app, argc, argv);
  return compare(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_placement: %s\n", error.what());
    return 1;
  }
}
