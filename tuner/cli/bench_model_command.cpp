#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tuner/cli/model_options.hpp"
#include "tuner/cli/model_passes.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct BenchModelCommandOptions {
  ModelCommandOptions model;
  std::vector<std::int64_t> prompts{128, 512, 2048};
  std::vector<std::int64_t> image;
  std::int64_t repeats = 10;
  bool as_json = false;
};

// What a pass computes and moves at least.
struct PassWork {
  double flops = 0;
  double bytes = 0;
};

// Matrices of the decoder that every token is multiplied by, without the head; and those of the head.
std::pair<double, double> decoder_elements(const TextConfig& text) {
  const auto hidden = static_cast<double>(text.hidden);
  const auto heads = static_cast<double>(text.heads * text.head_dim);
  const auto kv_heads = static_cast<double>(text.kv_heads * text.head_dim);
  const double layer = hidden * (2 * heads + 2 * kv_heads + 3 * static_cast<double>(text.intermediate));
  return {static_cast<double>(text.layers) * layer, hidden * static_cast<double>(text.vocab)};
}

PassWork prefill_work(const ModelConfig& config, std::int64_t tokens) {
  const auto [layers, head] = decoder_elements(config.text);
  const auto s = static_cast<double>(tokens);
  const auto width = static_cast<double>(config.text.layers * config.text.heads * config.text.head_dim);
  return {2 * (layers * s + head) + 2 * width * s * (s + 1), 0};
}

PassWork decode_work(const Model& model, std::int64_t context) {
  const TextConfig& text = model.config().text;
  const auto [layers, head] = decoder_elements(text);
  const auto length = static_cast<double>(context + 1);
  const auto cached = static_cast<double>(text.layers * 2 * text.kv_heads * text.head_dim) * length;
  return {2 * (layers + head) + 4 * static_cast<double>(text.layers * text.heads * text.head_dim) * length,
          static_cast<double>(size_of(model.options().weights)) * (layers + head) +
              static_cast<double>(size_of(model.options().cache)) * cached};
}

// Median wall time in milliseconds.
double time_pass(Device& device, const ModelPass& pass, std::int64_t repeats) {
  pass.prepare();
  for (int i = 0; i < 3; ++i) {  // compiles, records
    pass.run();
  }
  std::vector<double> times;
  for (std::int64_t i = 0; i < repeats; ++i) {
    device.synchronize();
    const Clock::time_point begin = Clock::now();
    pass.run();
    device.synchronize();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

// Bytes read and written a second by copying within the device's memory, the fastest of some tries.
double copy_bandwidth(Device& device) {
  DeviceMemory& memory = device.memory();
  const bool is_gpu = device.info().kind == DeviceKind::cuda;
  const std::size_t bytes = is_gpu ? std::size_t{1} << 30 : std::size_t{64} << 20;
  const RawBuffer from = memory.allocate_raw(bytes);
  const RawBuffer to = memory.allocate_raw(bytes);
  memory.fill({}, from.span(), 1);
  memory.fill({}, to.span(), 2);
  constexpr int kCopies = 8;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    device.synchronize();
    const Clock::time_point begin = Clock::now();
    for (int copy = 0; copy < kCopies; ++copy) {
      memory.copy({}, to.span(), from.span());
    }
    device.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * kCopies * static_cast<double>(bytes) / seconds);
  }
  return best;
}

struct BenchRow {
  ModelPass pass;
  std::int64_t tokens = 0;
  PassWork work;
  double tuned_ms = 0;
  std::optional<double> untuned_ms;
};

std::vector<BenchRow> rows_of(Model& model, const BenchModelCommandOptions& options) {
  std::vector<BenchRow> rows;
  for (const std::int64_t tokens : options.prompts) {
    rows.push_back({prefill_pass(model, tokens), tokens, prefill_work(model.config(), tokens), 0, {}});
  }
  for (const std::int64_t tokens : options.prompts) {
    rows.push_back({decode_pass(model, tokens), 1, decode_work(model, tokens), 0, {}});
  }
  if (!options.image.empty()) {
    rows.push_back({image_pass(model, options.image[0], options.image[1]), 0, {}, 0, {}});
  }
  return rows;
}

json to_json(const BenchRow& row, double bandwidth) {
  json out{{"pass", row.pass.name}, {"per", row.pass.per}, {"time_ms", row.tuned_ms}, {"tokens", row.tokens}};
  if (row.tokens > 0) {
    out["tokens_per_s"] = 1e3 * static_cast<double>(row.tokens) / row.tuned_ms;
  }
  if (row.untuned_ms) {
    out["untuned_ms"] = *row.untuned_ms;
    out["gain"] = *row.untuned_ms / row.tuned_ms;
  }
  if (row.work.flops > 0) {
    out["tflops"] = 1e-9 * row.work.flops / row.tuned_ms;
  }
  if (row.work.bytes > 0) {
    out["gb_per_s"] = 1e-6 * row.work.bytes / row.tuned_ms;
    out["of_bandwidth_limit"] = 1e3 * row.work.bytes / row.tuned_ms / bandwidth;
  }
  return out;
}

