#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/image/preprocess.hpp"
#include "model/session/prompt.hpp"
#include "model/session/session.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"
#include "tests/model/recorded_run.hpp"

namespace pascaline::testing {
namespace {

// Models that Transformers wrote, with what it computes: make_qwen3_fixture.py.
std::filesystem::path transformers_model(const char* name) {
  return std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / name;
}

TEST(Qwen3Test, LogitsAreThoseOfTransformers) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_recorded(executor, transformers_model("qwen3_tied"));
  check_recorded(executor, transformers_model("qwen3_untied"));
}

TEST(Qwen3Test, LogitsInFloat16AreCloseToThem) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_recorded(executor, transformers_model("qwen3_tied"), {ElementType::float16, ElementType::float32, 1e-4F});
  check_recorded(executor, transformers_model("qwen3_untied"), {ElementType::float16, ElementType::float16, 1e-2F});
}

TEST(Qwen3Test, KernelsOnTheEmulatorGiveThem) {
  const auto host = open_device("emulator");
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host, options);
  Executor executor(dispatcher);
  check_recorded(executor, transformers_model("qwen3_untied"));
  EXPECT_FALSE(executor.fell_back());
}

// The script draws them by the same hash.
TEST(Qwen3Test, TheCheckpointHoldsTheHashedWeights) {
  for (const char* name : {"qwen3_tied", "qwen3_untied"}) {
    const ModelConfig config = load_model_config(transformers_model(name));
    const WeightSource hashed = hash_weights(config);
    const WeightSource stored = checkpoint_weights(Checkpoint::open(transformers_model(name), config));
    ASSERT_EQ(stored.tensors(), hashed.tensors());
    for (const TensorSpec& tensor : stored.tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      stored.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], hash_weight(tensor, i)) << tensor.name;
      }
    }
  }
}

class TextModelTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  TextModelTest() { write_text_model_folder(folder_.path()); }

  [[nodiscard]] ModelSessionOptions options() const {
    ModelSessionOptions options;
    options.model = folder_.path();
    options.device = "cpu";
    options.options.weights = options.options.cache = ElementType::float32;
    options.options.context = 512;
    return options;
  }
  static void expect_text_only(const std::function<void()>& work) {
    const std::string message = message_of(work);
    EXPECT_NE(message.find("this model only reads text (its model_type is qwen3); leave out the images"),
              std::string::npos)
        << message;
  }
};

TEST_F(TextModelTest, AnswersWithoutAPreprocessor) {
  ASSERT_FALSE(std::filesystem::exists(folder_ / "preprocessor_config.json"));
  ModelSession session(options());
  EXPECT_FALSE(session.config().vision.has_value());
  AnswerOptions how;
  how.max_tokens = 6;
  const std::vector<ChatMessage> messages{text_message(ChatRole::user, "hello there")};
  const Answer first = session.ask(messages, {}, how);
  EXPECT_GE(first.prompt_tokens, 5);
  EXPECT_EQ(session.ask(messages, {}, how).tokens, first.tokens);
  (void)session.continue_chat(text_message(ChatRole::user, "and?"), {}, how);
  EXPECT_GT(session.model().length(), first.prompt_tokens);
}

TEST_F(TextModelTest, ImagesAreRefusedByName) {
  const ModelFolder folder(folder_.path());
  expect_text_only([&] { (void)folder.preprocessor(); });
  ChatMessage message;
  message.parts = {{ChatPart::Kind::image, {}}, {ChatPart::Kind::text, "what is this?"}};
  const std::vector<Image> images{black_image(64, 64)};
  expect_text_only([&] { (void)make_prompt(folder, {&message, 1}, images, {.context = 256}); });

  ModelSession session(options());
  const std::vector<float> pixels(16);
  const PatchView patches{2, 2, pixels};
  const std::vector<std::int32_t> tokens{1, 2, 3};
  expect_text_only([&] { session.model().append({tokens, {&patches, 1}}); });
  expect_text_only([&] { (void)session.model().encode({&patches, 1}); });
  EXPECT_TRUE(session.model().append({tokens, {}})) << "the sequence is as it was";
  EXPECT_TRUE(session.model().encode({}).deepstack.empty());
}

TEST_F(TextModelTest, TheTemplateIsTheFoldersAndAKnownOne) {
  EXPECT_EQ(ModelFolder(folder_.path()).chat_template(), ChatTemplate::qwen3);
  const std::string other = "{%- if add_generation_prompt %}<|im_start|>assistant{%- endif %}<|im_end|>";
  write_bytes(folder_ / "chat_template.json", nlohmann::json{{"chat_template", other}}.dump());
  const std::string message = message_of([&] { (void)ModelFolder(folder_.path()); });
  EXPECT_NE(message.find("chat_template.json: key 'chat_template': this template is not a known one"),
            std::string::npos)
      << message;
  EXPECT_EQ(ModelFolder(folder_.path(), ModelParts::all, "chatml").chat_template(), ChatTemplate::chatml);
}

TEST_F(TextModelTest, MemoryIsThatOfTheDecoder) {
  const ModelConfig config = load_model_config(folder_.path());
  const std::uint64_t in_full = device_weight_bytes(config, ElementType::float32);
  EXPECT_EQ(in_full, static_cast<std::uint64_t>(parameter_count(config)) * sizeof(float));
  ModelSession session(options());
  EXPECT_EQ(session.model().memory().weights, in_full);
}

}  // namespace
}  // namespace pascaline::testing
