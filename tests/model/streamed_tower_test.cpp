#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "model/tensor_memory.hpp"
#include "tests/model/shared_model.hpp"
#include "tests/share.hpp"

namespace pascaline::testing {
namespace {

class StreamedTowerTest : public SharedModelTest {
 protected:
  // Patches of an image of so many rows and columns, other ones for each seed.
  struct Image {
    Image(const VisionConfig& vision, std::int64_t rows, std::int64_t columns, std::uint64_t seed)
        : values(static_cast<std::size_t>(rows * columns * vision.patch_values())), view{rows, columns, {}} {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = hash_pixel(i + 1000 * seed);
      }
      view.values = values;
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    std::vector<float> values;
    PatchView view;
  };

  // All that the decoder gets, in the host's memory.
  [[nodiscard]] std::vector<std::vector<float>> encoded(Model& model, std::span<const PatchView> images) const {
    const ImageFeatures features = model.encode(images);
    std::vector<std::vector<float>> all;
    const auto add = [&](const TensorView& tensor) {
      std::vector<float>& values = all.emplace_back(static_cast<std::size_t>(elements_of(tensor)));
      device_->memory().download({}, std::as_writable_bytes(std::span(values)), span_of(tensor));
    };
    add(features.embeddings);
    std::for_each(features.deepstack.begin(), features.deepstack.end(), add);
    device_->memory().synchronize(StreamId{});
    return all;
  }
  // Of an image with an odd number of blocks on a side, of two, of another one.
  [[nodiscard]] std::vector<std::vector<std::vector<float>>> features_of(Model& model) const {
    const VisionConfig& vision = config_.vision.value();
    const Image first(vision, 4, 6, 1);
    const Image odd(vision, 2, 14, 2);
    const std::array<PatchView, 2> both{odd.view, first.view};
    std::vector<std::vector<std::vector<float>>> all;
    all.push_back(encoded(model, {&odd.view, 1}));
    all.push_back(encoded(model, both));
    all.push_back(encoded(model, {&first.view, 1}));
    return all;
  }

  [[nodiscard]] static std::uint64_t bytes_of_part(const std::vector<MemoryPart>& parts, const std::string& name) {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const MemoryPart& part) { return part.name.find(name) == 0; });
    EXPECT_NE(found, parts.end()) << name;
    return found == parts.end() ? 0 : found->bytes;
  }
};

TEST_F(StreamedTowerTest, FeaturesAndLogitsAreExactlyThoseOfTheTowerOnTheDevice) {
  config_.vision->depth = 3;
  config_.vision->deepstack_indexes = {0, 2};
  for (const char* type : share_of<const char*>({"q8_0", "float32", "q4_k"}, "types")) {
    options_.weights = std::string(type) == "q4_k" ? WeightRecipe(ElementType::q4_k) : WeightRecipe::named(type);
    const auto whole = made({});
    const auto features = features_of(*whole->model);
    const auto logits = logits_of(*whole->model);
    for (const ResidencyOptions& options : {ResidencyOptions{5, VisionResidency::stream, Offload::automatic},
                                            {2, VisionResidency::stream, Offload::stream}}) {
      const auto home = made(options);
      const ModelResidency& residency = home->model->plan().residency;
      ASSERT_EQ(residency.vision, Residency::streamed);
      EXPECT_EQ(residency.streamed_of_tower(), 7U);
      EXPECT_EQ(features_of(*home->model), features) << type << ", " << *options.gpu_layers;
      ASSERT_EQ(residency.head, Residency::device) << "it is rounded otherwise on the processor";
      EXPECT_EQ(logits_of(*home->model), logits) << type << ", " << *options.gpu_layers;
      EXPECT_EQ(home->model->uses_graph(), residency.all_decodes_on_device());
      EXPECT_FALSE(home->executor.fell_back());
    }
  }
}

// What a plan keeps of the tower on the device makes no difference.
TEST_F(StreamedTowerTest, PartsThatFitStayAndTheLimitIsKept) {
  VisionConfig& vision = config_.vision.value();
  vision.depth = 6;
  vision.hidden = 64;
  vision.intermediate = 256;
  options_.request = {.tokens = 90, .images = 1, .patches = 52, .longest_side = 14, .all_logits = true, .is_all = true};
  const auto whole = made({});
  const auto features = features_of(*whole->model);
  const auto logits = logits_of(*whole->model);
  const MemoryLayout all = whole->model->plan();
  std::size_t partly = 0;
  for (const double share : {0.95, 0.85, 0.7}) {
    const auto limit = static_cast<std::uint64_t>(share * static_cast<double>(all.device_bytes));
    // As a card does, whose processor is slow.
    const ResidencyRates rates{10e9, 5e9, 20e9, 100e9, 1000e9};
    ResidencySizes sizes = all.sizes;
    sizes.reserve = limit / 16;
    const auto choices = residency_choices(sizes, {}, rates, limit);
    ASSERT_FALSE(choices.empty());
    const ModelResidency& chosen = choices.front().residency;
    ASSERT_EQ(chosen.vision, Residency::streamed) << share;
    partly += chosen.streamed_of_tower() < chosen.tower.size() ? 1 : 0;
    const auto home = made({}, limit);  // whatever is measured here
    const MemoryLayout& plan = home->model->plan();
    EXPECT_EQ(plan.device_bytes, device_bytes(plan.sizes, plan.residency, plan.filled_device));
    EXPECT_LE(plan.device_bytes, limit);
    if (plan.residency.vision == Residency::streamed && plan.residency.head == Residency::device &&
        plan.residency.count(Residency::processor) == 0) {
      EXPECT_EQ(features_of(*home->model), features) << share;
      EXPECT_EQ(logits_of(*home->model), logits) << share;
    } else {
      expect_alike(logits_of(*home->model), logits, std::to_string(share));
    }
    EXPECT_LE(home->pool.statistics().peak_held_bytes, limit) << share;
  }
  EXPECT_GT(partly, 0U);
}

