#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/weight_source.hpp"
#include "model/model.hpp"
#include "runtime/memory/pool.hpp"
#include "tests/model/golden.hpp"

namespace pascaline::testing {

/// Small models on the emulated device's kernels, their parts in any place.
class SharedModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_device("emulator");
  ModelConfig config_ = golden_model_a().config;
  ModelOptions options_;

  SharedModelTest() {
    options_.weights = options_.cache = ElementType::float32;
    options_.context = 128;
    options_.chunk = 24;
    config_.text.layers = 5;
  }

  // A model on the emulated device's kernels, with a limit of its memory.
  struct Home {
    Home(Device& device, std::uint64_t limit)
        : pool(device.memory(), limit), dispatcher(device, options(), &pool), executor(dispatcher) {}
    static DispatcherOptions options() {
      DispatcherOptions options;
      options.cache = PASCALINE_TEST_CACHE;
      return options;
    }
    MemoryPool pool;
    Dispatcher dispatcher;
    Executor executor;
    std::optional<Model> model;
  };
  [[nodiscard]] std::unique_ptr<Home> made(const ResidencyOptions& residency,
                                           std::uint64_t limit = MemoryPool::kUnlimited) {
    auto where = std::make_unique<Home>(*device_, limit);
    ModelOptions options = options_;
    options.residency = residency;
    WeightSource source = hash_weights(config_);
    where->model.emplace(where->executor, config_, source, options);
    return where;
  }

  // Logits of a prompt with an image, of one more turn of a conversation, and of tokens between them.
  [[nodiscard]] std::vector<std::vector<float>> logits_of(Model& model) const {
    std::vector<float> pixels(static_cast<std::size_t>(24 * config_.vision.value().patch_values()));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = hash_pixel(i);
    }
    const PatchView image{4, 6, pixels};
    std::vector<std::int32_t> prompt(40, 3);
    std::fill(prompt.begin() + 2, prompt.begin() + 8, static_cast<std::int32_t>(config_.vision->image_token));
    for (std::size_t i = 8; i < prompt.size(); ++i) {
      prompt[i] = static_cast<std::int32_t>(7 * i % 400);
    }
    std::vector<std::vector<float>> all;
    model.clear();
    (void)model.append({prompt, {&image, 1}},
                       [&](std::int64_t, std::span<const float> rows) { all.emplace_back(rows.begin(), rows.end()); });
    for (int turn = 0; turn < 3; ++turn) {
      for (const std::int32_t token : {11, 22, 33, 44}) {
        model.choose(token);
        (void)model.step();
        all.push_back(model.logits());
      }
      (void)model.append({std::vector<std::int32_t>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {}});
      all.push_back(model.logits());
    }
    return all;
  }

  static void expect_alike(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& expected,
                           const std::string& what, float tolerance = 1e-4F) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    float worst = 0;
    for (std::size_t row = 0; row < got.size(); ++row) {
      ASSERT_EQ(got[row].size(), expected[row].size()) << what;
      for (std::size_t i = 0; i < got[row].size(); ++i) {
        const float off = std::fabs(got[row][i] - expected[row][i]);
        worst = off <= worst ? worst : off;
      }
    }
    EXPECT_LE(worst, tolerance) << what;
  }
};

}  // namespace pascaline::testing
