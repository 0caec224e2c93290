#include "tests/model/recorded_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.hpp"
#include "model/model.hpp"

namespace pascaline::testing {
namespace {

template <typename T>
std::vector<T> stored_values(const Safetensors& file, const char* name) {
  const StoredTensor& tensor = file.at(name);
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// What was recorded, a row of logits a token.
struct RecordedRun {
  explicit RecordedRun(const Safetensors& file)
      : prompt(stored_values<std::int32_t>(file, "input_ids")),
        logits(stored_values<float>(file, "logits")),
        decoded(stored_values<std::int32_t>(file, "decode_ids")),
        decode_logits(stored_values<float>(file, "decode_logits")) {}

  std::vector<std::int32_t> prompt;
  std::vector<float> logits;
  std::vector<std::int32_t> decoded;
  std::vector<float> decode_logits;
};

void expect_rows(std::span<const float> own, const std::vector<float>& recorded, std::size_t row, float tolerance,
                 const std::string& what) {
  const auto width = own.size();
  ASSERT_LE((row + 1) * width, recorded.size()) << what;
  const std::span<const float> expected = std::span(recorded).subspan(row * width, width);
  float largest = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const float error = std::fabs(own[i] - expected[i]);
    largest = error <= largest ? largest : error;  // NaN, too
  }
  EXPECT_TRUE(largest <= tolerance) << what << ", row " << row << ": a logit is " << largest << " off";
}

void check_run(Model& model, const RecordedRun& run, float tolerance, const std::string& what) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  std::size_t rows = 0;
  model.append({run.prompt, {}}, [&](std::int64_t first, std::span<const float> logits) {
    for (std::size_t row = 0; row * vocabulary < logits.size(); ++row) {
      expect_rows(logits.subspan(row * vocabulary, vocabulary), run.logits, static_cast<std::size_t>(first) + row,
                  tolerance, what + ", prompt");
      ++rows;
    }
  });
  EXPECT_EQ(rows, run.prompt.size()) << what;
  for (std::size_t i = 0; i < run.decoded.size(); ++i) {
    model.append({std::span(&run.decoded[i], 1), {}});
    expect_rows(model.logits(), run.decode_logits, i, tolerance, what + ", token after token");
  }
  EXPECT_EQ(model.position_delta(), 0) << what;
  model.clear();
  model.append({run.prompt, {}});
  for (std::size_t i = 0; i < run.decoded.size(); ++i) {
    model.choose(run.decoded[i]);
    (void)model.step();
    expect_rows(model.logits(), run.decode_logits, i, tolerance, what + ", step");
  }
}

}  // namespace

void check_recorded(Executor& executor, const std::filesystem::path& folder, const GoldenTolerance& tolerance) {
  check_recorded(executor, folder, folder / "reference.safetensors", tolerance);
}

void check_recorded(Executor& executor, const std::filesystem::path& folder, const std::filesystem::path& reference,
                    const GoldenTolerance& tolerance) {
  const RecordedRun run(Safetensors{reference});
  ASSERT_FALSE(run.decoded.empty()) << folder;
  const ModelConfig config = load_model_config(folder);
  for (const std::int64_t chunk : {64, 5, 1}) {
    WeightSource weights = checkpoint_weights(Checkpoint::open(folder, config));
    ModelOptions options;
    options.weights = tolerance.weights;
    options.cache = tolerance.cache;
    options.residency = tolerance.residency;
    options.context = 64;
    options.chunk = chunk;
    Model model(executor, config, weights, options);
    check_run(model, run, tolerance.logits, folder.filename().string() + " in passes of " + std::to_string(chunk));
  }
}

}  // namespace pascaline::testing
