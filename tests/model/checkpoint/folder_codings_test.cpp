#include "model/checkpoint/hf/folder_codings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::complaint_of;
using testing::OwnedTensor;
using testing::read_all;
using testing::write_tensors;

constexpr const char* kUp = "model.layers.0.mlp.up_proj.";
constexpr const char* kKey = "model.layers.0.self_attn.k_proj.";

std::filesystem::path data(const std::string& model) {
  return std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / model;
}

// The folder of a quantized model, whose tensors a test changes.
class QuantizedFolder {
 public:
  explicit QuantizedFolder(const std::string& model) : config_(load_model_config(data(model))) {
    const Safetensors file(data(model) / "model.safetensors");
    for (const StoredTensor& tensor : file.tensors()) {
      tensors_.push_back({tensor, {tensor.bytes.begin(), tensor.bytes.end()}});
    }
  }
  OwnedTensor& tensor(const std::string& name) {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const OwnedTensor& owned) { return owned.tensor.name == name; });
    EXPECT_NE(found, tensors_.end()) << name;
    return *found;
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const OwnedTensor& owned) { return owned.tensor.name == name; });
  }
  void add(OwnedTensor tensor) { tensors_.push_back(std::move(tensor)); }
  Checkpoint open() {
    write_tensors(folder_.path() / "model.safetensors", tensors_);
    return Checkpoint::open(folder_.path(), config_);
  }
  std::string said() {
    return complaint_of([this] { (void)open(); });
  }

 private:
  ModelConfig config_;
  std::vector<OwnedTensor> tensors_;
  testing::TemporaryFolder folder_;
};

const TensorSpec& spec_of(const WeightSource& source, const std::string& name) {
  return *std::find_if(source.tensors().begin(), source.tensors().end(),
                       [&](const TensorSpec& spec) { return spec.name == name; });
}

TEST(Fp8Test, CodesAreTheNumbersOfE4m3) {
  const std::vector<std::pair<int, float>> known{{0x00, 0.0F},      {0x01, 0x1p-9F}, {0x07, 0x7p-9F}, {0x08, 0x1p-6F},
                                                 {0x09, 0x1.2p-6F}, {0x38, 1.0F},    {0x3C, 1.5F},    {0x40, 2.0F},
                                                 {0x77, 240.0F},    {0x78, 256.0F},  {0x7E, 448.0F},  {0xB8, -1.0F},
                                                 {0xFE, -448.0F},   {0x81, -0x1p-9F}};
  for (const auto& [code, number] : known) {
    EXPECT_EQ(float_of_e4m3(static_cast<std::uint8_t>(code)), number) << code;
  }
  EXPECT_TRUE(std::signbit(float_of_e4m3(0x80)));
  EXPECT_TRUE(std::isnan(float_of_e4m3(0x7F)));
  EXPECT_TRUE(std::isnan(float_of_e4m3(0xFF)));
  for (int code = 0; code < 0x7E; ++code) {
    EXPECT_LT(float_of_e4m3(static_cast<std::uint8_t>(code)), float_of_e4m3(static_cast<std::uint8_t>(code + 1)));
  }
}

TEST(Fp8Test, EachBlockHasItsScale) {
  QuantizedFolder folder("qwen3_fp8");
  // 192 rows of 128 values: two blocks of rows, of which the second is smaller.
  OwnedTensor& codes = folder.tensor(std::string(kUp) + "weight");
  OwnedTensor& scales = folder.tensor(std::string(kUp) + "weight_scale_inv");
  ASSERT_EQ(codes.tensor.shape, (std::vector<std::int64_t>{192, 128}));
  std::fill(codes.bytes.begin(), codes.bytes.end(), std::byte{0x3C});
  scales.tensor.type = StoredType::F32;
  scales.bytes.resize(8);
  const float numbers[2]{0.25F, 3.0F};
  std::memcpy(scales.bytes.data(), numbers, sizeof numbers);
  const WeightSource source = checkpoint_weights(folder.open());
  const TensorSpec spec = spec_of(source, std::string(kUp) + "weight");
  std::vector<float> values(4);
  source.read(spec, ElementType::float32, 127 * 128 + 126, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<float>{0.375F, 0.375F, 4.5F, 4.5F}));
  EXPECT_FALSE(source.rows(spec).has_value()) << "numbers, in no format of matrices";
}

