#include "model/decoder/sparse_attention.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/memory_parts.hpp"
#include "tests/model/shared_model.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(AttentionChoiceTest, WhatIsGivenIsNamedAgain) {
  for (const char* text : {"dense", "window=1024", "window=1024,sinks=64", "strided=8,window=64",
                           "strided=8,window=100,sinks=32,block=16", "topk=25%", "topk=12.5%,block=128"}) {
    EXPECT_EQ(parse_attention(text).name(), text);
  }
  EXPECT_EQ(parse_attention("sinks=3,window=9").name(), "window=9,sinks=3");
  EXPECT_EQ(parse_attention("strided=4").name(), "strided=4,window=64");
  EXPECT_EQ(parse_attention("strided=4,block=32").name(), "strided=4,window=32,block=32");
  EXPECT_EQ(parse_attention("topk=0.25").name(), "topk=25%");
  EXPECT_TRUE(parse_attention("dense").is_dense());
  EXPECT_FALSE(parse_attention("topk=0.5").is_dense());
}

void expect_refused(const char* text, const char* message) {
  try {
    (void)parse_attention(text);
    ADD_FAILURE() << "taken: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << text << ": " << error.what();
  }
}

TEST(AttentionChoiceTest, WhatIsNoMaskIsRefusedByName) {
  expect_refused("", "it says nothing; give dense, window=N");
  expect_refused("window", "'' is not a whole number up to 2^30, as window needs it");
  expect_refused("window=0", "window=0: window is 0; give 1 or more");
  expect_refused("window=-5", "window is -5; give 1 or more");
  expect_refused("window=12x", "'12x' is not a whole number");
  expect_refused("window=9,window=9", "window is given twice");
  expect_refused("window=9,", "'' is not a part of a mask");
  expect_refused("sinks=4", "without a window tokens would not see themselves");
  expect_refused("windows=9", "'windows=9' is not a part of a mask");
  expect_refused("dense,window=9", "'dense' is not a part of a mask");
  expect_refused("window=9,block=32", "a window and sinks are exact to the token: leave out block");
  expect_refused("strided=0", "strided is 0; give 1 or more");
  expect_refused("strided=4,sinks=10", "sinks must be a multiple of that");
  expect_refused("strided=4,block=8", "blocks have 16, 32, 64 or 128");
  expect_refused("topk=0", "'0' is not a part of the blocks between 0 and 1");
  expect_refused("topk=100%", "'100%' is not a part of the blocks");
  expect_refused("topk=nan", "'nan' is not a part of the blocks");
  expect_refused("topk=0.5,window=9", "topk chooses blocks by itself");
}

TEST(AttentionChoiceTest, MasksThatLeaveNothingOutOfTheContextAreRefused) {
  const auto fits = [](const char* text, std::int64_t context) {
    try {
      check_attention(parse_attention(text), context);
      return true;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      return false;
    }
  };
  EXPECT_TRUE(fits("dense", 1));
  EXPECT_TRUE(fits("window=100,sinks=20", 121));
  EXPECT_FALSE(fits("window=100,sinks=20", 120));
  EXPECT_TRUE(fits("strided=2,window=64", 193)) << "all of block 1 but 64 behind it";
  EXPECT_FALSE(fits("strided=2,window=64", 128));
  EXPECT_FALSE(fits("strided=1,window=64", 4096)) << "every block is seen";
  EXPECT_TRUE(fits("topk=25%", 129));
  EXPECT_FALSE(fits("topk=25%", 128)) << "the first and the last are always seen";
  EXPECT_FALSE(fits("topk=75%", 192)) << "three of three";
}

/// A small model on the processor, or on the emulated device's kernels.
class SparseModelTest : public SharedModelTest {
 protected:
  SparseModelTest() { config_.text.layers = 3; }

