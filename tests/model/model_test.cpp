#include "model/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/golden_run.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

class ModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  Executor executor_{*host_};
  ModelConfig config_ = golden_model_a().config;

  [[nodiscard]] std::unique_ptr<Model> model(Executor& executor, ModelOptions options = {}) const {
    WeightSource source = hash_weights(config_);
    options.weights = options.cache = ElementType::float32;
    return std::make_unique<Model>(executor, config_, source, options);
  }
  [[nodiscard]] std::unique_ptr<Model> small_model() { return model(executor_, {.context = 64, .chunk = 16}); }

  static std::int32_t best_of(const std::vector<float>& logits) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
};

TEST_F(ModelTest, StepsChooseWhatLogitsSay) {
  const auto stepping = small_model();
  const auto reading = small_model();
  const Tokens prompt{1, 2, 3, 5};
  stepping->append({prompt, {}});
  stepping->set_sampling({});
  reading->append({prompt, {}});
  std::int32_t token = stepping->sample();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(token, best_of(reading->logits())) << i;
    reading->append({std::span(&token, 1), {}});
    token = stepping->step();
    EXPECT_EQ(stepping->length(), reading->length());
  }
}

TEST_F(ModelTest, DrawsDependOnTheSeedAlone) {
  const auto model = small_model();
  const auto draw = [&](std::uint64_t seed) {
    model->clear();
    model->append({Tokens{1, 2, 3}, {}});
    ops::SamplingSettings settings;
    settings.temperature = 2;
    settings.seed = seed;
    model->set_sampling(settings);
    Tokens tokens{model->sample()};
    for (int i = 0; i < 12; ++i) {
      tokens.push_back(model->step());
    }
    return tokens;
  };
  const Tokens first = draw(1);
  EXPECT_EQ(draw(1), first);
  EXPECT_NE(draw(2), first);
}

TEST_F(ModelTest, ChosenTokensAreAppendedInPlaceOfThoseDrawn) {
  const auto model = small_model();
  EXPECT_THROW(model->choose(1), Error) << "nothing was read";
  model->append({Tokens{1, 2, 3}, {}});
  EXPECT_THROW(model->choose(-1), Error);
  EXPECT_THROW(model->choose(512), Error);
  model->choose(9);
  (void)model->step();
  (void)model->sample();
  model->choose(11);
  (void)model->step();
  const auto reading = small_model();
  reading->append({Tokens{1, 2, 3, 9, 11}, {}});
  const auto expected = reading->logits();
  const auto got = model->logits();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

TEST_F(ModelTest, AShortenedSequenceGoesOnAsIfTheRestHadNotBeenRead) {
  const auto model = small_model();
  model->append({Tokens{1, 2, 3}, {}});
  model->set_sampling({});
  (void)model->sample();
  (void)model->step();
  (void)model->step();
  model->append({Tokens{7, 7, 7}, {}});
  EXPECT_THROW(model->shorten(9), Error) << "longer";
  EXPECT_THROW(model->shorten(-1), Error);
  model->shorten(8);
  EXPECT_NO_THROW((void)model->logits()) << "nothing was forgotten";
  model->shorten(2);
  EXPECT_EQ(model->length(), 2);
  EXPECT_THROW((void)model->logits(), Error);
  EXPECT_THROW((void)model->step(), Error);
  model->append({Tokens{9, 11}, {}});
  model->choose(13);
  (void)model->step();
  const auto reading = small_model();
  reading->append({Tokens{1, 2, 9, 11, 13}, {}});
  const auto expected = reading->logits();
  const auto got = model->logits();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

TEST_F(ModelTest, ImagesAreNotCutOffAPrompt) {
  const auto model = small_model();
  const VisionConfig& vision = config_.vision.value();
  const std::int64_t side = 2 * vision.merge;
  const std::vector<float> pixels(static_cast<std::size_t>(side * side * vision.patch_values()), 0.5F);
  const PatchView image{side, side, pixels};
  Tokens tokens(10, 1);
  std::fill_n(tokens.begin() + 3, 4, static_cast<std::int32_t>(vision.image_token));
  model->append({tokens, {&image, 1}});
  const std::int64_t delta = model->position_delta();
  model->append({Tokens{5, 6, 7}, {}});
  EXPECT_THROW(model->shorten(9), Error);
  model->shorten(10);
  EXPECT_EQ(model->position_delta(), delta);
  model->append({Tokens{5, 6, 8}, {}});
  const std::vector<float> got = model->logits();
  model->clear();
  EXPECT_NO_THROW(model->shorten(0));
  model->append({tokens, {&image, 1}});
  model->append({Tokens{5, 6, 8}, {}});
  EXPECT_EQ(model->logits(), got);
}

TEST_F(ModelTest, LogitsThatAreNoNumbersAreAnError) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host_, options);
  Executor kernels(dispatcher);
  for (Executor* const executor : {&executor_, &kernels}) {
    const WeightSource good = hash_weights(config_);
    WeightSource source(good.tensors(),
                        [&](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
                          good.read(good.tensors()[index], type, first, out);
                          if (good.tensors()[index].name == "model.language_model.norm.weight") {
                            const float no_number = std::numeric_limits<float>::quiet_NaN();
                            std::memcpy(out.data(), &no_number, sizeof(no_number));
                          }
                        });
    ModelOptions small;
    small.weights = small.cache = ElementType::float32;
    small.context = 64;
    Model model(*executor, config_, source, small);
    model.append({Tokens{1, 2, 3}, {}});
    for (const float temperature : {0.0F, 1.0F}) {
      ops::SamplingSettings settings;
      settings.temperature = temperature;
      model.set_sampling(settings);
      EXPECT_THROW((void)model.sample(), Error);
      EXPECT_THROW((void)model.step(), Error) << "no token has been chosen";
      model.choose(5);
      try {
        (void)model.step();
        ADD_FAILURE() << "a token was chosen";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("logits are not numbers"), std::string::npos) << error.what();
      }
      EXPECT_THROW((void)model.step(), Error) << "no token has been chosen";
    }
    EXPECT_EQ(model.length(), 5) << "what was appended stays";
  }
}