TEST(Fp8Test, PartsMustBeThereAndFit) {
  QuantizedFolder missing("qwen3_fp8");
  missing.remove(std::string(kUp) + "weight_scale_inv");
  PASCALINE_EXPECT_SAYS(missing.said(), "'model.layers.0.mlp.up_proj.weight' has no scales in this folder");
  QuantizedFolder alone("qwen3_fp8");
  alone.remove(std::string(kUp) + "weight");
  PASCALINE_EXPECT_SAYS(alone.said(), "has no codes in this folder");
  QuantizedFolder turned("qwen3_fp8");
  turned.tensor(std::string(kUp) + "weight_scale_inv").tensor.shape = {1, 2};
  PASCALINE_EXPECT_SAYS(turned.said(), "weight_scale_inv' is BF16 [1, 2] instead of F32 [2, 1]");
  QuantizedFolder twice("qwen3_fp8");
  twice.add({{"layers.0.mlp.up_proj.weight", StoredType::BF16, {1}, {}}, std::vector<std::byte>(2)});
  PASCALINE_EXPECT_SAYS(twice.said(), "1 there twice: 'model.layers.0.mlp.up_proj.weight'");
  QuantizedFolder foreign("qwen3_fp8");
  foreign.add({{std::string(kUp) + "input_scale", StoredType::F32, {1}, {}}, std::vector<std::byte>(4)});
  PASCALINE_EXPECT_SAYS(foreign.said(), "this is a quantized checkpoint (1 tensor such as");
}

TEST(Fp8Test, CodesThatAreNoNumbersAreRefusedWhenRead) {
  QuantizedFolder folder("qwen3_fp8");
  folder.tensor(std::string(kUp) + "weight").bytes[130] = std::byte{0x7F};
  const WeightSource source = checkpoint_weights(folder.open());
  const std::string said =
      complaint_of([&] { (void)read_all(source, spec_of(source, std::string(kUp) + "weight"), ElementType::float32); });
  PASCALINE_EXPECT_SAYS(
      said, ".safetensors: tensor 'model.layers.0.mlp.up_proj.weight': value 2 of row 1, nan, is not finite");
}

// As AutoAWQ unpacks them: shifts 0, 4, …, 28 of a word are its outputs in this order.
int awq_code(const OwnedTensor& tensor, std::int64_t line, std::int64_t output) {
  constexpr int kOrder[8]{0, 2, 4, 6, 1, 3, 5, 7};
  std::int32_t word = 0;
  std::memcpy(&word, tensor.bytes.data() + (line * tensor.tensor.shape[1] + output / 8) * 4, 4);
  const auto place = std::find(std::begin(kOrder), std::end(kOrder), output % 8) - std::begin(kOrder);
  return static_cast<int>(static_cast<std::uint32_t>(word) >> (4 * place)) & 15;
}

TEST(AwqTest, RowsAreThoseOfInt4BitForBit) {
  for (const char* name : {kUp, kKey, "model.layers.0.mlp.down_proj."}) {
    QuantizedFolder folder("qwen3_awq");
    const OwnedTensor codes = folder.tensor(std::string(name) + "qweight");
    const OwnedTensor zeros = folder.tensor(std::string(name) + "qzeros");
    const OwnedTensor scales = folder.tensor(std::string(name) + "scales");
    const WeightSource source = checkpoint_weights(folder.open());
    const TensorSpec spec = spec_of(source, std::string(name) + "weight");
    const auto rows = source.rows(spec);
    ASSERT_TRUE(rows && rows->unpack);
    EXPECT_EQ(rows->format, StoredFormat{ElementType::int4_g128});
    const std::int64_t groups = spec.shape[1] / 128;
    std::vector<std::byte> row(static_cast<std::size_t>(groups) * 68);
    std::vector<float> values(static_cast<std::size_t>(spec.elements()));
    source.read(spec, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
    for (std::int64_t r = 0; r < spec.shape[0]; ++r) {
      rows->unpack(r, row);
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::byte* const at = row.data() + g * 68;
        const std::byte* const scale = scales.bytes.data() + (g * spec.shape[0] + r) * 2;
        ASSERT_EQ(std::memcmp(at + 64, scale, 2), 0);
        ASSERT_EQ(std::to_integer<int>(at[66]), awq_code(zeros, g, r));
        ASSERT_EQ(std::to_integer<int>(at[67]), 0);
        for (std::int64_t i = 0; i < 128; ++i) {
          const int held = std::to_integer<int>(at[i % 64]) >> (i / 64 * 4) & 15;
          ASSERT_EQ(held, awq_code(codes, g * 128 + i, r)) << name << r << " " << i;
          float factor = 0;
          ASSERT_FALSE(convert_weights(StoredType::F16, {scale, 2}, ElementType::float32,
                                       std::as_writable_bytes(std::span(&factor, 1))));
          ASSERT_EQ(values[static_cast<std::size_t>(r * spec.shape[1] + g * 128 + i)],
                    static_cast<float>(held - awq_code(zeros, g, r)) * factor);
        }
      }
    }
  }
}

