#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "runtime/formats/block_format.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline::testing {
namespace {

using Type = GgufValueType;

GgufContent gguf_of(const std::string& bytes) {
  return parse_gguf(std::as_bytes(std::span(bytes.data(), bytes.size())), "m.gguf");
}

std::string gguf_complaint(const std::string& bytes) {
  return complaint_of([&] { (void)gguf_of(bytes); });
}

void write_gguf(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

TEST(GgufTest, ValuesOfEveryTypeAreRead) {
  GgufBuilder file;
  file.key("i8", Type::int8, GgufBuilder::raw(std::int8_t{-5}))
      .key("u64", Type::uint64, GgufBuilder::raw(~std::uint64_t{0}))
      .key("f64", Type::float64, GgufBuilder::raw(0.1))
      .key("b", Type::boolean, GgufBuilder::raw(std::uint8_t{1}))
      .real("f32", 0.5F)
      .word("t", "\xC3\xA9")
      .array("ts", Type::text, 2, GgufBuilder::text("") + GgufBuilder::text("two"))
      .array("is", Type::int32, 2, GgufBuilder::raw(std::int32_t{-1}) + GgufBuilder::raw(std::int32_t{7}))
      .array("fs", Type::float32, 1, GgufBuilder::raw(2.5F));
  const std::string bytes = file.bytes();
  const GgufMetadata metadata = gguf_of(bytes).metadata;
  EXPECT_EQ(metadata.integer("i8"), -5);
  EXPECT_EQ(metadata.real("f64"), 0.1);
  EXPECT_EQ(metadata.real("f32"), 0.5);
  EXPECT_TRUE(metadata.boolean("b"));
  EXPECT_EQ(metadata.text("t"), "\xC3\xA9");
  EXPECT_EQ(metadata.texts("ts"), (std::vector<std::string_view>{"", "two"}));
  EXPECT_EQ(metadata.integers("is"), (std::vector<std::int64_t>{-1, 7}));
  EXPECT_EQ(metadata.reals("fs"), std::vector<double>{2.5});
  EXPECT_FALSE(metadata.find_integer("none").has_value());
  const auto complaint = [&](auto get) { return complaint_of([&] { get(metadata); }); };
  EXPECT_EQ(complaint([](auto& m) { (void)m.integer("none"); }), "m.gguf: key 'none': it is missing from the metadata");
  PASCALINE_EXPECT_SAYS(complaint([](auto& m) { (void)m.integer("u64"); }), "key 'u64': it is not an integer");
  PASCALINE_EXPECT_SAYS(complaint([](auto& m) { (void)m.integer("is"); }), "key 'is': it is not an integer");
  PASCALINE_EXPECT_SAYS(complaint([](auto& m) { (void)m.texts("is"); }), "key 'is': it is not an array of texts");
  PASCALINE_EXPECT_SAYS(complaint([](auto& m) { (void)m.text("ts"); }), "key 'ts': it is not a text");
  PASCALINE_EXPECT_SAYS(complaint([](auto& m) { (void)m.find_boolean("i8"); }), "key 'i8': it is not a truth value");
}

TEST(GgufTest, DamageIsRefusedWithFileAndKey) {
  const auto metadata = [](auto add) {
    GgufBuilder file;
    add(file);
    return gguf_complaint(file.bytes());
  };
  PASCALINE_EXPECT_SAYS(gguf_complaint("GGU"), "m.gguf: this is not a GGUF file");
  PASCALINE_EXPECT_SAYS(gguf_complaint(""), "m.gguf: this file is empty");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.version = 2; }), "version 2 is not read");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.version = 0x03000000; }), "big-endian");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.key_count = 1U << 30U; }), "more than its");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.tensor_count = ~std::uint64_t{0}; }), "more than its");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.integer("a", 1).integer("a", 1); }),
                        "m.gguf: key 'a': it is there twice");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.integer("\xED\xA0\x80", 1); }), "is not UTF-8");
  EXPECT_EQ(metadata([](auto& f) { f.word("general.description", "caf\xE9"); }), "accepted");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.key("a", static_cast<Type>(13), ""); }), "its type 13 is not known");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.array("a", Type::array, 1, std::string(32, '\0')); }),
                        "key 'a': it is an array of arrays");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.array("a", Type::uint64, std::uint64_t{1} << 61U, ""); }),
                        "key 'a': 2305843009213693952 elements go beyond");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.key("a", Type::text, GgufBuilder::raw(~std::uint64_t{0})); }),
                        "key 'a': ");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.key("a", Type::boolean, "\x02"); }), "neither 0 nor 1");
  PASCALINE_EXPECT_SAYS(metadata([](auto& f) { f.integer("general.alignment", 24); }),
                        "key 'general.alignment': 24 is not a possible alignment");
}

