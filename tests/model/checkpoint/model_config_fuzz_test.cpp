#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::config_json;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::word_list;

const std::vector<std::string_view> kConfigWords =
    word_list(R"("text_config"|"vision_config"|"rope_parameters"|"rope_scaling"|"qwen3_vl"|"silu"|"hidden_size"|)"
              R"("eos_token_id"|true|false|null|{|}|[|[[[[[[|1048576)");

class ModelConfigFuzzTest : public FuzzTest {
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
};

TEST_F(ModelConfigFuzzTest, AlteredConfigurationsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 21, kConfigWords);
  const std::array<json, 3> seeds{config_json("tiny_a"), config_json("qwen3_vl_8b"), config_json("qwen3_0.6b")};
  repeat(5, {.accepted = 1}, [&] { try_config(mutator.altered(seeds[mutator.below(seeds.size())]).dump()); });
}

TEST_F(ModelConfigFuzzTest, DamagedConfigurationsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 22, kConfigWords);
  const std::string generation =
      R"({"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "eos_token_id": [504, 1]})";
  const std::string config = testing::config_text("tiny_a");
  repeat(5, {}, [&] {
    try_config(mutator.damaged(config));
    try_generation(mutator.damaged(generation));
  });
}

}  // namespace
}  // namespace pascaline
