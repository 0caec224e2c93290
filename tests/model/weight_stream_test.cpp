#include "model/residency/weight_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/runtime/memory/manual_memory.hpp"

namespace pascaline::testing {
namespace {

// Weights of layers that hold their number, and a stream over them whose work is done in any order.
class WeightStreamTest : public ::testing::Test {
 protected:
  ManualMemory memory_;
  DeviceWeights weights_;

  void add(std::size_t layer) {
    weights_.text.layers.resize(std::max(weights_.text.layers.size(), layer + 1));
    WeightBlock& block = weights_.blocks[{PartKind::layer, layer}];
    block.pinned = memory_.allocate_pinned(8 * 256);
    std::fill(block.pinned.bytes().begin(), block.pinned.bytes().end(), static_cast<std::byte>(layer));
    block.used_bytes = 8 * 256;
    TextLayerWeights& views = weights_.text.layers[layer];
    std::size_t at = 0;
    for (TensorView* view : {&views.input_norm, &views.qkv.parts[0], &views.q_norm, &views.k_norm, &views.output,
                             &views.post_norm, &views.gate_up, &views.down}) {
      *view = TensorView(block.pinned.bytes().data() + 256 * at++, ElementType::float32, {64});
    }
  }
  // A part of the tower likewise.
  void add_tower(std::size_t parts) {
    weights_.vision.deepstack.resize(parts);
    for (std::size_t i = 0; i < parts; ++i) {
      WeightBlock& block = weights_.blocks[{PartKind::vision, i}];
      block.pinned = memory_.allocate_pinned(6 * 256);
      std::fill(block.pinned.bytes().begin(), block.pinned.bytes().end(), static_cast<std::byte>(100 + i));
      block.used_bytes = 6 * 256;
      std::size_t at = 0;
      for (TensorView* const view : views_of(weights_.vision.deepstack[i])) {
        *view = TensorView(block.pinned.bytes().data() + 256 * at++, ElementType::float32, {64});
      }
    }
  }
  void use_tower(WeightStream& stream, std::size_t i) {
    const MergerWeights there = stream.enter({PartKind::vision, i}, weights_.vision.deepstack[i]);
    for (const TensorView& view : {there.norm.weight, there.fc2.bias}) {
      memory_.enqueue({}, [i, data = static_cast<const std::byte*>(view.data)] {
        EXPECT_TRUE(std::all_of(data, data + 256, [&](std::byte b) { return b == static_cast<std::byte>(100 + i); }))
            << "part " << i;
      });
    }
    stream.leave({PartKind::vision, i});
  }
  // Work of the default stream that looks at the layer's weights.
  void use(WeightStream& stream, std::size_t layer) {
    const TextLayerWeights there = stream.enter({PartKind::layer, layer}, weights_.text.layers[layer]);
    for (const TensorView& view : {there.input_norm, there.down}) {
      memory_.enqueue({}, [layer, data = static_cast<const std::byte*>(view.data)] {
        EXPECT_TRUE(std::all_of(data, data + 256, [&](std::byte b) { return b == static_cast<std::byte>(layer); }))
            << "layer " << layer;
      });
    }
  }
};

TEST_F(WeightStreamTest, LayersAreThereWhenTheyAreUsedInAnyOrderOfWork) {
  for (const std::size_t layer : {1, 2, 5, 6, 9}) {
    add(layer);
  }
  std::mt19937 generator(3);
  for (int seed = 0; seed < 50; ++seed) {
    WeightStream stream(memory_, weights_);
    EXPECT_EQ(stream.bytes(), 2U * 8 * 256);
    for (int pass = 0; pass < 4; ++pass) {
      for (const std::size_t layer : {1, 2, 5, 6, 9}) {
        use(stream, layer);
        stream.leave({PartKind::layer, layer});
        for (auto steps = generator() % 6; steps > 0; --steps) {
          (void)memory_.step_any(generator());
        }
      }
    }
    while (memory_.step_any(generator())) {
    }
    EXPECT_EQ(stream.copied_bytes(), 21U * 8 * 256) << "each once a pass, and the first of the next";
    memory_.drain();
  }
}

TEST_F(WeightStreamTest, TheTowersPartsShareTheSlotsAndTheDecoderIsNext) {
  for (const std::size_t layer : {0, 3, 4}) {
    add(layer);
  }
  add_tower(4);
  std::mt19937 generator(4);
  for (int seed = 0; seed < 50; ++seed) {
    WeightStream stream(memory_, weights_);
    EXPECT_EQ(stream.bytes(), 2U * 8 * 256) << "slots for the larger";
    const auto step = [&] {
      for (auto steps = generator() % 6; steps > 0; --steps) {
        (void)memory_.step_any(generator());
      }
    };
    for (int image = 0; image < 3; ++image) {
      const std::uint64_t before = stream.copied_bytes();
      for (std::size_t part = 0; part < 4; ++part) {
        use_tower(stream, part);
        step();
      }
      EXPECT_EQ(stream.copied_bytes() - before, 4U * 6 * 256 + 8 * 256) << "the decoder's first is copied after it";
      for (const std::size_t layer : {0, 3, 4}) {
        use(stream, layer);
        stream.leave({PartKind::layer, layer});
        step();
      }
      EXPECT_EQ(stream.copied_bytes() - before, 4U * 6 * 256 + 4U * 8 * 256) << "and again after its last";
    }
    while (memory_.step_any(generator())) {
    }
    memory_.drain();
  }
}

TEST_F(WeightStreamTest, ATowerAloneIsCopiedAgainForEachImage) {
  add_tower(3);
  WeightStream stream(memory_, weights_);
  EXPECT_EQ(stream.bytes(), 2U * 6 * 256);
  EXPECT_FALSE(stream.has({PartKind::layer, 0}));
  for (int image = 0; image < 2; ++image) {
    for (std::size_t part = 0; part < 3; ++part) {
      EXPECT_TRUE(stream.has({PartKind::vision, part}));
      use_tower(stream, part);
    }
  }
  memory_.drain();
  EXPECT_EQ(stream.copied_bytes(), 7U * 6 * 256) << "and the first of the next";
}

TEST_F(WeightStreamTest, FewLayersStay) {
  for (const std::size_t count : {1, 2}) {
    add(count);
    WeightStream stream(memory_, weights_);
    EXPECT_EQ(stream.bytes(), count * 8 * 256);
    for (int pass = 0; pass < 5; ++pass) {
      for (std::size_t layer = 1; layer <= count; ++layer) {
        use(stream, layer);
        stream.leave({PartKind::layer, layer});
      }
    }
    memory_.drain();
    EXPECT_EQ(stream.copied_bytes(), count * 8 * 256);
  }
}

TEST_F(WeightStreamTest, APassThatEndedEarlyDoesNoHarm) {
  for (const std::size_t layer : {0, 1, 2, 3}) {
    add(layer);
  }
  std::mt19937 generator(5);
  for (int seed = 0; seed < 50; ++seed) {
    WeightStream stream(memory_, weights_);
    for (int i = 0; i < 30; ++i) {
      const std::size_t layer = generator() % 4;
      use(stream, layer);
      if (generator() % 3 != 0) {
        stream.leave({PartKind::layer, layer});
      }
      (void)memory_.step_any(generator());
    }
    while (memory_.step_any(generator())) {
    }
    memory_.drain();
  }
}

}  // namespace
}  // namespace pascaline::testing
