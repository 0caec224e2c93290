#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/projector_weights.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using Type = GgufValueType;

const fs::path kData = PASCALINE_CHECKPOINT_DATA;

// Written by the package gguf: make_projector_fixture.py.
TEST(ProjectorTest, FilesOfThePackageHoldTheModelOfTheFolder) {
  const ModelLocation files(kData / "tiny_a.gguf", kData / "mmproj-tiny_a.gguf");
  const ModelConfig config = load_model_config(files);
  EXPECT_EQ(config, config_of("tiny_a"));
  const WeightSource hashed = hash_weights(config);
  const WeightSource stored = checkpoint_weights(Checkpoint::open(files, config));
  ASSERT_EQ(stored.tensors(), hashed.tensors());
  for (const TensorSpec& tensor : stored.tensors()) {
    EXPECT_EQ(read_all(stored, tensor, ElementType::float32), read_all(hashed, tensor, ElementType::float32))
        << tensor.name;
  }
}

TEST(ProjectorTest, WithoutItTheModelOnlyReadsText) {
  const ModelConfig config = load_model_config(kData / "tiny_a.gguf");
  ModelConfig expected = config_of("tiny_a");
  expected.vision.reset();
  EXPECT_EQ(config, expected);
  EXPECT_EQ(complaint_of([&] { (void)Checkpoint::open(kData / "tiny_a.gguf", config); }), "accepted");
}

TEST(ProjectorTest, FramesAreTakenApartAndJoined) {
  std::vector<std::byte> all(2 * 3 * 2 * 4);  // two outputs, three colours, two frames, planes of four bytes
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::byte>(i);
  }
  const std::vector<std::byte> first = patch_frame(all, 2, 0, 4);
  const std::vector<std::byte> second = patch_frame(all, 2, 1, 4);
  ASSERT_EQ(first.size(), all.size() / 2);
  EXPECT_EQ(first[4], std::byte{8});
  EXPECT_EQ(second[0], std::byte{4});
  const std::array<std::span<const std::byte>, 2> frames{first, second};
  EXPECT_EQ(joined_frames(frames, 4), all);
}

TEST(ProjectorTest, EveryTensorOfATowerHasANameOfItsOwn) {
  const ModelConfig config = config_of("qwen3_vl_2b");
  std::set<std::string> names;
  for (const TensorSpec& tensor : required_tensors(config)) {
    const std::string name = projector_tensor_name(tensor.name, *config.vision);
    if (tensor.name.starts_with(kVisionPrefix)) {
      EXPECT_TRUE(!name.empty() && names.insert(name).second) << tensor.name << ": " << name;
    } else {
      EXPECT_EQ(name, "");
    }
  }
  EXPECT_TRUE(names.contains("v.deepstack.17.fc2.bias"));
  EXPECT_EQ(projector_tensor_name("model.visual.deepstack_merger_list.3.norm.weight", *config.vision), "");
  EXPECT_EQ(projector_tensor_name("model.visual.blocks.x.norm1.weight", *config.vision), "");
}