TEST(GgufTest, TensorsThatAreNotWithinTheFileAreRefused) {
  const auto tensor = [](auto add) {
    GgufBuilder file;
    file.tensor("a", 0, {8}, std::string(32, '\0'));
    add(file);
    return gguf_complaint(file.bytes());
  };
  EXPECT_EQ(tensor([](auto& f) { f.tensor("b", 0, {8}, std::string(32, '\0')); }), "accepted");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 0, {8}, 0); }), "overlap those of tensor");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 0, {8}, 32); }), "tensor 'b': its bytes 32 to 64 are not");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 0, {8}, 8); }), "not a multiple of the alignment 32");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("a", 0, {8}, 32); }), "tensor 'a': it is there twice");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 21, {256}, 32); }),
                        "tensor 'b': its type IQ3_S is not read, only F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, ");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 21, {256}, 32); }),
                        "; take the model's file in Q8_0, Q4_0 or F16");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 9, {576}, 32); }), "its type Q8_1 is not read");
  const std::array<std::pair<std::uint32_t, const char*>, 4> newer{
      {{34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"}, {41, "Q1_0"}}};
  for (const auto& [number, name] : newer) {
    const std::uint32_t type = number;
    PASCALINE_EXPECT_SAYS(tensor([type](auto& f) { f.describe("b", type, {256}, 32); }),
                          std::string("its type ") + name + " is not read");
  }
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 999, {256}, 32); }), "its type number 999 is not read");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 12, {128}, 32); }), "no whole blocks of Q4_K");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 0, {-1}, 32); }), "are not possible");
  PASCALINE_EXPECT_SAYS(tensor([](auto& f) { f.describe("b", 0, {1, 1, 1, 1, 1}, 32); }), "5 dimensions are not");
  GgufBuilder whole;
  whole.word("general.name", "x").tensor("a", 0, {8}, std::string(32, '\0'));
  const std::string bytes = whole.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    PASCALINE_EXPECT_SAYS(gguf_complaint(bytes.substr(0, size)), "m.gguf: ");
  }
}

// Expected values: dequantize of the Python package gguf 0.19.
TEST(GgufTest, FiveBitsAreThoseOfTheReference) {
  const std::string hex =
      "1f211f25eeab14cef599cc052535d5cec0ad06783f60ec83760457a17c472a49ed10c2fa0a67ce0d8f02264785762462c423399232b39168"
      "ce358d21b527970bb48a4200a5627b0c90b818268101caff5536e4307fa901a76df710c04edc083cbdb5404808b9586fbf8a634330446"
      "4f943287f2d2133cee5d95535cc78861fd80e7fa01dd0a174645397c6a0adc1367e7e3976aa6b833bad348bb5a93fc4900f8a8987f50f"
      "8c3b8efc8c4ce733da7d45";
  std::vector<std::byte> block;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    block.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  std::vector<float> values(256);
  dequantize(ElementType::q5_k, block, values);
  const std::array<std::pair<std::size_t, float>, 11> expected{{{0, 0x1.8f72p-1F},
                                                                {1, 0x1.eba0p+2F},
                                                                {31, 0x1.75d7p+2F},
                                                                {32, 0x1.2a4dcp+2F},
                                                                {63, 0x1.9aa5dp+3F},
                                                                {64, 0x1.8534p-1F},
                                                                {100, 0x1.8f72p+1F},
                                                                {128, 0x1.2e25p-1F},
                                                                {177, 0x1.e3f18p+0F},
                                                                {200, -0x1.c2a8p-3F},
                                                                {255, 0x1.1ec8p+1F}}};
  for (const auto& [index, value] : expected) {
    EXPECT_EQ(values[index], value) << index;
  }
}

