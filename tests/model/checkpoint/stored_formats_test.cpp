#include "model/checkpoint/stored_formats.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/elements.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"
#include "tests/model/checkpoint/quantized_tensors.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::config_of;
using testing::quantized_tensors;
using testing::QuantizedTensors;
using testing::read_all;

constexpr const char* kStoredEmbedding = "model.language_model.embed_tokens.weight";
constexpr const char* kStoredNorm = "model.language_model.norm.weight";
const std::string kStoredKey = std::string("pascaline.format.") + kStoredEmbedding;

class StoredFormatsTest : public ::testing::Test {
 protected:
  StoredFormatsTest()
      : config_(config_of("tiny_a")), content_(quantized_tensors(config_, WeightRecipe::named("q4_k"))) {}

  Checkpoint open() {
    content_.write(folder_.path() / "model.safetensors");
    return Checkpoint::open(folder_.path(), config_);
  }
  std::string said() {
    return complaint_of([this] { (void)open(); });
  }
  std::string said_with(const std::string& note) {
    content_.metadata[kStoredKey] = note;
    return said();
  }

  const testing::TemporaryFolder folder_;
  ModelConfig config_;
  QuantizedTensors content_;
};

TEST_F(StoredFormatsTest, MatricesKeepTheirFormats) {
  const Checkpoint checkpoint = open();
  EXPECT_TRUE(checkpoint.has_formats());
  EXPECT_EQ(checkpoint.recipe(), "q4_k");
  const WeightRecipe recipe = WeightRecipe::named("q4_k");
  const WeightRecipe stored = stored_recipe(checkpoint, ElementType::float16);
  EXPECT_EQ(stored.name(), "q4_k (as stored)");
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const TensorSpec& spec = checkpoint.tensors()[i];
    const bool is_matrix = spec.kind == TensorKind::matrix;
    EXPECT_EQ(checkpoint.format(i).has_value(), is_matrix) << spec.name;
    if (is_matrix) {
      EXPECT_EQ(checkpoint.format(i)->type, recipe.of(spec.name)) << spec.name;
      EXPECT_EQ(stored.of(spec.name), recipe.of(spec.name)) << spec.name;
    }
  }
}

TEST_F(StoredFormatsTest, ElementsAreThoseOfTheRows) {
  const WeightSource source = checkpoint_weights(open());
  for (const TensorSpec& spec : source.tensors()) {
    const auto rows = source.rows(spec);
    ASSERT_EQ(rows.has_value(), spec.kind == TensorKind::matrix);
    if (!rows) {
      continue;
    }
    const std::int64_t columns = spec.elements() / spec.shape.front();
    const std::size_t row_bytes = file_row_bytes(rows->format.type, columns);
    std::vector<float> expected(static_cast<std::size_t>(spec.elements()));
    for (std::size_t row = 0; row < static_cast<std::size_t>(spec.shape.front()); ++row) {
      dequantize_row(
          rows->format.type, rows->bytes.subspan(row * row_bytes, row_bytes),
          std::span(expected).subspan(row * static_cast<std::size_t>(columns), static_cast<std::size_t>(columns)));
    }
    const std::vector<std::byte> all = read_all(source, spec, ElementType::float32);
    ASSERT_EQ(std::memcmp(all.data(), expected.data(), all.size()), 0) << spec.name;
    std::vector<float> part(static_cast<std::size_t>(columns) + 3);
    source.read(spec, ElementType::float32, columns - 2, std::as_writable_bytes(std::span(part)));
    ASSERT_EQ(std::memcmp(part.data(), expected.data() + columns - 2, part.size() * sizeof(float)), 0) << spec.name;
    const std::vector<double> narrow = widen(ElementType::float16, read_all(source, spec, ElementType::float16));
    EXPECT_NEAR(narrow[7], expected[7], 1e-3);
  }
}