// A text model and a projector of sizes that fit, to be spoilt.
class ProjectorFilesTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path text_ = folder_.path() / "text.gguf";
  fs::path projector_ = folder_.path() / "mmproj.gguf";

  static GgufBuilder text(const std::string& architecture = "qwen3vl", std::uint32_t hidden = 64,
                          std::uint32_t features = 1) {
    const std::string prefix = architecture + ".";
    GgufBuilder file;
    file.word("general.architecture", architecture)
        .integer(prefix + "embedding_length", hidden)
        .integer(prefix + "block_count", 2)
        .integer(prefix + "attention.head_count", 4)
        .integer(prefix + "attention.head_count_kv", 2)
        .integer(prefix + "attention.key_length", 16)
        .integer(prefix + "feed_forward_length", 128)
        .integer(prefix + "context_length", 128)
        .integer(prefix + "n_deepstack_layers", features)
        .real(prefix + "rope.freq_base", 1e6F)
        .real(prefix + "attention.layer_norm_rms_epsilon", 1e-6F)
        .array(prefix + "rope.dimension_sections", Type::int32, 3,
               GgufBuilder::raw(4) + GgufBuilder::raw(2) + GgufBuilder::raw(2));
    file.tensor("token_embd.weight", 0, {hidden, 8}, std::string(std::size_t{hidden} * 32, '\0'));
    return file;
  }
  static void add_tokens(GgufBuilder& file, const std::vector<std::string>& named) {
    std::string bytes;
    for (std::size_t i = 0; i < 8; ++i) {
      bytes += GgufBuilder::text(i < named.size() ? named[i] : std::to_string(i));
    }
    file.array("tokenizer.ggml.tokens", Type::text, 8, bytes);
  }
  static GgufBuilder named_text() {
    GgufBuilder file = text();
    add_tokens(file, {"<|video_pad|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"});
    return file;
  }
  // `without` is a key that is left out.
  static GgufBuilder projector(const std::string& without = "") {
    GgufBuilder file;
    const auto integer = [&](const std::string& name, std::uint32_t value) {
      if (name != without) {
        file.integer("clip.vision." + name, value);
      }
    };
    file.word("general.architecture", "clip");
    if (without != "projector_type") {
      file.word("clip.projector_type", "qwen3vl_merger");
    }
    integer("projection_dim", 64);
    integer("image_size", 16);
    integer("patch_size", 4);
    integer("embedding_length", 32);
    integer("feed_forward_length", 64);
    integer("block_count", 2);
    integer("attention.head_count", 2);
    integer("spatial_merge_size", 2);
    if (without != "attention.layer_norm_epsilon") {
      file.real("clip.vision.attention.layer_norm_epsilon", 1e-6F);
    }
    if (without != "is_deepstack_layers") {
      file.array("clip.vision.is_deepstack_layers", Type::boolean, 2, std::string("\x01\x00", 2));
    }
    file.tensor("v.position_embd.weight", 0, {32, 16}, std::string(2048, '\0'));
    return file;
  }
  static void write(const fs::path& file, const GgufBuilder& builder) {
    std::ofstream(file, std::ios::binary) << builder.bytes();
  }
  [[nodiscard]] std::string read(const GgufBuilder& text, const GgufBuilder& projector) const {
    write(text_, text);
    write(projector_, projector);
    return complaint_of([&] { (void)load_model_config({text_, projector_}); });
  }
  [[nodiscard]] std::string with(const std::string& key, std::uint32_t value) const {
    GgufBuilder file = projector(key);
    file.integer("clip.vision." + key, value);
    return read(named_text(), file);
  }
  // The file of a complaint must be the one at fault.
  void expect_blamed(const std::string& complaint, const fs::path& file, const std::string& key,
                     const std::string& problem) const {
    EXPECT_TRUE(complaint.starts_with(file.string() + ": key '" + key + "': ")) << complaint;
    PASCALINE_EXPECT_SAYS(complaint, problem);
    EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
  }
};

TEST_F(ProjectorFilesTest, TokensOfImagesAreThoseThatTheTextModelNames) {
  ASSERT_EQ(read(named_text(), projector()), "accepted");
  const VisionConfig vision = *load_model_config({text_, projector_}).vision;
  EXPECT_EQ(vision.image_token, 2);
  EXPECT_EQ(vision.video_token, 0);
  EXPECT_EQ(vision.start_token, 1);
  EXPECT_EQ(vision.end_token, 3);
  expect_blamed(read(text(), projector()), text_, "tokenizer.ggml.tokens", "which tokens stand for images");
  GgufBuilder unnamed = text();
  add_tokens(unnamed, {"<|video_pad|>", "<|vision_start|>", "<|vision_end|>"});
  expect_blamed(read(unnamed, projector()), text_, "tokenizer.ggml.tokens", "no token is <|image_pad|>");
}

TEST_F(ProjectorFilesTest, ImagesNeedNoTokenOfVideos) {
  GgufBuilder file = text();
  add_tokens(file, {"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"});
  ASSERT_EQ(read(file, projector()), "accepted");
  EXPECT_EQ(load_model_config({text_, projector_}).vision->video_token, kNoVideoToken);
}

TEST_F(ProjectorFilesTest, FilesOfDifferentModelsAreRefused) {
  expect_blamed(with("projection_dim", 128), projector_, "clip.vision.projection_dim",
                "has the embedding_length 64: the files are of different models");
  GgufBuilder other = text("qwen3vl", 64, 2);
  add_tokens(other, {"<|video_pad|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"});
  expect_blamed(read(other, projector()), text_, "qwen3vl.n_deepstack_layers", "2, but 1 of the blocks");
  GgufBuilder qwen3;
  qwen3.word("general.architecture", "qwen3")
      .integer("qwen3.embedding_length", 64)
      .integer("qwen3.block_count", 2)
      .integer("qwen3.attention.head_count", 4)
      .integer("qwen3.feed_forward_length", 128)
      .integer("qwen3.context_length", 128)
      .real("qwen3.rope.freq_base", 1e6F)
      .real("qwen3.attention.layer_norm_rms_epsilon", 1e-6F)
      .tensor("token_embd.weight", 0, {64, 8}, std::string(2048, '\0'));
  expect_blamed(read(qwen3, projector()), text_, "general.architecture", "'qwen3' only reads text");
}

