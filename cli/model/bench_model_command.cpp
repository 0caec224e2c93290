#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/model/llama_bench.hpp"
#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"
#include "app/model/thermal_text.hpp"
#include "cli/command.hpp"
#include "cli/model/model_work.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kWarmups = 3;
constexpr std::int64_t kUsualLlamaBenchPrompt = 512;
constexpr std::int64_t kUsualSide = 1024;  // pixels of an image's sides

struct BenchModelCommandOptions {
  ModelCommandOptions model;
  PassCommandOptions sizes{.usual_prompts = {128, 512, 2048},
                           .usual_image = "1024 1024, or the largest square that the model takes",
                           .prompts = {},
                           .image = {}};
  std::int64_t repeats = 10;
  bool no_image = false;
  bool as_json = false;
  std::string format = "table";
  std::vector<std::int64_t> generated{128};
  std::vector<std::int64_t> depths{0};

  [[nodiscard]] bool is_llama_bench() const { return format.starts_with("llama-bench"); }
};

// Median wall time in milliseconds, after one run at least.
double time_pass(Device& device, const ModelPass& pass, std::int64_t repeats) {
  for (int i = 1; i < kWarmups; ++i) {  // compiles, records
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
double copy_bandwidth(Device& device, DeviceMemory& memory) {
  const bool is_gpu = device.info().kind == DeviceKind::cuda;
  const std::size_t wanted = is_gpu ? std::size_t{1} << 30 : std::size_t{64} << 20;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, memory.state().free_bytes / 4));
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

// What the device can do at most.
struct PeakRates {
  double bandwidth = 0;            // bytes a second, measured
  std::optional<double> flops;     // float32, a second, where the device tells
  bool flops_measured = false;     // by `pascaline probe`
  std::optional<double> int8_ops;  // by dp4a, a second

  // Seconds that a pass's operations take at these rates.
  [[nodiscard]] std::optional<double> seconds_of(const PassWork& work) const {
    if (!flops || work.flops <= 0 || (work.int8_ops > 0 && !int8_ops)) {
      return std::nullopt;
    }
    return (work.flops - work.int8_ops) / *flops + (work.int8_ops > 0 ? work.int8_ops / *int8_ops : 0);
  }
};

struct BenchRow {
  ModelPass pass;
  std::int64_t tokens = 0;
  std::int64_t cached = 0;     // tokens, those of the pass among them
  bool by_bytes = false;       // reading what is held takes the time
  std::uint64_t launches = 0;  // of a token, of a decoding step with kernels
  PassWork work = {};
  double tuned_ms = 0;
  std::optional<double> untuned_ms = {};
  std::string failure = {};  // why there is no time

  [[nodiscard]] std::optional<double> of_limit(const PeakRates& rates) const {
    if (by_bytes) {
      return 1e3 * work.bytes / tuned_ms / rates.bandwidth;
    }
    const auto seconds = rates.seconds_of(work);
    return seconds ? std::optional(1e3 * *seconds / tuned_ms) : std::nullopt;
  }
};

std::vector<BenchRow> rows_of(Model& model, const PassCommandOptions& sizes) {
  std::vector<BenchRow> rows;
  for (const std::int64_t tokens : sizes.prompts) {
    rows.push_back({prefill_pass(model, tokens), tokens, tokens});
  }
  for (const std::int64_t tokens : sizes.prompts) {
    rows.push_back({decode_pass(model, tokens), 1, tokens + 1, true});
  }
  if (!sizes.image.empty()) {
    rows.push_back({image_pass(model, sizes.image[0], sizes.image[1])});
  }
  return rows;
}

// Times the rows that have not failed yet; what fails now is kept with its reason.
template <typename Keep>
void time_rows(ModelSession& session, std::vector<BenchRow>& rows, const std::filesystem::path& spaces,
               std::int64_t repeats, const Keep& keep) {
  for (BenchRow& row : rows) {
    if (!row.failure.empty()) {
      continue;
    }
    session.model().forget_graph();
    try {
      row.pass.prepare();
      row.work = observed_work(session.executor(), spaces, row.pass.run, row.cached);
      keep(row, time_pass(session.executor().device(), row.pass, repeats));
      row.launches = row.by_bytes ? session.model().launches_of_step() : 0;
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      row.failure = error.what();
    }
  }
}

json to_json(const BenchRow& row, const PeakRates& rates) {
  json out{{"pass", row.pass.name}, {"per", row.pass.per}, {"tokens", row.tokens}};
  if (!row.failure.empty()) {
    out["failure"] = row.failure;
    return out;
  }
  out["time_ms"] = row.tuned_ms;
  if (row.launches > 0) {
    out["launches_per_token"] = row.launches;
  }
  if (row.tokens > 0) {
    out["tokens_per_s"] = 1e3 * static_cast<double>(row.tokens) / row.tuned_ms;
  }
  if (row.untuned_ms) {
    out["untuned_ms"] = *row.untuned_ms;
    out["speedup"] = *row.untuned_ms / row.tuned_ms;
  }
  out["tflops"] = 1e-9 * row.work.flops / row.tuned_ms;
  if (row.by_bytes) {
    out["gb_per_s"] = 1e-6 * row.work.bytes / row.tuned_ms;
  }
  if (const auto share = row.of_limit(rates)) {
    out[row.by_bytes ? "of_bandwidth_limit" : "of_flop_limit"] = *share;
  }
  return out;
}

void print_row(const BenchRow& row, const PeakRates& rates) {
  if (!row.failure.empty()) {
    fmt::print("{:<48} failed: {}\n", row.pass.per, clean_line(row.failure));
    return;
  }
  std::string rate = row.by_bytes ? fmt::format("{:.0f} GB/s", 1e-6 * row.work.bytes / row.tuned_ms)
                                  : fmt::format("{:.2f} TFLOP/s", 1e-9 * row.work.flops / row.tuned_ms);
  if (const auto share = row.of_limit(rates)) {
    rate += fmt::format(", {:.1f} % of the {}", 100 * *share, row.by_bytes ? "limit" : "arithmetic limit");
  }
  const std::string untuned = row.untuned_ms ? fmt::format("{:.3f}", *row.untuned_ms) : "";
  const std::string speedup = row.untuned_ms ? fmt::format("{:.3f}x", *row.untuned_ms / row.tuned_ms) : "";
  const std::string speed =
      row.tokens > 0 ? fmt::format("{:.1f}", 1e3 * static_cast<double>(row.tokens) / row.tuned_ms) : "";
  fmt::print("{:<48} {:>10.3f} {:>10} {:>8} {:>10}  {}\n", row.pass.per, row.tuned_ms, untuned, speedup, speed, rate);
}

std::string peak_text(const PeakRates& rates) {
  if (!rates.flops) {
    return "";
  }
  return fmt::format(", at most {:.2f} TFLOP/s{}{}", 1e-12 * *rates.flops,
                     rates.int8_ops ? fmt::format(", with int8 {:.2f} TOP/s", 1e-12 * *rates.int8_ops) : "",
                     rates.flops_measured ? " (measured by pascaline probe)" : "");
}

void print_all(ModelSession& session, const std::vector<BenchRow>& rows, const PeakRates& rates, bool as_json) {
  const ModelMemory memory = session.model().memory();
  const AttentionChoice& attention = session.model().options().attention;
  if (as_json) {
    json all = json::array();
    for (const BenchRow& row : rows) {
      all.push_back(to_json(row, rates));
    }
    json out{{"device", session.device_name()},
             {"copy_gb_per_s", 1e-9 * rates.bandwidth},
             {"weights_bytes", memory.weights},
             {"cache_bytes", memory.cache},
             {"activations_bytes", memory.activations},
             {"attention", attention.name()},
             {"passes", all},
             {"thermal", thermal_json(session)}};
    if (rates.flops) {
      out["peak_tflops"] = 1e-12 * *rates.flops;
      out["peak_tflops_measured"] = rates.flops_measured;
    }
    if (rates.int8_ops) {
      out["peak_int8_tops"] = 1e-12 * *rates.int8_ops;
    }
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("{}; copying: {:.0f} GB/s{}; weights {} MiB, cache {} MiB, activations {} MiB\n", session.device_name(),
             1e-9 * rates.bandwidth, peak_text(rates), memory.weights >> 20, memory.cache >> 20,
             memory.activations >> 20);
  if (!attention.is_dense()) {
    fmt::print("attention {}, which leaves something out of {} tokens or more\n", attention.name(),
               shortest_sparse(attention));
  }
  fmt::print("{:<48} {:>10} {:>10} {:>8} {:>10}  {}\n", "", "ms", "untuned", "speedup", "tokens/s", "");
  for (const BenchRow& row : rows) {
    print_row(row, rates);
  }
  const auto decoding = std::find_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.launches > 0; });
  if (decoding != rows.end()) {
    fmt::print("a token takes {} launches\n", decoding->launches);
  }
  tell_thermal_events(session);
  fmt::print("{}", thermal_line(session));
}