  [[nodiscard]] static Tokens text(std::int64_t count) {
    Tokens tokens;
    for (std::int64_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<std::int32_t>(1 + 37 * i % 401));
    }
    return tokens;
  }

  // Logits after each of the tokens, read `chunk` at a time.
  [[nodiscard]] std::vector<std::vector<float>> read(const char* attention, std::int64_t chunk, const Tokens& tokens) {
    ModelOptions options = options_;
    options.attention = parse_attention(attention);
    options.chunk = chunk;
    WeightSource source = hash_weights(config_);
    Executor processor(*device_);
    Model model(processor, config_, source, options);
    return rows_of(model, tokens);
  }

  [[nodiscard]] static std::vector<std::vector<float>> rows_of(Model& model, const Tokens& tokens) {
    std::vector<std::vector<float>> rows;
    const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
    (void)model.append({tokens, {}}, [&](std::int64_t, std::span<const float> logits) {
      for (std::size_t row = 0; row * vocabulary < logits.size(); ++row) {
        const std::span<const float> one = logits.subspan(row * vocabulary, vocabulary);
        rows.emplace_back(one.begin(), one.end());
      }
    });
    return rows;
  }

  static float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    float worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      worst = std::max(worst, std::fabs(a[i] - b[i]));
    }
    return worst;
  }
};

TEST_F(SparseModelTest, PatternsGiveTheSameInOnePassInChunksAndTokenByToken) {
  const Tokens tokens = text(75);
  for (const char* attention : {"window=20", "window=20,sinks=5", "strided=2,window=9,sinks=16,block=16"}) {
    const auto at_once = read(attention, 75, tokens);
    expect_alike(read(attention, 24, tokens), at_once, std::string(attention) + " in chunks");
    expect_alike(read(attention, 1, tokens), at_once, std::string(attention) + " token by token");
  }
}

TEST_F(SparseModelTest, OnlyTokensBeyondTheMaskChange) {
  const Tokens tokens = text(60);
  const auto dense = read("dense", 60, tokens);
  const auto sparse = read("window=20,sinks=5", 60, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i < 25) {
      EXPECT_LE(largest_difference(dense[i], sparse[i]), 1e-5F) << i;
    } else {
      EXPECT_GT(largest_difference(dense[i], sparse[i]), 1e-3F) << i;
    }
  }
}

// What layers see of each other's tokens grows with the layers, but no further than the window a layer.
TEST_F(SparseModelTest, ATokenBehindAllWindowsChangesNothing) {
  config_.text.layers = 2;
  Tokens tokens = text(60);
  const auto before = read("window=10", 60, tokens);
  tokens[5] = 300;
  const auto after = read("window=10", 60, tokens);
  EXPECT_GT(largest_difference(before[10], after[10]), 1e-4F);
  EXPECT_EQ(before[5 + 2 * 9 + 1], after[5 + 2 * 9 + 1]);
  EXPECT_EQ(before.back(), after.back());
}

TEST_F(SparseModelTest, SitesGiveTheSame) {
  for (const char* attention : {"window=20,sinks=4", "strided=3,window=12,block=16"}) {
    options_.attention = parse_attention(attention);
    const auto whole = made({});
    const auto expected = logits_of(*whole->model);
    for (const auto& [layers, offload] : {std::pair{1, Offload::processor}, {2, Offload::stream}}) {
      ResidencyOptions residency;
      residency.gpu_layers = layers;
      residency.offload = offload;
      const auto other = made(residency);
      expect_alike(logits_of(*other->model), expected, std::string(attention) + " with " + std::to_string(layers));
    }
  }
}

TEST_F(SparseModelTest, QuantizedWeightsAndInt8CacheGiveTheSameInAnyPlace) {
  options_.attention = parse_attention("window=16,sinks=3");
  options_.weights = ElementType::q8_0;
  options_.cache = ElementType::int8;
  const auto whole = made({});
  const auto expected = logits_of(*whole->model);
  ResidencyOptions residency;
  residency.gpu_layers = 2;
  residency.offload = Offload::stream;
  const auto streamed = made(residency);
  expect_alike(logits_of(*streamed->model), expected, "streamed");
  // Where sums differ in their last bits rounding to int8 may fall to the other side, and a step of so small a model's
  // activations is large.
  residency.gpu_layers = 0;
  residency.offload = Offload::processor;
  const auto other = made(residency);
  expect_alike(logits_of(*other->model), expected, "on the processor", 0.1F);
  options_.attention = {};
  const auto dense = logits_of(*made({})->model);
  EXPECT_GT(largest_difference(dense.back(), expected.back()), 0.2F) << "no difference that tolerance would hide";
}

