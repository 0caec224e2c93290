#include <gtest/gtest.h>

#include <filesystem>

#include "model/checkpoint/checkpoint.hpp"
#include "model/convert/quantized_file.hpp"
#include "model/residency/device_weights.hpp"
#include "tests/model/checkpoint/quantized_tensors.hpp"
#include "tests/model/recorded_run.hpp"

namespace pascaline::testing {
namespace {

// Models that make_quantized_fixture.py wrote, with what Transformers computes from the numbers in them.
std::filesystem::path quantized_model(const char* name) {
  return std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / name;
}

TEST(QuantizedFolderTest, Fp8GivesTheLogitsOfItsNumbers) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_recorded(executor, quantized_model("qwen3_fp8"));
}

TEST(QuantizedFolderTest, AwqGivesTheLogitsOfItsNumbers) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_recorded(executor, quantized_model("qwen3_awq"));
}

std::vector<std::vector<std::byte>> bytes_on(Device& device, const ModelConfig& config, WeightSource source,
                                             const WeightRecipe& recipe) {
  const DeviceWeights weights = load_weights(config, source, device.memory(), recipe, 2);
  std::vector<std::vector<std::byte>> all;
  for (const RawBuffer& buffer : weights.buffers) {
    std::vector<std::byte>& bytes = all.emplace_back(buffer.bytes());
    device.memory().download({}, bytes, buffer.span());
    device.memory().synchronize(StreamId{});
  }
  return all;
}

// A folder of Pascaline's own with the rows as AWQ's are unpacked.
TEST(QuantizedFolderTest, AwqIsOnTheDeviceAsAFolderOfInt4) {
  const auto device = open_device("emulator");
  const ModelConfig config = load_model_config(quantized_model("qwen3_awq"));
  const Checkpoint checkpoint = Checkpoint::open(quantized_model("qwen3_awq"), config);
  const WeightRecipe recipe = stored_recipe(checkpoint, ElementType::float32);
  const WeightSource source = checkpoint_weights(Checkpoint::open(quantized_model("qwen3_awq"), config));
  FormatNotes notes("int4");
  QuantizedTensors own;
  for (const TensorSpec& spec : source.tensors()) {
    const auto rows = source.rows(spec);
    if (!rows) {
      own.tensors.push_back(
          {{spec.name, StoredType::F32, spec.shape, {}}, read_all(source, spec, ElementType::float32)});
      continue;
    }
    const std::size_t row_bytes = file_row_bytes(ElementType::int4_g128, spec.shape[1]);
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.shape[0]) * row_bytes);
    for (std::int64_t row = 0; row < spec.shape[0]; ++row) {
      rows->unpack(row, std::span(bytes).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes));
    }
    notes.add(spec.name, ElementType::int4_g128, spec.shape);
    own.tensors.push_back(
        {{spec.name, StoredType::U8, {spec.shape[0], static_cast<std::int64_t>(row_bytes)}, {}}, std::move(bytes)});
  }
  own.metadata = notes.metadata();
  const TemporaryFolder folder;
  own.write(folder.path() / "model.safetensors");
  ModelConfig plain = config;
  plain.quantization = FolderQuantization::none;
  const auto expected = bytes_on(*device, plain, checkpoint_weights(Checkpoint::open(folder.path(), plain)), recipe);
  EXPECT_EQ(
      bytes_on(*device, config, checkpoint_weights(Checkpoint::open(quantized_model("qwen3_awq"), config)), recipe),
      expected);
  // Nothing is rounded twice: the matrices are not those of the same numbers quantized anew.
  EXPECT_EQ(recipe.of("model.layers.0.mlp.down_proj.weight"), ElementType::int4_g128);
}

TEST(QuantizedFolderTest, QuantizingTwiceIsRefused) {
  const TemporaryFolder folder;
  for (const char* name : {"qwen3_fp8", "qwen3_awq"}) {
    const ModelConfig config = load_model_config(quantized_model(name));
    const Checkpoint checkpoint = Checkpoint::open(quantized_model(name), config);
    PASCALINE_EXPECT_SAYS(complaint_of([&] {
                            (void)write_quantized(checkpoint, config, WeightRecipe::named("q8_0"),
                                                  folder.path() / "model.safetensors", {});
                          }),
                          "the model is quantized already");
  }
}

}  // namespace
}  // namespace pascaline::testing