// Float32 operations as the device was measured to do them, if the database knows, else as its clock says.
PeakRates peak_rates(Executor& executor, const std::optional<std::filesystem::path>& database) {
  Device& device = executor.device();
  const Sensors sensors = device.read_sensors();
  PeakRates rates{copy_bandwidth(device, executor.memory()), peak_flops(device.info(), sensors), false,
                  peak_int8_ops(device.info(), sensors)};
  if (executor.dispatcher() != nullptr && database) {
    const Store store(*database, OpenMode::read_only);
    const MeasuredRates measured = store.measured_rates(device_row(device.info()));
    if (const auto gflops = measured.of(ProbeQuantity::ffma_gflops)) {
      rates.flops = 1e9 * *gflops;
      rates.flops_measured = true;
    }
    if (const auto gops = measured.of(ProbeQuantity::dp4a_gops)) {
      rates.int8_ops = 1e9 * *gops;
    }
  }
  return rates;
}

// The usual image, or the largest square that the model takes, if it reads images.
void choose_image(const ModelFolder& folder, BenchModelCommandOptions& options) {
  if (options.sizes.image.empty() && !options.no_image && folder.config().vision) {
    const auto most = static_cast<std::int64_t>(std::sqrt(static_cast<double>(most_pixels(folder))));
    options.sizes.image = {std::min(kUsualSide, most), std::min(kUsualSide, most)};
  }
}

