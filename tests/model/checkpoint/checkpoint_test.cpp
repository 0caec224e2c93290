#include "model/checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::config_of;
using testing::hashed_tensors;
using testing::OwnedTensor;
using testing::read_all;
using testing::write_tensors;

constexpr const char* kNorm = "model.language_model.norm.weight";

// A model folder whose tensors a test changes before they are written.
class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : config_(config_of("tiny_a")), tensors_(hashed_tensors(config_)) {}

  OwnedTensor& tensor(const std::string& name) {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const OwnedTensor& owned) { return owned.tensor.name == name; });
    EXPECT_NE(found, tensors_.end()) << name;
    return *found;
  }
  void rename_all(const std::function<std::string(std::string)>& rename) {
    for (OwnedTensor& owned : tensors_) {
      owned.tensor.name = rename(owned.tensor.name);
    }
  }
  void add(const std::string& name, StoredType type, std::vector<std::int64_t> shape) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(shape)) * size_of(type));
    tensors_.push_back({{name, type, std::move(shape), {}}, std::move(bytes)});
  }
  Checkpoint open() {
    write_tensors(folder_.path() / "model.safetensors", tensors_);
    return Checkpoint::open(folder_.path(), config_);
  }
  std::string said() {
    return complaint_of([this] { (void)open(); });
  }
  // Every weight is that of the hash.
  void expect_hashed(Checkpoint checkpoint) {
    const WeightSource hashed = hash_weights(config_);
    const WeightSource loaded = checkpoint_weights(std::move(checkpoint));
    ASSERT_EQ(loaded.tensors(), hashed.tensors());
    for (const TensorSpec& spec : hashed.tensors()) {
      ASSERT_EQ(read_all(loaded, spec, ElementType::float32), read_all(hashed, spec, ElementType::float32))
          << spec.name;
    }
  }

  const testing::TemporaryFolder folder_;
  ModelConfig config_;
  std::vector<OwnedTensor> tensors_;
};

std::string replaced(std::string text, const std::string& prefix, const std::string& by) {
  return text.starts_with(prefix) ? by + text.substr(prefix.size()) : text;
}

TEST_F(CheckpointTest, AWholeModelIsOpened) {
  Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tensors().size(), 63U);
  EXPECT_EQ(checkpoint.stored_bytes(), 2 * 177'440);
  EXPECT_EQ(checkpoint.stored(0).name, "model.language_model.embed_tokens.weight");
  expect_hashed(std::move(checkpoint));
}

TEST_F(CheckpointTest, ShardsAreOneModel) {
  const std::size_t half = tensors_.size() / 2;
  nlohmann::json map;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    map[tensors_[i].tensor.name] = i < half ? "a.safetensors" : "b.safetensors";
  }
  const auto middle = tensors_.begin() + static_cast<std::ptrdiff_t>(half);
  write_tensors(folder_.path() / "a.safetensors", {tensors_.begin(), middle});
  write_tensors(folder_.path() / "b.safetensors", {middle, tensors_.end()});
  folder_.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  expect_hashed(Checkpoint::open(folder_.path(), config_));
}

TEST_F(CheckpointTest, AllNamingSchemesAreRead) {
  const std::vector<OwnedTensor> official = tensors_;
  const std::vector<std::pair<std::string, std::string>> schemes{
      {"language_model.", "visual."},
      {"language_model.model.", "visual."},
      {"language_model.model.", "vision_tower."},
      {"model.", "visual."},
      {"", "visual."},
  };
  for (const auto& [text, vision] : schemes) {
    tensors_ = official;
    rename_all([&text = text, &vision = vision](const std::string& name) {
      return replaced(replaced(name, "model.language_model.", text), "model.visual.", vision);
    });
    expect_hashed(open());
  }
}

TEST_F(CheckpointTest, ATiedModelUsesItsEmbedding) {
  add("lm_head.weight", StoredType::BF16, {512, 64});
  expect_hashed(open());
  add("language_model.lm_head.weight", StoredType::BF16, {512, 64});
  PASCALINE_EXPECT_SAYS(said(), "1 there twice: 'language_model.lm_head.weight'");
  tensors_.resize(tensors_.size() - 2);
  add("lm_head.weight", StoredType::BF16, {512, 63});
  PASCALINE_EXPECT_SAYS(said(), "1 of another shape: 'lm_head.weight [512, 63] instead of [512, 64]'");
}