// Two heads of four rows: stored are the rows 0, 2, 1, 3 of each.
TEST(GgufTest, RowsOfHeadsComeInTheModelsOrder) {
  const std::array<float, 8> stored{0, 2, 1, 3, 4, 6, 5, 7};
  std::vector<float> wide(8 * 32);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wide[i] = stored[i / 32];
  }
  std::vector<std::byte> bytes(8 * 34);
  for (std::size_t row = 0; row < 8; ++row) {
    ASSERT_FALSE(
        quantize_row(ElementType::q8_0, std::span(wide).subspan(row * 32, 32), std::span(bytes).subspan(row * 34, 34)));
  }
  const StoredTensor tensor{"q", StoredType::U8, {8, 34}, bytes};
  std::vector<float> read(7 * 32);
  read_matrix({&tensor, {ElementType::q8_0, {}}, 32, RowOrder{4}}, 32, ElementType::float32,
              std::as_writable_bytes(std::span(read)));
  for (std::size_t i = 0; i < read.size(); ++i) {
    ASSERT_NEAR(read[i], static_cast<float>(i / 32 + 1), 0.01F) << i;
  }
}

// Written by the package gguf: make_gguf_fixture.py.
TEST(GgufModelTest, AFileOfThePackageHoldsTheModelOfTheFolder) {
  const std::filesystem::path data = PASCALINE_CHECKPOINT_DATA;
  ModelConfig config = load_model_config(data / "qwen3_untied.gguf");
  const ModelConfig expected = load_model_config(data / "qwen3_untied");
  EXPECT_EQ(config, expected);
  const WeightSource hashed = hash_weights(config);
  const WeightSource stored = checkpoint_weights(Checkpoint::open(data / "qwen3_untied.gguf", config));
  ASSERT_EQ(stored.tensors(), hashed.tensors());
  for (const TensorSpec& tensor : stored.tensors()) {
    EXPECT_EQ(read_all(stored, tensor, ElementType::float32), read_all(hashed, tensor, ElementType::float32))
        << tensor.name;
  }
}