TEST_F(ModelTest, PromptsEndBetweenPassesIfAskedTo) {
  const auto model = small_model();
  model->append({Tokens{1, 2, 3}, {}});
  int passes = 0;
  EXPECT_FALSE(model->append({Tokens(40, 5), {}}, {}, [&] { return ++passes < 3; }));
  EXPECT_EQ(passes, 3);
  EXPECT_EQ(model->length(), 3);
  EXPECT_TRUE(model->append({Tokens(40, 5), {}}, {}, [] { return true; }));
  const auto whole = small_model();
  whole->append({Tokens{1, 2, 3}, {}});
  whole->append({Tokens(40, 5), {}});
  EXPECT_EQ(model->logits(), whole->logits());
}

TEST_F(ModelTest, SeenTokensCanBePenalised) {
  const auto model = small_model();
  model->append({Tokens{1, 2, 3}, {}});
  model->set_sampling({});
  const std::int32_t best = model->sample();
  ops::SamplingSettings settings;
  settings.presence = 100;
  model->set_sampling(settings, Tokens{best});
  EXPECT_NE(model->sample(), best);
}

TEST_F(ModelTest, TwoImagesInOnePromptAreReadAsInParts) {
  std::vector<float> pixels(static_cast<std::size_t>(24 * config_.vision.value().patch_values()));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = hash_pixel(i);
  }
  const PatchView wide{4, 6, pixels};
  const PatchView square{4, 4, std::span<const float>(pixels).first(pixels.size() / 24 * 16)};
  const Tokens first{10, 502, 500, 500, 500, 500, 500, 500, 503};
  const Tokens second{502, 500, 500, 500, 500, 503, 20, 30};
  Tokens both = first;
  both.insert(both.end(), second.begin(), second.end());
  const auto whole = small_model();
  whole->append({both, std::vector<PatchView>{wide, square}});
  const auto parts = small_model();
  parts->append({first, {&wide, 1}});
  parts->append({second, {&square, 1}});
  EXPECT_EQ(whole->position_delta(), parts->position_delta());
  const auto expected = whole->logits();
  const auto got = parts->logits();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

