#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/session/session.hpp"

namespace pascaline {

/// A test of llama.cpp's llama-bench: reading a prompt (`pp512`) or generating tokens one by one (`tg128`), with so
/// many tokens in the cache before (`tg128 @ d2048`). Never both.
struct LlamaBenchTest {
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  std::int64_t depth = 0;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t tokens() const noexcept { return prompt + generated; }
  /// Positions in the cache that it takes.
  [[nodiscard]] std::int64_t context() const noexcept;
};

/// One and its runs.
struct LlamaBenchResult {
  LlamaBenchTest test;
  std::vector<double> seconds;  ///< of each run
  std::string failure;          ///< why there are none
  std::string begun;            ///< when, in UTC: 2026-01-31T12:00:00Z

  [[nodiscard]] std::vector<double> tokens_per_s() const;
  /// Of tokens a second.
  [[nodiscard]] double mean() const;
  /// The standard deviation of a sample, as llama-bench computes it; 0 of one run.
  [[nodiscard]] double deviation() const;
};

/// At each depth the prompts and then the generated tokens, of lengths above 0.
[[nodiscard]] std::vector<LlamaBenchTest> llama_bench_tests(const std::vector<std::int64_t>& prompts,
                                                            const std::vector<std::int64_t>& generated,
                                                            const std::vector<std::int64_t>& depths);

/// Runs a test so many times after one run that does not count. Each begins with an empty cache; filling it up to the
/// depth is not timed. What it throws is kept as its failure, but for a device that is lost.
[[nodiscard]] LlamaBenchResult run_llama_bench(ModelSession& session, const LlamaBenchTest& test, std::int64_t repeats);

/// llama.cpp's name of what a GGUF file mostly holds, by its key `general.file_type` (`Q4_K_M`); empty if it has none.
[[nodiscard]] std::string gguf_file_type_name(std::int64_t file_type);

/// The columns model, size, params, backend, threads or ngl, test and t/s in Markdown, as llama-bench prints them.
[[nodiscard]] std::string llama_bench_table(ModelSession& session, const std::vector<LlamaBenchResult>& results);
/// A list of objects with llama-bench's names of fields, types and units; of a test that failed, without times and with
/// `failure`.
[[nodiscard]] nlohmann::json llama_bench_json(ModelSession& session, const std::vector<LlamaBenchResult>& results);

/// An answer's times under llama-bench's names of tests: its prompt, which was read at `depth`, and the tokens after
/// the first, which were read after it.
[[nodiscard]] nlohmann::json answer_tests(const Answer& answer, std::int64_t depth);

}  // namespace pascaline
