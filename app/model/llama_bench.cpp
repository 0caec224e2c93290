#include "app/model/llama_bench.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "app/model/model_passes.hpp"
#include "core/error.hpp"
#include "core/version.hpp"
#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

std::string backend_of(ModelSession& session) {
  if (session.executor().dispatcher() == nullptr) {
    return "CPU";
  }
  return session.executor().device().info().kind == DeviceKind::cuda ? "CUDA" : "emulator";
}

// The formats of the weights: as the file names them, or as they were asked for.
std::string weights_text(ModelSession& session) {
  const std::string& name = session.model().options().weights.name();
  const std::filesystem::path& path = session.folder().path();
  if (!is_gguf_path(path) || !name.starts_with("GGUF")) {
    return name;
  }
  const GgufFile file = GgufFile::open(path);
  if (const auto type = file.metadata().find_integer("general.file_type")) {
    if (std::string known = gguf_file_type_name(*type); !known.empty()) {
      return known;
    }
  }
  std::map<GgufType, std::size_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    bytes[tensor.type] += tensor.bytes.size();
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& one, const auto& two) { return one.second < two.second; });
  return most == bytes.end() ? name : std::string(name_of(most->first));
}

// The family, its size and the formats of its weights.
std::string model_text(ModelSession& session) {
  const auto parameters = static_cast<double>(parameter_count(session.config()));
  const std::string size = parameters < 1e6   ? fmt::format("{:.0f}K", parameters / 1e3)
                           : parameters < 1e9 ? fmt::format("{:.0f}M", parameters / 1e6)
                                              : fmt::format("{:.1f}B", parameters / 1e9);
  const AttentionChoice& attention = session.model().options().attention;
  return fmt::format("{} {} {}{}", traits_of(session.config().family).model_type, size, weights_text(session),
                     attention.is_dense() ? "" : ", attention " + attention.name());
}

// Of the decoder, those that a GPU runs from its own memory.
std::int64_t gpu_layers(ModelSession& session) {
  return backend_of(session) == "CUDA"
             ? static_cast<std::int64_t>(session.model().plan().residency.count(Residency::device))
             : 0;
}

std::int64_t threads_here() { return std::max(1U, std::thread::hardware_concurrency()); }