// A model of Qwen3-VL's decoder, whose matrices are in that type of GGUF.
class GgufWeightsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  ModelConfig config_;

  GgufWeightsTest() {
    config_.family = ModelFamily::qwen3_vl;
    config_.text = {256, 1, 4, 2, 64, 256, 64, 128, 1e6, {12, 10, 10}, true};
    config_.eos_tokens = {3};
  }

  // One of the model's sizes and the base of rotary embedding can be left out.
  [[nodiscard]] static GgufBuilder metadata(const std::string& without = "") {
    GgufBuilder file;
    file.word("general.architecture", "qwen3vl")
        .integer("qwen3vl.embedding_length", 256)
        .integer("qwen3vl.block_count", 1)
        .integer("qwen3vl.context_length", 128)
        .real("qwen3vl.attention.layer_norm_rms_epsilon", 1e-6F)
        .integer("tokenizer.ggml.eos_token_id", 3)
        .array("qwen3vl.rope.dimension_sections", Type::int32, 4,
               GgufBuilder::raw(12) + GgufBuilder::raw(10) + GgufBuilder::raw(10) + GgufBuilder::raw(0));
    const std::map<std::string, std::uint32_t> sizes{{"attention.head_count", 4},
                                                     {"attention.head_count_kv", 2},
                                                     {"feed_forward_length", 256},
                                                     {"n_deepstack_layers", 1}};
    for (const auto& [key, size] : sizes) {
      if (key != without) {
        file.integer("qwen3vl." + key, size);
      }
    }
    if (without != "rope.freq_base") {
      file.real("qwen3vl.rope.freq_base", 1e6F);
    }
    return file;
  }

  // One matrix of a layer, usually the value's, may be of another type. Gives the rows of each tensor in their file
  // form.
  std::map<std::string, std::string> add_tensors(GgufBuilder& file, GgufType type, ElementType format,
                                                 GgufType of_other, ElementType other_format,
                                                 const char* other = "v_proj") const {
    std::map<std::string, std::string> all;
    const WeightSource source = hash_weights(config_);
    for (const TensorSpec& tensor : source.tensors()) {
      const std::vector<std::byte> raw = read_all(source, tensor, ElementType::float32);
      std::string bytes(reinterpret_cast<const char*>(raw.data()), raw.size());
      const bool is_other = tensor.name.find(other) != std::string::npos;
      if (tensor.kind == TensorKind::matrix) {
        bytes = quantized(raw, tensor, is_other ? other_format : format);
      }
      const GgufType kind = tensor.kind != TensorKind::matrix ? GgufType::F32 : is_other ? of_other : type;
      file.tensor(gguf_tensor_name(tensor.name), static_cast<std::uint32_t>(kind),
                  {tensor.shape.rbegin(), tensor.shape.rend()}, bytes);
      all[tensor.name] = bytes;
    }
    return all;
  }
  static std::string quantized(const std::vector<std::byte>& raw, const TensorSpec& tensor, ElementType format) {
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    const auto width = static_cast<std::size_t>(tensor.elements() / tensor.shape.front());
    const std::size_t row_bytes = file_row_bytes(format, static_cast<std::int64_t>(width));
    std::string bytes(row_bytes * values.size() / width, '\0');
    for (std::size_t row = 0; row * width < values.size(); ++row) {
      EXPECT_FALSE(quantize_row(format, std::span(values).subspan(row * width, width),
                                std::as_writable_bytes(std::span(bytes)).subspan(row * row_bytes, row_bytes)));
    }
    return bytes;
  }
  [[nodiscard]] std::string opened(const GgufBuilder& file) const {
    write_gguf(folder_.path() / "m.gguf", file.bytes());
    return complaint_of([&] {
      const ModelConfig config = load_model_config(folder_.path() / "m.gguf");
      (void)Checkpoint::open(folder_.path() / "m.gguf", config);
    });
  }
};

TEST_F(GgufWeightsTest, BlocksAreTakenAsTheyAre) {
  for (const ElementType format : ggml_formats()) {
    const GgufType type = gguf_type_of(format).value();
    GgufBuilder file = metadata();
    const auto rows = add_tensors(file, type, format, type, format);
    ASSERT_EQ(opened(file), "accepted");
    ASSERT_EQ(load_model_config(folder_.path() / "m.gguf"), config_);
    const Checkpoint checkpoint = Checkpoint::open(folder_.path() / "m.gguf", config_);
    EXPECT_EQ(stored_recipe(checkpoint, ElementType::float16).of("x"), format);
    const WeightSource source = checkpoint_weights(Checkpoint::open(folder_.path() / "m.gguf", config_));
    for (const TensorSpec& tensor : source.tensors()) {
      if (tensor.kind == TensorKind::matrix) {
        const auto stored = source.rows(tensor);
        ASSERT_TRUE(stored);
        EXPECT_EQ(stored->format.type, format);
        const std::string bytes(reinterpret_cast<const char*>(stored->bytes.data()), stored->bytes.size());
        EXPECT_EQ(bytes, rows.at(tensor.name)) << tensor.name;
      }
    }
  }
}

TEST_F(GgufWeightsTest, EachTensorIsKeptInItsType) {
  GgufBuilder file = metadata();
  add_tensors(file, GgufType::Q4_K, ElementType::q4_k, GgufType::Q6_K, ElementType::q6_k);
  ASSERT_EQ(opened(file), "accepted");
  const WeightRecipe recipe = stored_recipe(Checkpoint::open(folder_.path() / "m.gguf", config_), ElementType::float16);
  for (const TensorSpec& tensor : required_tensors(config_)) {
    if (tensor.kind == TensorKind::matrix) {
      const bool is_value = tensor.name.find("v_proj") != std::string::npos;
      EXPECT_EQ(recipe.of(tensor.name), is_value ? ElementType::q6_k : ElementType::q4_k) << tensor.name;
    }
  }
}