TEST(AwqTest, TheFolderIsKeptInInt4) {
  QuantizedFolder folder("qwen3_awq");
  const Checkpoint checkpoint = folder.open();
  EXPECT_TRUE(checkpoint.has_formats());
  const WeightRecipe recipe = stored_recipe(checkpoint, ElementType::float32);
  EXPECT_EQ(recipe.of(std::string(kUp) + "weight"), ElementType::int4_g128);
  EXPECT_EQ(recipe.of("model.embed_tokens.weight"), ElementType::float32);
  EXPECT_EQ(recipe.name(), "AWQ (as stored)");
}

TEST(AwqTest, PartsMustBeThereAndFit) {
  QuantizedFolder missing("qwen3_awq");
  missing.remove(std::string(kUp) + "qzeros");
  PASCALINE_EXPECT_SAYS(missing.said(), "'model.layers.0.mlp.up_proj.weight' has no zero points in this folder");
  QuantizedFolder wide("qwen3_awq");
  OwnedTensor& scales = wide.tensor(std::string(kUp) + "scales");
  scales.tensor.type = StoredType::F32;
  scales.bytes.resize(scales.bytes.size() * 2);
  PASCALINE_EXPECT_SAYS(wide.said(), "scales' is F32 [1, 256] instead of F16 [1, 256]");
  QuantizedFolder reordered("qwen3_awq");
  reordered.add({{std::string(kUp) + "g_idx", StoredType::I32, {128}, {}}, std::vector<std::byte>(512)});
  PASCALINE_EXPECT_SAYS(reordered.said(), "this is a quantized checkpoint (1 tensor such as");
}

std::string quantization_complaint(const json& quantization) {
  json document = testing::config_json("qwen3_0.6b");
  document["quantization_config"] = quantization;
  return complaint_of([&] { (void)parse_model_config(document.dump(), "config.json"); });
}

TEST(QuantizationConfigTest, OnlyTheKnownKindsAreTaken) {
  const json fp8{{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"weight_block_size", {128, 128}}};
  const json awq{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"zero_point", true}, {"version", "gemm"}};
  EXPECT_EQ(quantization_complaint(fp8), "accepted");
  EXPECT_EQ(quantization_complaint(awq), "accepted");
  json vision = testing::config_json("qwen3_vl_2b");
  vision["quantization_config"] = fp8;
  EXPECT_EQ(parse_model_config(vision.dump(), "config.json").quantization, FolderQuantization::fp8_blocks);
  const auto with = [](json quantization, const char* key, const json& value) {
    quantization[key] = value;
    return quantization_complaint(quantization);
  };
  EXPECT_EQ(with(fp8, "modules_to_not_convert", {"lm_head", "visual"}), "accepted");
  EXPECT_EQ(with(fp8, "modules_to_not_convert", nullptr), "accepted");
  PASCALINE_EXPECT_SAYS(with(fp8, "weight_block_size", {64, 128}),
                        "config.json:/quantization_config/weight_block_size: [64,128] is not supported");
  PASCALINE_EXPECT_SAYS(with(fp8, "activation_scheme", "static"), "/quantization_config/activation_scheme");
  PASCALINE_EXPECT_SAYS(with(fp8, "fmt", "e5m2"), "/quantization_config/fmt");
  PASCALINE_EXPECT_SAYS(with(fp8, "modules_to_not_convert", {1}), "/quantization_config/modules_to_not_convert/0");
  PASCALINE_EXPECT_SAYS(quantization_complaint({{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}}),
                        "the key 'weight_block_size' is missing");
  PASCALINE_EXPECT_SAYS(with(awq, "bits", 8), "/quantization_config/bits: 8 is not supported, only 4");
  PASCALINE_EXPECT_SAYS(with(awq, "group_size", 64), "/quantization_config/group_size: 64 is not supported, only 128");
  PASCALINE_EXPECT_SAYS(with(awq, "zero_point", false), "/quantization_config/zero_point");
  PASCALINE_EXPECT_SAYS(with(awq, "version", "gemv"), "/quantization_config/version");
  PASCALINE_EXPECT_SAYS(with(awq, "sym", true), "/quantization_config/sym: true is not supported, only false");
  EXPECT_EQ(with(awq, "a_tools_own", 1), "accepted");
  for (const char* method : {"gptq", "bitsandbytes", "compressed-tensors"}) {
    PASCALINE_EXPECT_SAYS(quantization_complaint({{"quant_method", method}, {"bits", 4}}),
                          "config.json:/quantization_config/quant_method: models quantized by '" + std::string(method) +
                              "' are not supported");
  }
}

}  // namespace
}  // namespace pascaline
