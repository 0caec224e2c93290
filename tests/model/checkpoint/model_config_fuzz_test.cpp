#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "tests/core/util/mutator.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::config_json;
using testing::fuzz_seed;
using testing::fuzz_time;
using testing::Mutator;
using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 16> kConfigWords{"\"text_config\"",
                                                        "\"vision_config\"",
                                                        "\"rope_parameters\"",
                                                        "\"rope_scaling\"",
                                                        "\"qwen3_vl\"",
                                                        "\"silu\"",
                                                        "\"hidden_size\"",
                                                        "\"eos_token_id\"",
                                                        "true",
                                                        "false",
                                                        "null",
                                                        "{",
                                                        "}",
                                                        "[",
                                                        "[[[[[[",
                                                        "1048576"};

class ModelConfigFuzzTest : public ::testing::Test {
 protected:
  // Whatever is accepted implies tensors whose sizes can be computed.
  void try_config(const std::string& text) {
    try {
      const ModelConfig config = parse_model_config(text, "fuzz.json");
      ++accepted_;
      ASSERT_GT(parameter_count(config), 0);
      for (const TensorSpec& tensor : required_tensors(config)) {
        ASSERT_GT(tensor.elements(), 0) << tensor.name;
      }
      ASSERT_GT(config.vision ? config.vision->head_dim() : 1, 0);
    } catch (const ModelError& error) {
      expect_told(error);
    }
  }
  void try_generation(const std::string& text) {
    try {
      const GenerationConfig generation = parse_generation_config(text, "fuzz.json", config_);
      ++accepted_;
      ASSERT_GT(generation.temperature, 0);
    } catch (const ModelError& error) {
      expect_told(error);
    }
  }
  void expect_told(const ModelError& error) {
    const std::string message = error.what();
    ASSERT_TRUE(message.starts_with("fuzz.json:")) << message;
    ASSERT_NO_THROW((void)json(message).dump()) << message;
    ++refused_;
  }

  const ModelConfig config_ = testing::config_of("tiny_a");
  int accepted_ = 0;
  int refused_ = 0;
};

TEST_F(ModelConfigFuzzTest, AlteredConfigurationsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 21, kConfigWords);
  const std::array<json, 3> seeds{config_json("tiny_a"), config_json("qwen3_vl_8b"), config_json("qwen3_0.6b")};
  const auto end = Clock::now() + fuzz_time(5);
  while (Clock::now() < end || refused_ < 50 || accepted_ < 1) {
    ASSERT_NO_FATAL_FAILURE(try_config(mutator.altered(seeds[mutator.below(seeds.size())]).dump()));
  }
  std::printf("%d accepted, %d refused\n", accepted_, refused_);
}

TEST_F(ModelConfigFuzzTest, DamagedConfigurationsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 22, kConfigWords);
  const std::string generation =
      R"({"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "eos_token_id": [504, 1]})";
  const std::string config = testing::config_text("tiny_a");
  const auto end = Clock::now() + fuzz_time(5);
  while (Clock::now() < end || refused_ < 50) {
    ASSERT_NO_FATAL_FAILURE(try_config(mutator.damaged(config)));
    ASSERT_NO_FATAL_FAILURE(try_generation(mutator.damaged(generation)));
  }
  std::printf("%d accepted, %d refused\n", accepted_, refused_);
}

}  // namespace
}  // namespace pascaline