// What llama.cpp's program of that name measures, in its form.
int bench_as_llama_bench(const BenchModelCommandOptions& options) {
  const std::vector<std::int64_t> prompts =
      options.sizes.prompts.empty() ? std::vector<std::int64_t>{kUsualLlamaBenchPrompt} : options.sizes.prompts;
  const std::vector<LlamaBenchTest> tests = llama_bench_tests(prompts, options.generated, options.depths);
  if (tests.empty()) {
    throw Error("no test is left: give --prompt-tokens or --generated above 0");
  }
  ModelFolder folder = options.model.read_for_numbers();
  const std::int64_t context = options.model.prompt_limits(folder).context;
  ModelRequest request;
  request.is_all = true;
  for (const LlamaBenchTest& test : tests) {
    request.tokens = std::max(request.tokens, test.context());
    if (test.context() > context) {
      throw Error(fmt::format("{} needs a context of {} tokens, and there is one of {}: give a larger --context",
                              test.name(), test.context(), context));
    }
  }
  if (options.model.plan) {
    options.model.show_plan(folder, request, options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder), request);
  std::vector<LlamaBenchResult> results;
  for (const LlamaBenchTest& test : tests) {
    session->model().forget_graph();
    results.push_back(run_llama_bench(*session, test, options.repeats));
  }
  fmt::print("{}", options.format == "llama-bench" ? llama_bench_table(*session, results)
                                                   : llama_bench_json(*session, results).dump(2) + "\n");
  note_thermal(*session);
  return std::all_of(results.begin(), results.end(), [](const auto& result) { return result.failure.empty(); })
             ? kSuccess
             : kFault;
}