TEST_F(StreamedTowerTest, PlannedBytesAreThoseThatAreTaken) {
  config_.vision->hidden = 64;
  config_.vision->intermediate = 256;
  config_.text.hidden = config_.vision->out_hidden = 256;
  options_.request = {.tokens = 90, .images = 1, .patches = 24, .longest_side = 6, .all_logits = true, .is_all = true};
  for (const std::int64_t kept : {std::int64_t{5}, std::int64_t{2}}) {
    const auto home = made({kept, VisionResidency::stream, Offload::stream});
    const MemoryLayout& plan = home->model->plan();
    (void)logits_of(*home->model);
    const ModelMemory memory = home->model->memory();
    const std::uint64_t slots = slot_bytes(plan.sizes, plan.residency);
    EXPECT_EQ(bytes_of_part(plan.device, "slots for "), slots);
    EXPECT_GT(slots, 0U);
    std::uint64_t sum = 0;
    for (const MemoryPart& part : plan.device) {
      sum += part.bytes;
      EXPECT_EQ(part.name.find("weights of the vision tower"), std::string::npos) << part.name;
    }
    EXPECT_EQ(sum, plan.device_bytes);
    EXPECT_EQ(bytes_of_part(plan.host, "weights of the vision tower to be streamed in float32, page-locked"),
              plan.sizes.tower_bytes(plan.residency, Residency::streamed));
    const std::uint64_t rounding = plan.device.back().bytes;  // of small tensors
    const double taken = static_cast<double>(memory.weights + memory.activations + memory.cache);
    EXPECT_NEAR(taken / static_cast<double>(plan.device_bytes - rounding), 1, 0.03) << kept;
    EXPECT_NEAR(static_cast<double>(memory.host) / static_cast<double>(plan.host_bytes), 1, 0.03) << kept;
    const auto exact = made({kept, VisionResidency::stream, Offload::stream}, plan.device_bytes);
    (void)logits_of(*exact->model);
    EXPECT_LE(exact->pool.statistics().peak_held_bytes, plan.device_bytes);
    const auto whole = made({});
    EXPECT_LT(memory.weights + slots, whole->model->memory().weights) << "memory was saved";
  }
}

TEST_F(StreamedTowerTest, WantOfMemoryWhileEncodingDoesNoHarm) {
  const auto whole = made({});
  const auto expected = features_of(*whole->model);
  const auto home = made({3, VisionResidency::stream, Offload::stream}, std::uint64_t{64} << 20);
  const Image image(config_.vision.value(), 4, 6, 1);
  {
    const RawBuffer taken = home->pool.allocate_raw(home->pool.state().free_bytes);
    EXPECT_THROW((void)home->model->encode({&image.view, 1}), OutOfMemoryError);
  }
  EXPECT_EQ(features_of(*home->model), expected);
}

// Wherever it ends, between a copy and what would have used it, too.
TEST_F(StreamedTowerTest, AnImageThatFailedInTheMiddleDoesNoHarm) {
  const auto whole = made({});
  const auto expected = features_of(*whole->model);
  const auto home = made({3, VisionResidency::stream, Offload::stream});
  const Image image(config_.vision.value(), 4, 6, 3);
  int told = 0;
  home->executor.observe([&](const ops::KernelProblem&) { ++told; });
  (void)home->model->encode({&image.view, 1});
  const int all = told;
  ASSERT_GT(all, 10);
  for (int last = 0; last < all; last += 7) {
    told = 0;
    home->executor.observe([&](const ops::KernelProblem&) {
      if (told++ == last) {
        throw std::runtime_error("no further");
      }
    });
    EXPECT_THROW((void)home->model->encode({&image.view, 1}), std::runtime_error);
    home->executor.observe({});
    EXPECT_EQ(features_of(*home->model), expected) << last;
  }
}

}  // namespace
}  // namespace pascaline::testing