TEST_F(ModelTest, WrongPromptsAreRefusedAndChangeNothing) {
  const auto model = small_model();
  EXPECT_THROW((void)model->logits(), Error);
  EXPECT_THROW((void)model->sample(), Error);
  EXPECT_THROW((void)model->step(), Error);
  model->append({Tokens{1, 2, 3}, {}});
  const auto before = model->logits();
  const std::vector<float> pixels(static_cast<std::size_t>(4 * config_.vision.value().patch_values()));
  const PatchView image{2, 2, pixels};
  EXPECT_THROW(model->append({{}, {}}), Error);
  EXPECT_THROW(model->append({Tokens{1, 512}, {}}), Error);
  EXPECT_THROW(model->append({Tokens{-1}, {}}), Error);
  EXPECT_THROW(model->append({Tokens(62, 1), {}}), Error);
  EXPECT_THROW(model->append({Tokens{1, 500}, {}}), Error);
  EXPECT_THROW(model->append({Tokens{1}, {&image, 1}}), Error);
  const PatchView torn{2, 2, std::span<const float>(pixels).first(7)};
  EXPECT_THROW(model->append({Tokens{500}, {&torn, 1}}), Error);
  EXPECT_EQ(model->length(), 3);
  EXPECT_EQ(model->logits(), before);
  EXPECT_THROW((void)model->step(), Error) << "no token has been chosen";
}

TEST_F(ModelTest, StepsEndWithTheContext) {
  const auto model = this->model(executor_, {.context = 4, .chunk = 16});
  model->append({Tokens{1, 2, 3}, {}});
  model->set_sampling({});
  (void)model->sample();
  (void)model->step();
  EXPECT_THROW((void)model->step(), Error);
  EXPECT_EQ(model->length(), 4);
}

TEST_F(ModelTest, OptionsOutOfBounds) {
  EXPECT_THROW((void)model(executor_, {.context = -1}), Error);
  EXPECT_EQ(model(executor_)->options().context, 4096);
  EXPECT_THROW((void)model(executor_, {.context = 4097}), Error) << "the model was made for 4096";
  EXPECT_THROW((void)model(executor_, {.chunk = 0}), Error);
}

TEST_F(ModelTest, RecordedStepsAreThoseLaunchedOneByOne) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host_, options);
  Executor executor(dispatcher);
  std::vector<Tokens> answers;
  for (const bool graphs : {false, true}) {
    const auto model = this->model(executor, {.context = 600, .chunk = 256, .graphs = graphs});
    model->append({Tokens(254, 7), {}});
    model->set_sampling({});
    Tokens tokens{model->sample()};
    for (int i = 0; i < 6; ++i) {  // beyond 256 the cache grows, and the graph is made again
      tokens.push_back(model->step());
    }
    EXPECT_EQ(model->uses_graph(), graphs);
    answers.push_back(tokens);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// On the processor and on a device a model consists of the same problems, but for those that a launch does together.
TEST_F(ModelTest, AnObserverIsToldOfEveryOperation) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host_, options);
  Executor kernels(dispatcher);
  std::vector<std::vector<std::string>> told;
  for (Executor* const executor : {&executor_, &kernels}) {
    const auto model = this->model(*executor, {.context = 64, .fusion = Fusion::off});
    std::vector<std::string>& problems = told.emplace_back();
    executor->observe([&](const ops::KernelProblem& problem) { problems.push_back(problem.named().text()); });
    model->append({Tokens{1, 2, 3}, {}});
    (void)model->sample();
    (void)model->step();
    const std::size_t before = problems.size();
    executor->observe({});
    (void)model->step();
    EXPECT_EQ(problems.size(), before);
    EXPECT_GT(before, static_cast<std::size_t>(16 * config_.text.layers));
  }
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(told[0].back().substr(0, 7), "gather ") << "where the next step begins";
}

// A step's problems by kernel, with and without launches that do several operations.
TEST_F(ModelTest, AStepOnADeviceIsFusedUnlessToldOtherwise) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  std::vector<std::vector<float>> logits;
  for (const Fusion fusion : {Fusion::automatic, Fusion::off}) {
    Dispatcher dispatcher(*host_, options);
    Executor kernels(dispatcher);
    const auto model = this->model(kernels, {.context = 64, .fusion = fusion});
    model->append({Tokens{1, 2, 3}, {}});
    std::multiset<std::string> launched;
    kernels.observe([&](const ops::KernelProblem& problem) { launched.insert(problem.named().kernel); });
    model->append({Tokens{4}, {}});
    const auto layers = static_cast<std::size_t>(config_.text.layers);
    const bool fused = fusion == Fusion::automatic;
    EXPECT_EQ(launched.count("attention_decode_qkv"), fused ? layers : 0);
    EXPECT_EQ(launched.count("qk_norm_rope"), fused ? 0 : layers);
    EXPECT_EQ(launched.count("attention_decode"), fused ? 0 : layers);
    // Float weights are read several times as long as packed ones: these launches are saved only where that was faster.
    EXPECT_EQ(launched.count("mlp"), 0U);
    EXPECT_EQ(launched.count("rmsnorm"), 2 * layers + 1);
    logits.push_back(model->logits());
  }
  ASSERT_EQ(logits[0].size(), logits[1].size());
  for (std::size_t i = 0; i < logits[0].size(); ++i) {
    EXPECT_NEAR(logits[0][i], logits[1][i], 1e-3 * (1 + std::abs(logits[1][i]))) << i;
  }
}