int bench_model(const BenchModelCommandOptions& given) {
  if (given.is_llama_bench()) {
    return bench_as_llama_bench(given);
  }
  BenchModelCommandOptions options = given;
  ModelFolder folder = options.model.read_for_numbers();
  const std::int64_t generated = kWarmups + options.repeats + 1;
  options.sizes.choose_prompts(options.model.prompt_limits(folder).context, generated);
  choose_image(folder, options);
  const ModelRequest request = request_of(folder, options.sizes, generated);
  if (options.model.plan) {
    options.model.show_plan(folder, request, options.as_json);
    return kSuccess;
  }
  const auto session = options.model.open(std::move(folder), request);
  const std::optional<std::filesystem::path> database = options.model.session_options().dispatcher.database;
  const PeakRates rates = peak_rates(session->executor(), database);
  std::vector<BenchRow> rows = rows_of(session->model(), options.sizes);
  const std::filesystem::path given_spaces = options.model.session_options().dispatcher.spaces;
  const std::filesystem::path spaces = given_spaces.empty() ? data_folder("search_spaces") : given_spaces;
  time_rows(*session, rows, spaces, options.repeats, [](BenchRow& row, double ms) { row.tuned_ms = ms; });
  Dispatcher* const dispatcher = session->executor().dispatcher();
  if (dispatcher != nullptr && database) {
    dispatcher->reload(std::nullopt);
    time_rows(*session, rows, spaces, options.repeats, [](BenchRow& row, double ms) { row.untuned_ms = ms; });
    // Again with the database, so that drift of the card counts for neither: the mean of both is taken.
    dispatcher->reload(database);
    time_rows(*session, rows, spaces, options.repeats,
              [](BenchRow& row, double ms) { row.tuned_ms = (row.tuned_ms + ms) / 2; });
  }
  print_all(*session, rows, rates, options.as_json);
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.failure.empty(); }) ? kSuccess
                                                                                                        : kFault;
}

void add_bench_model_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench-model", "Time a model's prompts, decoding and images");
  const auto options = std::make_shared<BenchModelCommandOptions>();
  options->model.add_to(*command);
  options->model.add_residency_to(*command);
  options->sizes.add_to(*command, 0);
  command->add_flag("--no-image", options->no_image, "Without an image")->excludes("--image-size");
  command->add_option("--repeats", options->repeats, "Runs of each, of which the median counts")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  CLI::Option* const format =
      command
          ->add_option(
              "--format", options->format,
              "table; json; llama-bench: a Markdown table of tokens a second as llama.cpp's program of that "
              "name prints it, its means and deviations over the runs, without an image; llama-bench-json: the "
              "same with its names of fields")
          ->check(CLI::IsMember({"table", "json", "llama-bench", "llama-bench-json"}))
          ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print JSON, as --format json")->excludes(format);
  command->add_option("--generated", options->generated, "With llama-bench's formats: tokens to generate; 0: none")
      ->transform(whole_number(0))
      ->capture_default_str();
  command
      ->add_option("--depth", options->depths,
                   "With llama-bench's formats: tokens in the cache before each test (tg128 @ d2048)")
      ->transform(whole_number(0))
      ->capture_default_str();
  command->footer(
      "Wall time of whole passes. With a tuned database each pass is timed with it, without it, and with it again.\n"
      "The limit of decoding is the time to move its bytes at the rate of copying memory, that of prompts\n"
      "and images the card's float32 and int8 operations, as pascaline probe measured them if the database has that, "
      "else at "
      "its highest clock.\nA pass that fails is reported, and the exit code "
      "is 1.\n\n"
      "Example:\n"
      "  pascaline bench-model --model Qwen3-VL-2B-Instruct --db tuned.db --random-weights\n"
      "  pascaline bench-model --model model.gguf --format llama-bench --prompt-tokens 512 1024 --depth 0 2048");
  command->callback([&action, options, command] {
    for (const char* name : {"--generated", "--depth"}) {
      if (command->count(name) > 0 && !options->is_llama_bench()) {
        throw CLI::ValidationError(name,
                                   "is only for llama-bench's formats: give --format llama-bench or llama-bench-json");
      }
    }
    for (const char* name : {"--no-image", "--image-size"}) {
      if (command->count(name) > 0 && options->is_llama_bench()) {
        throw CLI::ValidationError(name, "is not for llama-bench's formats, which have no images");
      }
    }
    const std::vector<std::int64_t>& prompts = options->sizes.prompts;
    if (std::find(prompts.begin(), prompts.end(), 0) != prompts.end() && !options->is_llama_bench()) {
      throw CLI::ValidationError(
          "--prompt-tokens",
          "0, which leaves prompts out, is only for llama-bench's formats: give --format llama-bench or "
          "llama-bench-json");
    }
    options->as_json = options->as_json || options->format.ends_with("json");
    action = [options] { return bench_model(*options); };
  });
}

const Command kBenchModelCommand(Heading::models, 3, add_bench_model_command);

}  // namespace

}  // namespace pascaline::cli
