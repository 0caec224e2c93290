#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/model.hpp"
#include "model/session/model_folder.hpp"

namespace pascaline::testing {
namespace {

// A folder that Transformers 5 saved, with what it computes: make_transformers5_fixture.py.
std::filesystem::path saved_folder() { return std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "qwen3_vl_saved"; }

template <typename T>
std::vector<T> recorded(const Safetensors& file, const char* name) {
  const StoredTensor& tensor = file.at(name);
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Transformers5Test, ASavedFolderHasAllThatAModelNeeds) {
  ASSERT_FALSE(std::filesystem::exists(saved_folder() / "preprocessor_config.json"));
  const ModelFolder folder(saved_folder());
  const PreprocessorConfig& images = folder.preprocessor();
  EXPECT_EQ(images.patch_size, 4);
  EXPECT_EQ(images.longest_edge, 4096);
  EXPECT_EQ(folder.config().vision.value().rope_theta, 100);
  EXPECT_EQ(folder.config().text.rope_theta, 1e6);
  EXPECT_FALSE(folder.config().text.tied) << "text_config says so, but the top of the file counts";
  EXPECT_TRUE(folder.ends(738));
  EXPECT_FALSE(folder.tokenizer().encode("Hello", AddedTokens::ignore).empty());
  (void)folder.chat_template();
}

TEST(Transformers5Test, LogitsWithAnImageAreThoseOfTransformers) {
  const Safetensors reference{saved_folder() / "reference.safetensors"};
  const auto prompt = recorded<std::int32_t>(reference, "input_ids");
  const auto expected = recorded<float>(reference, "logits");
  const auto pixels = recorded<float>(reference, "pixel_values");
  const auto grid = recorded<std::int32_t>(reference, "image_grid_thw");
  const auto host = open_device("emulator");
  Executor executor(*host);
  const ModelConfig config = load_model_config(saved_folder());
  WeightSource weights = checkpoint_weights(Checkpoint::open(saved_folder(), config));
  ModelOptions options;
  options.weights = options.cache = ElementType::float32;
  options.context = 64;
  Model model(executor, config, weights, options);
  const PatchView image{grid.at(1), grid.at(2), pixels};
  std::size_t compared = 0;
  model.append({prompt, {&image, 1}}, [&](std::int64_t first, std::span<const float> logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first * config.text.vocab) + i;
      ASSERT_NEAR(logits[i], expected.at(at), 1e-4) << at;
      ++compared;
    }
  });
  EXPECT_EQ(compared, expected.size());
}

}  // namespace
}  // namespace pascaline::testing