TEST_F(GgufWeightsTest, GateAndUpInSeveralTypesAreKeptInOne) {
  GgufBuilder file = metadata();
  add_tensors(file, GgufType::Q4_K, ElementType::q4_k, GgufType::Q6_K, ElementType::q6_k, "up_proj");
  ASSERT_EQ(opened(file), "accepted");
  const WeightRecipe recipe = stored_recipe(Checkpoint::open(folder_.path() / "m.gguf", config_), ElementType::float16);
  ModelWeights unused;
  for (const WeightEntry& weight : weight_table(config_, unused)) {
    if (weight.kind() == TensorKind::matrix) {
      EXPECT_EQ(recipe.of(weight), weight.tensors.size() == 2 ? ElementType::q8_0 : ElementType::q4_k)
          << weight.tensors.front().name;
    }
  }
}

TEST_F(GgufWeightsTest, WhatIsNotTheModelIsRefused) {
  const auto complaint = [&](auto add) {
    GgufBuilder file = metadata();
    add(file);
    add_tensors(file, GgufType::Q8_0, ElementType::q8_0, GgufType::Q8_0, ElementType::q8_0);
    return opened(file);
  };
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.tensor("spare", 0, {8}, std::string(32, '\0')); }),
                        "1 unknown: 'spare'");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.tensor("output.weight", 0, {8}, std::string(32, '\0')); }),
                        "of another shape");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("qwen3vl.expert_count", 4); }),
                        "key 'qwen3vl.expert_count': 4 is not supported, only 0");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.real("qwen3vl.logit_scale", 0.5F); }),
                        "key 'qwen3vl.logit_scale': 0.5 is not supported, only 1");
  PASCALINE_EXPECT_SAYS(
      complaint([](auto& f) { f.key("qwen3vl.attention.causal", Type::boolean, std::string(1, '\0')); }),
      "key 'qwen3vl.attention.causal': 0 is not supported, only 1");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("general.architecture2", "x").word("general.type", "\xFF"); }),
                        "key 'general.type': the text");
  EXPECT_EQ(complaint([](auto& f) {
              f.integer("qwen3vl.a_tools_own", 1).integer("qwen3vl.expert_count", 0).word("general.name", "caf\xE9");
            }),
            "accepted");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("qwen3vl.rope.dimension_count", 32); }),
                        "key 'qwen3vl.rope.dimension_count': 32 instead of 64");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("qwen3vl.rope.scaling.type", "yarn"); }),
                        "key 'qwen3vl.rope.scaling.type': 'yarn' is not supported");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("tokenizer.ggml.eot_token_id", 64); }), "token 64 is not in");
  GgufBuilder projector;
  PASCALINE_EXPECT_SAYS(opened(projector.word("general.architecture", "clip")), "this is a projector");
  GgufBuilder none;
  PASCALINE_EXPECT_SAYS(opened(none), "key 'general.architecture': it is missing");
}