std::string ggml_name(ElementType type) {
  return type == ElementType::float32 ? "f32" : type == ElementType::float16 ? "f16" : std::string(name_of(type));
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double middle = mean_of(values);
  const double squares = std::accumulate(values.begin(), values.end(), 0.0, [middle](double sum, double one) {
    return sum + (one - middle) * (one - middle);
  });
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// A count in a unit, or in the next smaller one if it is less than one of it.
std::string in_units(double count, double unit, const char* name, const char* smaller, double factor) {
  return count < unit ? fmt::format("{:.2f} {}", count * factor / unit, smaller)
                      : fmt::format("{:.2f} {}", count / unit, name);
}

// Seconds of what is timed of a run.
double run_once(ModelSession& session, const LlamaBenchTest& test) {
  Model& model = session.model();
  Device& device = session.executor().device();
  model.clear();
  // A token is generated after another at least.
  const std::int64_t before = test.generated > 0 ? std::max<std::int64_t>(1, test.depth) : test.depth;
  if (before > 0) {
    append_some(model, before);
  }
  if (test.generated > 0) {
    model.set_sampling({});
    (void)model.sample();
  }
  device.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  if (test.prompt > 0) {
    append_some(model, test.prompt);
  }
  for (std::int64_t i = 0; i < test.generated; ++i) {
    (void)model.step();
  }
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::string LlamaBenchTest::name() const {
  return fmt::format("{}{}{}", prompt > 0 ? "pp" : "tg", tokens(), depth > 0 ? fmt::format(" @ d{}", depth) : "");
}

std::int64_t LlamaBenchTest::context() const noexcept {
  // The token chosen last has a position, too.
  return depth + tokens() + (generated > 0 ? 2 : 0);
}

std::vector<double> LlamaBenchResult::tokens_per_s() const {
  std::vector<double> rates;
  rates.reserve(seconds.size());
  for (const double one : seconds) {
    rates.push_back(static_cast<double>(test.tokens()) / one);
  }
  return rates;
}

double LlamaBenchResult::mean() const { return mean_of(tokens_per_s()); }

double LlamaBenchResult::deviation() const { return deviation_of(tokens_per_s()); }

std::string gguf_file_type_name(std::int64_t file_type) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 21> kNames{
      {{0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},      {9, "Q5_1"},
       {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"},   {16, "Q5_K_S"},
       {17, "Q5_K_M"}, {18, "Q6_K"},   {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"},   {38, "MXFP4_MOE"}}};
  const auto* const found =
      std::find_if(kNames.begin(), kNames.end(), [file_type](const auto& name) { return name.first == file_type; });
  return found == kNames.end() ? std::string() : std::string(found->second);
}

std::vector<LlamaBenchTest> llama_bench_tests(const std::vector<std::int64_t>& prompts,
                                              const std::vector<std::int64_t>& generated,
                                              const std::vector<std::int64_t>& depths) {
  std::vector<LlamaBenchTest> tests;
  for (const std::int64_t depth : depths) {
    for (const std::int64_t tokens : prompts) {
      if (tokens > 0) {
        tests.push_back({tokens, 0, depth});
      }
    }
    for (const std::int64_t tokens : generated) {
      if (tokens > 0) {
        tests.push_back({0, tokens, depth});
      }
    }
  }
  return tests;
}

LlamaBenchResult run_llama_bench(ModelSession& session, const LlamaBenchTest& test, std::int64_t repeats) {
  LlamaBenchResult result{test, {}, {}, fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))};
  try {
    (void)run_once(session, test);  // compiles, records
    for (std::int64_t i = 0; i < repeats; ++i) {
      result.seconds.push_back(run_once(session, test));
    }
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error& error) {
    result.seconds.clear();
    result.failure = error.what();
  }
  return result;
}

std::string llama_bench_table(ModelSession& session, const std::vector<LlamaBenchResult>& results) {
  // As there: threads where the processor runs the model, else layers on the GPU.
  const bool on_gpu = backend_of(session) == "CUDA";
  const int width = on_gpu ? 3 : 7;
  const std::int64_t number = on_gpu ? gpu_layers(session) : threads_here();
  constexpr const char* kRow = "| {:<30} | {:>10} | {:>10} | {:<10} | {:>{}} | {:>15} | {:>20} |\n";
  std::string table = fmt::format(fmt::runtime(kRow), "model", "size", "params", "backend", on_gpu ? "ngl" : "threads",
                                  width, "test", "t/s");
  table += fmt::format("| {:-<30} | {:->9}: | {:->9}: | {:-<10} | {:->{}}: | {:->14}: | {:->19}: |\n", "", "", "", "",
                       "", width - 1, "", "");
  const std::string size = in_units(static_cast<double>(session.model().memory().weights), 1 << 30, "GiB", "MiB", 1024);
  const std::string parameters = in_units(static_cast<double>(parameter_count(session.config())), 1e9, "B", "M", 1000);
  const std::string model = model_text(session);
  for (const LlamaBenchResult& result : results) {
    table +=
        fmt::format(fmt::runtime(kRow), model, size, parameters, backend_of(session), number, width, result.test.name(),
                    result.failure.empty() ? fmt::format("{:.2f} ± {:.2f}", result.mean(), result.deviation())
                                           : "failed: " + result.failure);
  }
  return table;
}

json llama_bench_json(ModelSession& session, const std::vector<LlamaBenchResult>& results) {
  const ModelOptions& options = session.model().options();
  const bool on_gpu = backend_of(session) == "CUDA";
  const json common{{"build_commit", kVersion},
                    {"cpu_info", open_device("emulator")->info().name},
                    {"gpu_info", on_gpu ? session.device_name() : ""},
                    {"backends", backend_of(session)},
                    {"model_filename", session.folder().path().string()},
                    {"model_type", model_text(session)},
                    {"model_size", session.model().memory().weights},
                    {"model_n_params", parameter_count(session.config())},
                    {"n_batch", options.chunk},
                    {"n_ubatch", options.chunk},
                    {"n_threads", threads_here()},
                    {"type_k", ggml_name(options.cache)},
                    {"type_v", ggml_name(options.cache)},
                    {"n_gpu_layers", gpu_layers(session)}};
  json all = json::array();
  for (const LlamaBenchResult& result : results) {
    json one = common;
    one["n_prompt"] = result.test.prompt;
    one["n_gen"] = result.test.generated;
    one["n_depth"] = result.test.depth;
    one["test_time"] = result.begun;
    if (result.failure.empty()) {
      std::vector<double> nanoseconds;
      json whole = json::array();
      for (const double seconds : result.seconds) {
        nanoseconds.push_back(1e9 * seconds);
        whole.push_back(std::llround(nanoseconds.back()));
      }
      one["avg_ns"] = std::llround(mean_of(nanoseconds));
      one["stddev_ns"] = std::llround(deviation_of(nanoseconds));
      one["samples_ns"] = std::move(whole);
      one["avg_ts"] = result.mean();
      one["stddev_ts"] = result.deviation();
      one["samples_ts"] = result.tokens_per_s();
    } else {
      one["failure"] = result.failure;
    }
    all.push_back(std::move(one));
  }
  return all;
}

json answer_tests(const Answer& answer, std::int64_t depth) {
  json tests = json::array();
  if (answer.prompt_ms > 0) {
    tests.push_back({{"test", LlamaBenchTest{answer.prompt_tokens, 0, depth}.name()},
                     {"tokens_per_s", answer.prompt_tokens_per_second()}});
  }
  if (answer.tokens_per_second() > 0) {
    const LlamaBenchTest test{0, static_cast<std::int64_t>(answer.tokens.size()) - 1, depth + answer.prompt_tokens};
    tests.push_back({{"test", test.name()}, {"tokens_per_s", answer.tokens_per_second()}});
  }
  return tests;
}

}  // namespace pascaline
