#include "model/session/prompt.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/session/foreign_database.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"

namespace pascaline::testing {
namespace {

// The tests' preprocessor makes images of 4 to 64 tokens of 8 x 8 pixels.
class PromptTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  PromptTest() { write_model_folder(folder_.path()); }

  [[nodiscard]] ModelFolder model() const { return ModelFolder(folder_.path()); }
  static std::vector<ChatMessage> with_images(std::size_t count) {
    ChatMessage message;
    message.parts.assign(count, {ChatPart::Kind::image, {}});
    message.parts.push_back({ChatPart::Kind::text, "what is this?"});
    return {message};
  }
  static std::int64_t tokens(const Patches& image) { return image.grid.rows() / 4; }
};

TEST_F(PromptTest, ImagesThatFitStayAsTheyAre) {
  const std::vector<Image> images{black_image(64, 64), black_image(16, 24)};
  const ChatPrompt prompt = make_prompt(model(), with_images(2), images, {.context = 1024});
  EXPECT_EQ(prompt.images.max_tokens, 0);
  EXPECT_EQ(tokens(prompt.images.images[0]), 64);
  EXPECT_EQ(tokens(prompt.images.images[1]), 6);
  const ModelRequest request = prompt.request(100);
  EXPECT_EQ(request.tokens, static_cast<std::int64_t>(prompt.tokens.size()) + 100);
  EXPECT_EQ(request.patches, 4 * 70);
  EXPECT_EQ(request.longest_side, 16);
}

TEST_F(PromptTest, LargeImagesShareWhatTheContextLeaves) {
  const std::vector<Image> images{black_image(64, 64), black_image(64, 64), black_image(16, 24)};
  const ChatPrompt prompt =
      make_prompt(model(), with_images(3), images, {.context = 120, .answer = 10, .usual_answer = 10});
  EXPECT_LE(static_cast<std::int64_t>(prompt.tokens.size()) + 10, 120);
  EXPECT_GT(static_cast<std::int64_t>(prompt.tokens.size()) + 10, 80) << "they are not made smaller than they must be";
  EXPECT_GT(prompt.images.max_tokens, 6);
  EXPECT_EQ(tokens(prompt.images.images[0]), tokens(prompt.images.images[1]));
  EXPECT_EQ(tokens(prompt.images.images[2]), 6) << "it was small before";
}

TEST_F(PromptTest, SmallerImagesLeaveRoomForAnAnswer) {
  const std::vector<Image> images{black_image(64, 64), black_image(64, 64)};
  const ChatPrompt tight = make_prompt(model(), with_images(2), images, {.context = 120, .usual_answer = 1});
  const ChatPrompt roomy = make_prompt(model(), with_images(2), images, {.context = 120});
  EXPECT_LT(roomy.tokens.size() + 15, tight.tokens.size() + 16);
  EXPECT_LE(roomy.tokens.size(), 100);
}

TEST_F(PromptTest, LimitsOfTheUserAreKeptOrRefused) {
  const std::vector<Image> images{black_image(64, 64)};
  const ChatPrompt small = make_prompt(model(), with_images(1), images, {.context = 200, .most_image_tokens = 9});
  EXPECT_EQ(tokens(small.images.images[0]), 9);
  EXPECT_EQ(small.images.max_tokens, 0) << "nothing was done that was not asked for";
  const std::string text =
      message_of([&] { (void)make_prompt(model(), with_images(1), images, {.context = 60, .most_image_tokens = 60}); });
  EXPECT_NE(text.find("--max-image-tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("--context"), std::string::npos) << text;
}

TEST_F(PromptTest, WhatCannotFitIsRefused) {
  const std::vector<ChatMessage> message{text_message(ChatRole::user, std::string(300, 'x'))};
  const std::string text = message_of([&] { (void)make_prompt(model(), message, {}, {.context = 100}); });
  EXPECT_NE(text.find("context of 100"), std::string::npos) << text;
  EXPECT_EQ(text.find("--max-tokens"), std::string::npos) << "a shorter answer would not help";
  const std::string answer =
      message_of([&] { (void)make_prompt(model(), with_images(0), {}, {.context = 100, .answer = 99}); });
  EXPECT_NE(answer.find("--max-tokens"), std::string::npos) << answer;
  const std::vector<Image> many(30, black_image(8, 8));
  const std::string images = message_of([&] { (void)make_prompt(model(), with_images(30), many, {.context = 100}); });
  EXPECT_NE(images.find("30 images"), std::string::npos) << images;
  EXPECT_NE(images.find("--context"), std::string::npos) << images;
  const std::vector<Image> strip{black_image(1, 300)};
  EXPECT_THROW((void)make_prompt(model(), with_images(1), strip, {.context = 100}), Error);
  EXPECT_THROW((void)make_prompt(model(), with_images(1), {}, {.context = 100}), Error) << "its image is missing";
}

TEST_F(PromptTest, FaultsOfAImageNameItAndNoOptions) {
  std::vector<Image> images{black_image(64, 64), black_image(1, 300)};
  for (const std::int64_t most : {0, 9}) {
    const PromptLimits limits{.context = 1000, .most_image_tokens = most};
    images[1].name.clear();
    const std::string unnamed = message_of([&] { (void)make_prompt(model(), with_images(2), images, limits); });
    EXPECT_EQ(unnamed.rfind("image 2: an image of 300 x 1 pixels is too long", 0), 0U) << unnamed;
    images[1].name = "strip.png";
    const std::string named = message_of([&] { (void)make_prompt(model(), with_images(2), images, limits); });
    EXPECT_EQ(named.rfind("strip.png: an image of", 0), 0U) << named;
    EXPECT_EQ(named.find("--"), std::string::npos) << named;
  }
  images[1] = black_image(16, 16);
  images[1].pixels.pop_back();
  images[1].name = "short.png";
  const std::string damaged =
      message_of([&] { (void)make_prompt(model(), with_images(2), images, {.context = 1000}); });
  EXPECT_EQ(damaged.rfind("short.png: ", 0), 0U) << damaged;
}

TEST_F(PromptTest, TokensUsedBeforeCount) {
  const std::vector<Image> images{black_image(64, 64)};
  EXPECT_EQ(fit_prompt_images(model(), images, 10, {.context = 100, .usual_answer = 1}).max_tokens, 0);
  EXPECT_GT(fit_prompt_images(model(), images, 10, {.context = 100, .used = 40, .usual_answer = 1}).max_tokens, 0);
}

TEST_F(PromptTest, FilesOfDifferentModelsAreRefused) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "config.json"));
  config["image_token_id"] = 744;
  write_bytes(folder_ / "config.json", config.dump());
  const std::string text = message_of([&] { (void)model(); });
  EXPECT_NE(text.find("<|image_pad|> as token 741, config.json says 744 (image_token_id)"), std::string::npos) << text;
  EXPECT_NO_THROW(ModelFolder(folder_.path(), ModelParts::numbers));
}