TEST_F(StoredFormatsTest, WrongNotesAreRefusedByTensor) {
  const std::string begin = (folder_.path() / "model.safetensors").string() + ": tensor '" + kStoredEmbedding + "': ";
  EXPECT_TRUE(said_with("q7_k [512, 64]").starts_with(begin));
  PASCALINE_EXPECT_SAYS(said_with("q7_k [512, 64]"), "'q7_k [512, 64]', which begins with no format of matrices");
  PASCALINE_EXPECT_SAYS(said_with("float16 [512, 64]"), "no format of matrices");
  PASCALINE_EXPECT_SAYS(said_with(""), "no format of matrices");
  PASCALINE_EXPECT_SAYS(said_with("q6_k"), "the metadata says 'q6_k', the model has the shape [512, 64]");
  PASCALINE_EXPECT_SAYS(said_with("q6_k [64, 512]"), "the model has the shape [512, 64]");
  PASCALINE_EXPECT_SAYS(said_with("q6_k [512, 64] "), "the model has the shape [512, 64]");
  PASCALINE_EXPECT_SAYS(said_with("q4_0 [512, 64]"),
                        begin + "U8 [512, 210], but [512, 64] in q4_0 is 512 rows of 36 bytes");
}

TEST_F(StoredFormatsTest, MissingNotesAreSeen) {
  content_.metadata.erase(kStoredKey);
  EXPECT_EQ(said(), (folder_.path() / "model.safetensors").string() + ": tensor '" + kStoredEmbedding +
                        "': it is of U8, and the metadata has no format for it");
  content_.metadata.clear();
  PASCALINE_EXPECT_SAYS(said(), "this is a quantized checkpoint");
}

TEST_F(StoredFormatsTest, NotesOfNothingAndOfVectorsAreRefused) {
  content_.metadata["pascaline.format.absent"] = "q8_0 [1, 1]";
  PASCALINE_EXPECT_SAYS(said(), "tensor 'absent': the metadata has a format for it, but it is not in the file");
  content_.metadata.erase("pascaline.format.absent");
  content_.metadata[std::string("pascaline.format.") + kStoredNorm] = "q8_0 [64]";
  PASCALINE_EXPECT_SAYS(said(), "the metadata says 'q8_0 [64]', but it is no matrix");
}

TEST_F(StoredFormatsTest, AnotherVersionIsRefused) {
  content_.metadata["pascaline.version"] = "2";
  PASCALINE_EXPECT_SAYS(said(), "model.safetensors: its metadata must say pascaline.version 1, not '2'");
  content_.metadata.erase("pascaline.version");
  PASCALINE_EXPECT_SAYS(said(), "must say pascaline.version 1, not nothing");
}

TEST_F(StoredFormatsTest, ANoteOnNumbersSaysWhatToKeepThemIn) {
  const std::vector<testing::OwnedTensor> numbers = testing::hashed_tensors(config_);
  content_.tensors.front() = numbers.front();
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.format(0), StoredFormat{ElementType::q6_k});
  EXPECT_EQ(stored_recipe(checkpoint, ElementType::float16).of(kStoredEmbedding), ElementType::q6_k);
  content_.metadata.erase(kStoredKey);
  EXPECT_EQ(stored_recipe(open(), ElementType::float32).of(kStoredEmbedding), ElementType::float32);
}