TEST_F(GgufWeightsTest, NoKeyIsPassedOverThatIsWrong) {
  const auto complaint = [&](auto add, const std::string& without = "") {
    GgufBuilder file = metadata(without);
    add(file);
    add_tensors(file, GgufType::Q8_0, ElementType::q8_0, GgufType::Q8_0, ElementType::q8_0);
    return opened(file);
  };
  const std::string features = "n_deepstack_layers";
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("qwen3vl.n_deepstack_layers", "three"); }, features),
                        "m.gguf: key 'qwen3vl.n_deepstack_layers': it is not an integer");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("qwen3vl.n_deepstack_layers", 2); }, features),
                        "key 'qwen3vl.n_deepstack_layers': 2 is not a possible number of the 1 layers");
  PASCALINE_EXPECT_SAYS(
      complaint([](auto& f) { f.key("qwen3vl.n_deepstack_layers", Type::int32, GgufBuilder::raw(-5)); }, features),
      "-5 is not a possible number");
  EXPECT_EQ(complaint([](auto&) {}, features), "accepted");
  PASCALINE_EXPECT_SAYS(complaint([](auto&) {}, "rope.freq_base"),
                        "m.gguf: key 'qwen3vl.rope.freq_base': it is missing");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("qwen3vl.rope.scaling.original_context_length", "z"); }),
                        "key 'qwen3vl.rope.scaling.original_context_length': it is not an integer");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) {
                          f.key("qwen3vl.rope.scaling.original_context_length", Type::int32, GgufBuilder::raw(-1));
                        }),
                        "-1 is not a possible number of tokens");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("qwen3vl.rope.scaling.finetuned", "z"); }),
                        "key 'qwen3vl.rope.scaling.finetuned': it is not a truth value");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("qwen3vl.tensor_data_layout", 1); }),
                        "key 'qwen3vl.tensor_data_layout': it is not a text");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("general.type", "adapter"); }),
                        "m.gguf: key 'general.type': 'adapter' is no text model");
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.integer("general.type", 1); }),
                        "key 'general.type': it is not a text");
  EXPECT_EQ(complaint([](auto& f) { f.word("general.type", "model"); }), "accepted");
  EXPECT_EQ(complaint([](auto& f) { f.integer("general.name", 1); }), "accepted") << "it is for people";
  PASCALINE_EXPECT_SAYS(complaint([](auto& f) { f.word("general.file_type", "Q8_0"); }),
                        "m.gguf: key 'general.file_type': it is not an integer");
  for (const std::string key : {"attention.head_count", "attention.head_count_kv", "feed_forward_length"}) {
    PASCALINE_EXPECT_SAYS(complaint(
                              [&](auto& f) {
                                f.array("qwen3vl." + key, Type::uint32, 2,
                                        GgufBuilder::raw(std::uint32_t{4}) + GgufBuilder::raw(std::uint32_t{4}));
                              },
                              key),
                          "key 'qwen3vl." + key + "': it is an array, and one value a layer is not supported");
  }
}

TEST_F(GgufWeightsTest, NoExpertsAreNoMixtureOfExperts) {
  GgufBuilder file = metadata();
  file.integer("qwen3vl.expert_count", 0).integer("qwen3vl.expert_used_count", 0);
  add_tensors(file, GgufType::Q8_0, ElementType::q8_0, GgufType::Q8_0, ElementType::q8_0);
  EXPECT_EQ(opened(file), "accepted");
}

// A model of the family llama, as far as its configuration reads it.
class GgufLlamaTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  // Of metadata beside the sizes, with these frequency factors if there are any.
  template <typename Add>
  [[nodiscard]] ModelConfig config_with(const Add& add, const std::vector<float>& factors = {}) const {
    GgufBuilder file;
    file.word("general.architecture", "llama")
        .integer("llama.embedding_length", 576)
        .integer("llama.block_count", 1)
        .integer("llama.attention.head_count", 9)
        .integer("llama.attention.head_count_kv", 3)
        .integer("llama.feed_forward_length", 96)
        .integer("llama.context_length", 128)
        .integer("llama.rope.dimension_count", 64);
    add(file);
    file.tensor("token_embd.weight", 0, {576, 8}, std::string(4 * 576 * 8, '\0'));
    if (!factors.empty()) {
      file.tensor("rope_freqs.weight", 0, {static_cast<std::int64_t>(factors.size())},
                  {reinterpret_cast<const char*>(factors.data()), factors.size() * sizeof(float)});
    }
    write_gguf(folder_.path() / "m.gguf", file.bytes());
    return load_model_config(folder_.path() / "m.gguf");
  }
  static void usual(GgufBuilder& file) { file.real("llama.attention.layer_norm_rms_epsilon", 1e-5F); }
};

