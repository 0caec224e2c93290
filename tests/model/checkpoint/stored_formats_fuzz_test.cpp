#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/model/checkpoint/quantized_tensors.hpp"

namespace pascaline {
namespace {

using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::word_list;

const std::vector<std::string_view> kNoteWords =
    word_list(R"(pascaline.format.|pascaline.version|"1"|q8_0 [512, 64]|q4_k [64, 64]|[|]|, |-1|float16|int8_row|)"
              R"(int4_g128|99999999999|float16x| exponent_bits=| bias=|__metadata__)");

class StoredFormatsFuzzTest : public FuzzTest {
 protected:
  StoredFormatsFuzzTest() : config_(testing::config_of("tiny_a")) {
    const WeightRecipe recipe("mixed", {{"*down_proj.weight", ElementType::float16x}, {"*", ElementType::q4_k}});
    testing::quantized_tensors(config_, recipe).write(folder_.path() / "good");
    good_ = read_file(folder_.path() / "good");
    std::uint64_t length = 0;
    std::memcpy(&length, good_.data(), sizeof length);
    header_bytes_ = length;
  }

  // Whatever is accepted can be read to the end, or is refused where it is read; all values are finite.
  void try_file(const std::string& bytes) {
    write_file_atomically(folder_.path() / "model.safetensors", bytes);
    try {
      const WeightSource source = checkpoint_weights(Checkpoint::open(folder_.path(), config_));
      for (const TensorSpec& spec : source.tensors()) {
        std::vector<float> values(static_cast<std::size_t>(spec.elements()));
        source.read(spec, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
        for (const float value : values) {
          ASSERT_TRUE(std::isfinite(value)) << spec.name;
        }
      }
      ++accepted_;
    } catch (const ModelError& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ++refused_;
    }
  }
  [[nodiscard]] std::string header() const { return good_.substr(sizeof(std::uint64_t), header_bytes_); }
  [[nodiscard]] std::string with_header(const std::string& header) const {
    const std::uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header + good_.substr(sizeof length + header_bytes_);
  }

  const testing::TemporaryFolder folder_;
  ModelConfig config_;
  std::string good_;
  std::size_t header_bytes_ = 0;
};

TEST_F(StoredFormatsFuzzTest, AlteredNotesAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 21, kNoteWords);
  repeat(6, {.refused = 20}, [&] {
    nlohmann::json document = nlohmann::json::parse(header());
    document["__metadata__"] = mutator.altered(document["__metadata__"]);
    try_file(with_header(document.dump()));
  });
}

TEST_F(StoredFormatsFuzzTest, GarbledBytesAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 22, kNoteWords);
  ASSERT_NO_FATAL_FAILURE(try_file(good_));
  ASSERT_EQ(accepted_, 1);
  repeat(6, {.refused = 1}, [&] {
    std::string bytes = good_;
    const std::size_t begin = sizeof(std::uint64_t) + header_bytes_;
    for (std::size_t changes = mutator.below(64) + 1; changes > 0; --changes) {
      bytes[begin + mutator.below(bytes.size() - begin)] = static_cast<char>(mutator.below(256));
    }
    try_file(bytes);
  });
}

TEST_F(StoredFormatsFuzzTest, TruncatedFilesAreRefused) {
  Mutator mutator(fuzz_seed() + 23, kNoteWords);
  repeat(6, {.refused = 20}, [&] { try_file(good_.substr(0, mutator.below(good_.size()))); });
  EXPECT_EQ(accepted_, 0);
}

}  // namespace
}  // namespace pascaline