TEST_F(ProjectorFilesTest, OneFileInPlaceOfTheOtherIsRefused) {
  expect_blamed(read(named_text(), named_text()), projector_, "general.architecture",
                "'qwen3vl' is a text model and no projector");
  expect_blamed(read(projector(), projector()), text_, "general.architecture", "this is a projector");
  PASCALINE_EXPECT_SAYS(complaint_of([&] {
                          (void)load_model_config({folder_.path(), projector_});
                        }),
                        "is a folder, which has its own vision tower; leave out --mmproj");
  PASCALINE_EXPECT_SAYS(complaint_of([&] {
                          (void)load_model_config({text_, folder_.path()});
                        }),
                        folder_.path().string());
}

TEST_F(ProjectorFilesTest, WhatMayChangeResultsIsRefused) {
  const auto refused = [&](const std::string& key, const std::string& problem, auto add, const char* without = "") {
    GgufBuilder file = projector(without);
    add(file);
    expect_blamed(read(named_text(), file), projector_, key, problem);
  };
  refused("clip.vision.n_wa_pattern", "it is not supported",
          [](auto& file) { file.integer("clip.vision.n_wa_pattern", 8); });
  refused("clip.use_silu", "true is not supported",
          [](auto& file) { file.key("clip.use_silu", Type::boolean, "\x01"); });
  refused("clip.use_gelu", "false is not supported",
          [](auto& file) { file.key("clip.use_gelu", Type::boolean, std::string(1, '\0')); });
  refused("clip.has_audio_encoder", "true is not supported",
          [](auto& file) { file.key("clip.has_audio_encoder", Type::boolean, "\x01"); });
  refused(
      "clip.projector_type", "'mlp' is not supported, only qwen3vl_merger",
      [](auto& file) { file.word("clip.projector_type", "mlp"); }, "projector_type");
  refused(
      "clip.vision.attention.layer_norm_epsilon", "is not supported, only 1e-06",
      [](auto& file) { file.real("clip.vision.attention.layer_norm_epsilon", 1e-5F); }, "attention.layer_norm_epsilon");
  refused(
      "clip.vision.is_deepstack_layers", "3 values for 2 blocks",
      [](auto& file) {
        file.array("clip.vision.is_deepstack_layers", Type::boolean, 3, std::string("\x01\x00\x00", 3));
      },
      "is_deepstack_layers");
  for (const char* kind : {"model", "adapter"}) {
    refused("general.type", "is no projector; give the file of one, which says 'mmproj' or nothing",
            [kind](auto& file) { file.word("general.type", kind); });
  }
  refused("general.type", "it is not a text", [](auto& file) { file.integer("general.type", 1); });
  refused("general.file_type", "it is not an integer", [](auto& file) { file.word("general.file_type", "F16"); });
  GgufBuilder right = projector();
  EXPECT_EQ(read(named_text(), right.word("general.type", "mmproj")), "accepted");
  refused(
      "clip.vision.patch_size", "is missing", [](auto&) {}, "patch_size");
}

TEST_F(ProjectorFilesTest, ImpossibleSizesAreRefused) {
  expect_blamed(with("block_count", 0), projector_, "clip.vision.block_count", "0 is not a possible size");
  expect_blamed(with("patch_size", 1U << 20U), projector_, "clip.vision.patch_size", "not a possible size");
  expect_blamed(with("image_size", 20), projector_, "clip.vision.image_size", "no square of 16 positions");
  expect_blamed(with("image_size", 17), projector_, "clip.vision.image_size", "no square of 16 positions");
  expect_blamed(with("attention.head_count", 3), projector_, "clip.vision.attention.head_count", "cannot be shared");
}

TEST_F(ProjectorFilesTest, TensorsThatAreNotTheTowersAreCounted) {
  ASSERT_EQ(read(named_text(), projector()), "accepted");
  const std::string complaint = complaint_of([&] {
    const ModelLocation files(kData / "tiny_a.gguf", projector_);
    ModelConfig config = config_of("tiny_a");
    (void)Checkpoint::open(files, config);
  });
  EXPECT_TRUE(complaint.starts_with(projector_.string() + ": ")) << complaint;
  PASCALINE_EXPECT_SAYS(complaint, "missing: 'v.patch_embd.weight', 'v.patch_embd.weight.1', 'v.patch_embd.bias'");
}

}  // namespace
}  // namespace pascaline::testing