TEST_F(GgufLlamaTest, SizesOfSmolLM2AreRead) {
  const ModelConfig config = config_with(usual);
  EXPECT_EQ(config.family, ModelFamily::llama);
  EXPECT_EQ(config.text.head_dim, 64);
  EXPECT_EQ(config.text.norm_epsilon.nano, 10'000);
  EXPECT_FALSE(config.text.normalises_heads);
  EXPECT_TRUE(config.text.tied);
  EXPECT_EQ(config.text.rope_theta, 10000) << "what it is where the file does not say";
  EXPECT_TRUE(config.text.rope_divisors.empty());
}

TEST_F(GgufLlamaTest, FrequenciesAreScaledAsTheMetadataSay) {
  const auto divisors = [&](auto add, const std::vector<float>& factors = {}) {
    return config_with(
               [&](GgufBuilder& file) {
                 usual(file);
                 add(file);
               },
               factors)
        .text.rope_divisors;
  };
  const std::vector<float> all(32, 4);
  EXPECT_EQ(divisors([](auto& f) { f.word("llama.rope.scaling.type", "linear").real("llama.rope.scaling.factor", 4); }),
            all);
  EXPECT_EQ(divisors([](auto& f) { f.real("llama.rope.scaling.factor", 4); }), all) << "linear is what is usual";
  EXPECT_EQ(divisors([](auto& f) { f.real("llama.rope.scale_linear", 4); }), all);
  EXPECT_TRUE(divisors([](auto& f) {
                f.word("llama.rope.scaling.type", "none").real("llama.rope.scaling.factor", 4);
              }).empty());
  std::vector<float> factors(32, 1);
  factors.back() = 8;
  EXPECT_EQ(divisors([](auto&) {}, factors), factors);
  EXPECT_EQ(divisors([](auto& f) { f.real("llama.rope.scaling.factor", 2); }, factors).back(), 16);
}

TEST_F(GgufLlamaTest, WhatIsNotSupportedIsRefusedByItsKey) {
  const auto complaint = [&](auto add, const std::vector<float>& factors = {}) {
    return complaint_of([&] { (void)config_with(add, factors); });
  };
  const auto beside = [](auto add) {
    return [add](GgufBuilder& file) {
      usual(file);
      add(file);
    };
  };
  PASCALINE_EXPECT_SAYS(complaint(beside([](auto& f) { f.word("llama.rope.scaling.type", "yarn"); })),
                        "key 'llama.rope.scaling.type': 'yarn' is not supported, only 'none' and 'linear'");
  PASCALINE_EXPECT_SAYS(complaint(beside([](auto& f) { f.real("llama.rope.scaling.factor", -2); })),
                        "key 'llama.rope.scaling.factor': -2 is out of range");
  PASCALINE_EXPECT_SAYS(complaint(beside([](auto& f) { f.integer("llama.expert_count", 8); })),
                        "key 'llama.expert_count': 8 is not supported, only 0");
  PASCALINE_EXPECT_SAYS(
      complaint([](auto& f) { f.real("llama.attention.layer_norm_rms_epsilon", 0); }),
      "key 'llama.attention.layer_norm_rms_epsilon': 0 is not supported, only whole billionths, from 1e-9 to 1");
  PASCALINE_EXPECT_SAYS(complaint(usual, std::vector<float>(31, 1)),
                        "tensor 'rope_freqs.weight': it is not 32 numbers");
  PASCALINE_EXPECT_SAYS(complaint(usual, std::vector<float>(32, 0)), "tensor 'rope_freqs.weight': frequencies are");
}

TEST_F(GgufLlamaTest, FilesAreKnownByWhatTheyBeginWith) {
  (void)config_with(usual);
  const std::filesystem::path file = folder_.path() / "sha256-0123";
  std::filesystem::copy_file(folder_.path() / "m.gguf", file);
  EXPECT_TRUE(is_gguf_path(file));
  EXPECT_EQ(load_model_config(file).family, ModelFamily::llama);
  write_gguf(folder_.path() / "short", "GGU");
  EXPECT_FALSE(is_gguf_path(folder_.path() / "short"));
  EXPECT_FALSE(is_gguf_path(folder_.path() / "none"));
  std::filesystem::create_directory(folder_.path() / "d.gguf");
  EXPECT_FALSE(is_gguf_path(folder_.path() / "d.gguf"));
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)load_model_config(folder_.path() / "d.gguf"); }),
                        "d.gguf: this is a folder, and no GGUF file");
  const std::string complaint = complaint_of([&] { (void)load_model_config(folder_.path()); });
  PASCALINE_EXPECT_SAYS(complaint, "config.json: the folder lacks this file, but it has GGUF files");
  PASCALINE_EXPECT_SAYS(complaint, "m.gguf");
}

}  // namespace
}  // namespace pascaline::testing
