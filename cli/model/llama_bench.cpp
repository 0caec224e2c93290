#include "cli/model/llama_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "cli/model/model_passes.hpp"
#include "core/error.hpp"
#include "runtime/checkpoint/model_family.hpp"
#include "runtime/checkpoint/weight_table.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

std::string backend_of(Session& session) {
  if (session.executor().dispatcher() == nullptr) {
    return "CPU";
  }
  return session.executor().device().info().kind == DeviceKind::cuda ? "CUDA" : "emulator";
}

std::string model_text(Session& session) {
  return fmt::format("{} {}", traits_of(session.config().family).model_type, session.model().options().weights.name());
}

// A count in a unit, or in the next smaller one if it is less than one of it.
std::string in_units(double count, double unit, const char* name, const char* smaller, double factor) {
  return count < unit ? fmt::format("{:.2f} {}", count * factor / unit, smaller)
                      : fmt::format("{:.2f} {}", count / unit, name);
}

// Seconds of what is timed of a run.
double run_once(Session& session, const LlamaBenchTest& test) {
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
  // The token chosen last has a place, too.
  return depth + tokens() + (generated > 0 ? 2 : 0);
}

double LlamaBenchResult::mean() const noexcept {
  return tokens_per_s.empty() ? 0
                              : std::accumulate(tokens_per_s.begin(), tokens_per_s.end(), 0.0) /
                                    static_cast<double>(tokens_per_s.size());
}

double LlamaBenchResult::deviation() const noexcept {
  const double middle = mean();
  const double squares =
      std::accumulate(tokens_per_s.begin(), tokens_per_s.end(), 0.0,
                      [middle](double sum, double one) { return sum + (one - middle) * (one - middle); });
  return tokens_per_s.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(tokens_per_s.size() - 1));
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

LlamaBenchResult run_llama_bench(Session& session, const LlamaBenchTest& test, std::int64_t repeats) {
  LlamaBenchResult result{test, {}, {}};
  try {
    (void)run_once(session, test);  // compiles, records
    for (std::int64_t i = 0; i < repeats; ++i) {
      result.tokens_per_s.push_back(static_cast<double>(test.tokens()) / run_once(session, test));
    }
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error& error) {
    result.tokens_per_s.clear();
    result.failure = error.what();
  }
  return result;
}

std::string llama_bench_table(Session& session, const std::vector<LlamaBenchResult>& results) {
  constexpr const char* kRow = "| {:<30} | {:>10} | {:>10} | {:<10} | {:>15} | {:>20} |\n";
  std::string table = fmt::format(fmt::runtime(kRow), "model", "size", "params", "backend", "test", "t/s");
  table += fmt::format("| {:-<30} | {:->9}: | {:->9}: | {:-<10} | {:->14}: | {:->19}: |\n", "", "", "", "", "", "");
  const std::string size = in_units(static_cast<double>(session.model().memory().weights), 1 << 30, "GiB", "MiB", 1024);
  const std::string parameters = in_units(static_cast<double>(parameter_count(session.config())), 1e9, "B", "M", 1000);
  for (const LlamaBenchResult& result : results) {
    table +=
        fmt::format(fmt::runtime(kRow), model_text(session), size, parameters, backend_of(session), result.test.name(),
                    result.failure.empty() ? fmt::format("{:.2f} ± {:.2f}", result.mean(), result.deviation())
                                           : "failed: " + result.failure);
  }
  return table;
}

json llama_bench_json(Session& session, const std::vector<LlamaBenchResult>& results) {
  json all = json::array();
  for (const LlamaBenchResult& result : results) {
    json one{{"backends", backend_of(session)},
             {"gpu_info", session.device_name()},
             {"model_type", model_text(session)},
             {"model_filename", session.folder().path().string()},
             {"model_size", session.model().memory().weights},
             {"model_n_params", parameter_count(session.config())},
             {"n_prompt", result.test.prompt},
             {"n_gen", result.test.generated},
             {"n_depth", result.test.depth},
             {"test", result.test.name()}};
    if (result.failure.empty()) {
      one["avg_ts"] = result.mean();
      one["stddev_ts"] = result.deviation();
      one["samples_ts"] = result.tokens_per_s;
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

}  // namespace pascaline::cli