TEST_F(CheckpointTest, AnUntiedModelNeedsItsHead) {
  config_.text.tied = false;
  PASCALINE_EXPECT_SAYS(said(), "1 missing: 'lm_head.weight'");
  tensors_ = hashed_tensors(config_);
  ASSERT_EQ(tensors_.size(), 64U);
  rename_all([](const std::string& name) { return replaced(name, "lm_head.", "language_model.lm_head."); });
  expect_hashed(open());
}

TEST_F(CheckpointTest, FrequenciesInOlderFilesAreIgnored) {
  add("model.language_model.layers.0.self_attn.rotary_emb.inv_freq", StoredType::F32, {8});
  expect_hashed(open());
}

TEST_F(CheckpointTest, MissingAndUnknownTensorsAreCountedAndNamed) {
  rename_all([](const std::string& name) {
    return name.find(".q_norm.") != std::string::npos ? name + "s" : name == kNorm ? "final.weight" : name;
  });
  const std::string complaint = said();
  PASCALINE_EXPECT_SAYS(complaint, folder_.path().string() + ": the tensors are not those of the model");
  PASCALINE_EXPECT_SAYS(complaint, "3 missing: 'model.language_model.layers.0.self_attn.q_norm.weight', ");
  PASCALINE_EXPECT_SAYS(complaint, "3 unknown: ");
  PASCALINE_EXPECT_SAYS(complaint, "'final.weight'");
  tensors_.clear();
  PASCALINE_EXPECT_SAYS(said(), "63 missing: ");
  PASCALINE_EXPECT_SAYS(said(), " and 60 more");
}

TEST_F(CheckpointTest, AModelOfAnotherSizeIsRefused) {
  config_ = config_of("tiny_b");
  PASCALINE_EXPECT_SAYS(said(), "29 missing");
  PASCALINE_EXPECT_SAYS(said(), "of another shape");
  config_ = config_of("tiny_a");
  config_.text.layers = 1;
  PASCALINE_EXPECT_SAYS(said(), "11 unknown: ");
}

TEST_F(CheckpointTest, TheSameTensorUnderTwoNamesIsRefused) {
  add("language_model.model.norm.weight", StoredType::BF16, {64});
  PASCALINE_EXPECT_SAYS(said(), "1 there twice: ");
}

TEST_F(CheckpointTest, ShapesAndTypesAreChecked) {
  tensor(kNorm).tensor.shape = {1, 64};
  tensor("model.visual.patch_embed.proj.weight").tensor.shape = {32, 2, 4, 4, 3};
  PASCALINE_EXPECT_SAYS(said(), "2 of another shape: ");
  PASCALINE_EXPECT_SAYS(said(), "'model.visual.patch_embed.proj.weight [32, 2, 4, 4, 3] instead of [32, 3, 2, 4, 4]'");
  tensors_ = hashed_tensors(config_);
  tensor(kNorm).tensor.type = StoredType::I16;
  PASCALINE_EXPECT_SAYS(said(), "1 of a type other than F32, F16 and BF16: 'model.language_model.norm.weight (I16)'");
}

TEST_F(CheckpointTest, QuantisedCheckpointsAreNotSupported) {
  add("model.language_model.layers.0.mlp.up_proj.weight_scale_inv", StoredType::F32, {1, 1});
  PASCALINE_EXPECT_SAYS(said(), "this is a quantized checkpoint (1 tensor such as");
  tensors_ = hashed_tensors(config_);
  OwnedTensor& packed = tensor("model.language_model.layers.0.mlp.up_proj.weight");
  packed.tensor.type = StoredType::F8_E4M3;
  packed.bytes.resize(packed.bytes.size() / 2);
  PASCALINE_EXPECT_SAYS(said(), "this is a quantized checkpoint");
}

TEST_F(CheckpointTest, WeightsThatDoNotFitNameTheirTensor) {
  tensors_ = hashed_tensors(config_, StoredType::F32);
  const float large = 70000.0F;
  std::memcpy(tensor(kNorm).bytes.data() + 5 * sizeof large, &large, sizeof large);
  const WeightSource source = checkpoint_weights(open());
  const TensorSpec spec{kNorm, {64}};
  EXPECT_EQ(complaint_of([&] { (void)read_all(source, spec, ElementType::float32); }), "accepted");
  EXPECT_EQ(complaint_of([&] { (void)read_all(source, spec, ElementType::bfloat16); }), "accepted");
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)read_all(source, spec, ElementType::float16); }),
                        "model.safetensors: tensor 'model.language_model.norm.weight': its element 5, 70000, is beyond "
                        "the range of float16; load the weights as float32");
}

}  // namespace
}  // namespace pascaline