// Its pixels are more than a page-locked slot holds.
TEST_F(ModelTest, LargeImagesComeToADeviceInPieces) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host_, options);
  Executor executor(dispatcher);
  config_.vision.value().patch = 16;
  const std::int64_t side = 20;
  std::vector<float> pixels(static_cast<std::size_t>(side * side * config_.vision.value().patch_values()));
  ASSERT_GT(pixels.size() * sizeof(float), std::size_t{2} << 20);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = hash_pixel(i);
  }
  const PatchView image{side, side, pixels};
  const auto features_of = [&](Executor& one) {
    const auto model = this->model(one, {.context = 64, .chunk = 16});
    std::vector<float> values(static_cast<std::size_t>(side * side / 4 * config_.vision.value().out_hidden));
    for (int i = 0; i < 2; ++i) {  // the second time into memory that is in use
      const TensorView features = model->encode({&image, 1}).embeddings;
      host_->memory().download({}, std::as_writable_bytes(std::span(values)),
                               {features.data, values.size() * sizeof(float)});
    }
    host_->memory().synchronize(StreamId{});
    return values;
  };
  const std::vector<float> expected = features_of(executor_);
  const std::vector<float> got = features_of(executor);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

TEST_F(ModelTest, StepsAreRecordedThoughAnOperationOfImagesFellBack) {
  const TemporaryFolder folder;
  std::filesystem::copy(data_folder("kernel_templates"), folder.path(), std::filesystem::copy_options::recursive);
  write_bytes(folder / "rope_vision.cu", "#error this kernel cannot be built\n");
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  options.kernels = folder.path();
  Dispatcher dispatcher(*host_, options);
  Executor executor(dispatcher, nullptr);
  const auto model = this->model(executor, {.context = 64});
  const std::vector<float> pixels(static_cast<std::size_t>(4 * config_.vision.value().patch_values()));
  const PatchView image{2, 2, pixels};
  model->append({Tokens{1, 500, 2}, {&image, 1}});
  EXPECT_TRUE(executor.fell_back());
  EXPECT_TRUE(executor.fell_back("rope_vision"));
  EXPECT_FALSE(executor.fell_back("matmul"));
  (void)model->sample();
  (void)model->step();
  (void)model->step();
  EXPECT_TRUE(model->uses_graph());
}

TEST_F(ModelTest, KernelThatCannotBeBuiltFallsBackToTheProcessor) {
  const TemporaryFolder folder;
  std::filesystem::copy(data_folder("kernel_templates"), folder.path(), std::filesystem::copy_options::recursive);
  for (const char* kernel : {"rmsnorm.cu", "qk_norm_rope.cu", "attention_decode_qkv.cu"}) {
    write_bytes(folder / kernel, "#error this kernel cannot be built\n");
  }
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  options.kernels = folder.path();
  Dispatcher dispatcher(*host_, options);
  std::FILE* const warnings = std::tmpfile();
  Executor executor(dispatcher, warnings);
  check_golden(executor, golden_model_a());
  EXPECT_TRUE(executor.fell_back());
  std::rewind(warnings);
  std::string text(100000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), warnings));
  std::fclose(warnings);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  for (const char* operation : {"rmsnorm", "qk_norm_rope"}) {
    EXPECT_NE(text.find(std::string("warning: ") + operation + " cannot run on emulator"), std::string::npos) << text;
  }
  EXPECT_NE(text.find("warning: attention_decode_qkv cannot be built for emulator; site_decode_attention is computed "
                      "without it"),
            std::string::npos)
      << "then its operations run one by one: " << text;
}

}  // namespace
}  // namespace pascaline::testing