void print_row(const BenchRow& row, double bandwidth) {
  std::string rate = row.work.flops > 0 ? fmt::format("{:.2f} TFLOP/s", 1e-9 * row.work.flops / row.tuned_ms) : "";
  if (row.work.bytes > 0) {
    rate = fmt::format("{:.0f} GB/s, {:.1f} % of the limit", 1e-6 * row.work.bytes / row.tuned_ms,
                       1e5 * row.work.bytes / row.tuned_ms / bandwidth);
  }
  const std::string untuned = row.untuned_ms ? fmt::format("{:.3f}", *row.untuned_ms) : "";
  const std::string gain = row.untuned_ms ? fmt::format("{:.3f}x", *row.untuned_ms / row.tuned_ms) : "";
  const std::string speed =
      row.tokens > 0 ? fmt::format("{:.1f}", 1e3 * static_cast<double>(row.tokens) / row.tuned_ms) : "";
  fmt::print("{:<48} {:>10.3f} {:>10} {:>8} {:>10}  {}\n", row.pass.per, row.tuned_ms, untuned, gain, speed, rate);
}

int bench_model(const BenchModelCommandOptions& options) {
  const auto session = options.model.open_for_numbers();
  Device& device = session->executor().device();
  const double bandwidth = copy_bandwidth(device);
  std::vector<BenchRow> rows = rows_of(session->model(), options);
  for (BenchRow& row : rows) {
    row.tuned_ms = time_pass(device, row.pass, options.repeats);
  }
  Dispatcher* const dispatcher = session->executor().dispatcher();
  const std::optional<std::filesystem::path> database = options.model.session_options().dispatcher.database;
  if (dispatcher != nullptr && database) {
    dispatcher->reload(std::nullopt);
    for (BenchRow& row : rows) {
      session->model().forget_graph();
      row.untuned_ms = time_pass(device, row.pass, options.repeats);
    }
    // Again with the database, so that drift of the card counts for neither: the mean of both is taken.
    dispatcher->reload(database);
    for (BenchRow& row : rows) {
      session->model().forget_graph();
      row.tuned_ms = (row.tuned_ms + time_pass(device, row.pass, options.repeats)) / 2;
    }
  }
  const ModelMemory memory = session->model().memory();
  if (options.as_json) {
    json all = json::array();
    for (const BenchRow& row : rows) {
      all.push_back(to_json(row, bandwidth));
    }
    fmt::print("{}\n", json{{"device", session->device_name()},
                            {"copy_gb_per_s", 1e-9 * bandwidth},
                            {"weights_bytes", memory.weights},
                            {"cache_bytes", memory.cache},
                            {"activations_bytes", memory.activations},
                            {"passes", all}}
                           .dump(2));
    return kSuccess;
  }
  fmt::print("{}; copying: {:.0f} GB/s; weights {} MiB, cache {} MiB, activations {} MiB\n", session->device_name(),
             1e-9 * bandwidth, memory.weights >> 20, memory.cache >> 20, memory.activations >> 20);
  fmt::print("{:<48} {:>10} {:>10} {:>8} {:>10}  {}\n", "", "ms", "untuned", "gain", "tokens/s", "");
  for (const BenchRow& row : rows) {
    print_row(row, bandwidth);
  }
  return kSuccess;
}

}  // namespace

void add_bench_model_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench-model", "Time a model's prompts, decoding and pictures");
  const auto options = std::make_shared<BenchModelCommandOptions>();
  options->model.add_to(*command);
  command->add_option("--prompt-tokens", options->prompts, "Lengths of prompts, and of contexts decoded at")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--image-size", options->image, "Also a picture of HEIGHT WIDTH pixels")
      ->expected(2)
      ->check(CLI::PositiveNumber);
  command->add_option("--repeats", options->repeats, "Runs of each, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Wall time of the whole pass. With a tuned database every pass is timed with it, without, and with it again.\n"
      "The limit of decoding is the time to read weights and cache once at the rate of copying memory.\n\nExample:\n"
      "  pascaline bench-model --model Qwen3-VL-2B-Instruct --db tuned.db --random-weights");
  command->callback([&action, options] { action = [options] { return bench_model(*options); }; });
}

}  // namespace pascaline::cli