TEST_F(PromptTest, PatchesMustBeCutAsTheConfigurationSays) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "preprocessor_config.json"));
  config["patch_size"] = 2;
  config["temporal_patch_size"] = 8;  // as many values a patch
  write_bytes(folder_ / "preprocessor_config.json", config.dump());
  const std::string text = message_of([&] { (void)model(); });
  EXPECT_NE(text.find("patches of 8 frames of 2 x 2"), std::string::npos) << text;
}

TEST_F(PromptTest, ModelsThatNothingCanRunAreRefused) {
  nlohmann::json config = nlohmann::json::parse(read_file(folder_ / "config.json"));
  config["text_config"]["head_dim"] = 20;
  config["text_config"]["rope_scaling"]["mrope_section"] = {4, 3, 3};
  write_bytes(folder_ / "config.json", config.dump());
  const std::string text = message_of([&] { (void)model(); });
  EXPECT_NE(text.find("20 elements (head_dim)"), std::string::npos) << text;
}

TEST_F(PromptTest, DatabaseOfOtherDevicesSaysSo) {
  const std::filesystem::path database = folder_ / "tuned.db";
  const DeviceInfo host = open_device("emulator")->info();
  Store store(database, OpenMode::create);
  EXPECT_EQ(reason_database_is_foreign(database, host), "") << "nothing was tuned yet";
  const ContextIds context = example_context(store);
  const std::int64_t trial = store.add_trial(begin_example_session(store, context), context, example_trial(32));
  store.set_winner(context, trial, std::nullopt, 0.5);
  const std::string reason = reason_database_is_foreign(database, host);
  for (const std::string& part : {example_device().name, host.name, std::string("pascaline sweep --db"),
                                  database.string(), std::string("--untuned")}) {
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
  }
  DeviceInfo example = host;
  example.kind = DeviceKind::cuda;
  example.name = example_device().name;
  example.architecture = "sm_" + example_device().compute_capability;
  std::erase(example.architecture, '.');
  example.limits.sm_count = static_cast<int>(example_device().sm_count);
  EXPECT_EQ(reason_database_is_foreign(database, example), "") << "it was tuned on that kind of device";
}

}  // namespace
}  // namespace pascaline::testing