TEST_F(StoredFormatsTest, Float16xIsStoredWithItsWidthAndBias) {
  content_ = quantized_tensors(config_, WeightRecipe::named("float16x"));
  EXPECT_EQ(content_.metadata[kStoredKey], "float16x [512, 64] exponent_bits=5 bias=15") << "all are exact in any";
  const WeightSource source = checkpoint_weights(open());
  const WeightSource original = hash_weights(config_);
  for (const TensorSpec& spec : source.tensors()) {
    ASSERT_EQ(read_all(source, spec, ElementType::float32), read_all(original, spec, ElementType::float32))
        << spec.name;
  }
  // The same codes with another width and bias are other values.
  const std::vector<std::byte> codes = content_.tensors.front().bytes;
  for (const Float16x format : {Float16x{4, 0}, Float16x{6, 40}, Float16x{8, 143}}) {
    content_.metadata[kStoredKey] =
        fmt::format("float16x [512, 64] exponent_bits={} bias={}", format.exponent_bits, format.bias);
    const Checkpoint checkpoint = open();
    EXPECT_EQ(checkpoint.format(0), (StoredFormat{ElementType::float16x, format}));
    const WeightSource other = checkpoint_weights(open());
    std::vector<float> expected(codes.size() / 2);
    floats_from_16x(format, codes, expected);
    const std::vector<std::byte> got = read_all(other, other.tensors().front(), ElementType::float32);
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0);
    EXPECT_EQ(other.rows(other.tensors().front())->format, (StoredFormat{ElementType::float16x, format}));
  }
}

TEST_F(StoredFormatsTest, ADamagedWidthOrBiasOfFloat16xIsRefused) {
  content_ = quantized_tensors(config_, WeightRecipe::named("float16x"));
  for (const char* end : {"", " ", " exponent_bits=5", " exponent_bits=3 bias=15", " exponent_bits=9 bias=140",
                          " exponent_bits=5 bias=-1", " exponent_bits=5 bias=141", " exponent_bits=8 bias=126",
                          " exponent_bits=5 bias=15 ", " exponent_bits=05 bias=15", " bias=15 exponent_bits=5",
                          " exponent_bits=5 bias=99999999999", "exponent_bits=5 bias=15"}) {
    const std::string note = std::string("float16x [512, 64]") + end;
    PASCALINE_EXPECT_SAYS(said_with(note), "tensor '" + std::string(kStoredEmbedding) + "': the metadata says '" +
                                               note +
                                               "', which does not end with exponent_bits from 4 to 8 and the bias");
  }
  PASCALINE_EXPECT_SAYS(said_with("float16x [64, 512] exponent_bits=5 bias=15"), "the model has the shape [512, 64]");
  content_.tensors.front().tensor.shape = {512, 126};
  content_.tensors.front().bytes.resize(512 * 126);
  PASCALINE_EXPECT_SAYS(said_with("float16x [512, 64] exponent_bits=5 bias=15"),
                        "[512, 64] in float16x is 512 rows of 128 bytes");
}

TEST_F(StoredFormatsTest, CodesBeyondTheLargestOfEightBitsAreDamage) {
  content_ = quantized_tensors(config_, WeightRecipe::named("float16x"));
  content_.metadata[kStoredKey] = "float16x [512, 64] exponent_bits=8 bias=127";
  std::vector<std::byte>& bytes = content_.tensors.front().bytes;
  bytes[3 * 128 + 14] = std::byte{0x80};  // value 7 of row 3
  bytes[3 * 128 + 15] = std::byte{0x7F};
  const WeightSource source = checkpoint_weights(open());
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)read_all(source, source.tensors().front(), ElementType::float32); }),
                        std::string("tensor '") + kStoredEmbedding +
                            "': value 7 of row 3, inf, is not finite; the checkpoint is damaged");
}

TEST_F(StoredFormatsTest, ScalesThatAreNotFiniteAreDamage) {
  std::vector<std::byte>& bytes = content_.tensors.front().bytes;
  bytes[5 * 210 + 208] = std::byte{0};
  bytes[5 * 210 + 209] = std::byte{0x7C};
  const WeightSource source = checkpoint_weights(open());
  const std::string complaint =
      complaint_of([&] { (void)read_all(source, source.tensors().front(), ElementType::float32); });
  PASCALINE_EXPECT_SAYS(complaint, std::string("tensor '") + kStoredEmbedding + "': value ");
  PASCALINE_EXPECT_SAYS(complaint, " of row 5, ");
  PASCALINE_EXPECT_SAYS(complaint, "is not finite; the checkpoint is damaged");
}

}  // namespace
}  // namespace pascaline