TEST_F(SparseModelTest, RecordedStepsAreThoseLaunchedOneByOne) {
  options_.attention = parse_attention("window=20,sinks=4");
  const auto recorded = made({});
  options_.graphs = false;
  const auto launched = made({});
  for (const auto& home : {recorded.get(), launched.get()}) {
    home->model->append({text(30), {}});
    home->model->set_sampling({});
    (void)home->model->sample();
  }
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(recorded->model->step(), launched->model->step()) << i;
  }
  EXPECT_TRUE(recorded->model->uses_graph());
  EXPECT_FALSE(launched->model->uses_graph());
  EXPECT_EQ(recorded->model->logits(), launched->model->logits());
}

// Lists are chosen for blocks of queries, which begin with a pass.
TEST_F(SparseModelTest, ChosenBlocksAreTheSameInPassesOfWholeBlocks) {
  const Tokens tokens = text(90);
  const auto at_once = read("topk=50%,block=16", 90, tokens);
  expect_alike(read("topk=50%,block=16", 32, tokens), at_once, "in chunks of two blocks");
  EXPECT_GT(largest_difference(at_once.back(), read("dense", 90, tokens).back()), 1e-4F);
}

TEST_F(SparseModelTest, AsLongAsAllBlocksAreChosenTheResultIsDense) {
  options_.context = 160;
  const Tokens tokens = text(70);
  const auto dense = read("dense", 70, tokens);
  expect_alike(read("topk=90%,block=16", 24, tokens), dense, "in chunks");
  expect_alike(read("topk=90%,block=16", 1, tokens), dense, "token by token");
}

TEST_F(SparseModelTest, ChosenBlocksOfTokensAreThoseOfEveryPlace) {
  options_.attention = parse_attention("topk=40%,block=16");
  const auto whole = made({});
  const auto expected = logits_of(*whole->model);
  ResidencyOptions residency;
  residency.gpu_layers = 1;
  residency.offload = Offload::processor;
  const auto shared = made(residency);
  expect_alike(logits_of(*shared->model), expected, "with a layer");
  residency.offload = Offload::stream;
  const auto streamed = made(residency);
  expect_alike(logits_of(*streamed->model), expected, "streamed");
  options_.graphs = false;
  const auto launched = made({});
  expect_alike(logits_of(*launched->model), expected, "without a graph", 0);
}

TEST_F(SparseModelTest, MemoryOfTheChoiceIsCounted) {
  const auto sizes = [&](const char* attention) {
    options_.attention = parse_attention(attention);
    return std::pair{total_of(memory_parts(device_->memory(), config_, options_)), made({})->model->memory()};
  };
  const auto [dense_plan, dense] = sizes("dense");
  const auto [window_plan, window] = sizes("window=20");
  const auto [plan, chosen] = sizes("topk=40%,block=16");
  EXPECT_EQ(dense_plan, window_plan);
  EXPECT_EQ(dense.activations, window.activations);
  const std::uint64_t means = static_cast<std::uint64_t>(3 * 8 * config_.text.kv_heads * config_.text.head_dim) * 4;
  EXPECT_GE(chosen.activations, dense.activations + means);
  EXPECT_GE(plan - dense_plan, chosen.activations - dense.activations);
}

TEST_F(SparseModelTest, MasksThatDoNotFitTheContextAreRefused) {
  options_.attention = parse_attention("window=128");
  EXPECT_THROW((void)made({}), Error);
}

}  // namespace
}  // namespace pascaline::testing
