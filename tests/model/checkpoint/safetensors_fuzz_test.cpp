#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::safetensors_bytes;
using testing::word_list;

const std::vector<std::string_view> kHeaderWords =
    word_list(R"("dtype"|"shape"|"data_offsets"|"__metadata__"|"F32"|"BF16"|"U8"|[0,8]|[8,12]|[12,12]|[]|{}|{|}|[|]|)"
              R"(,|\u0000|\ud800|null|-0|"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)");

constexpr std::size_t kDataBytes = 24;

json small_header() {
  return {{"__metadata__", {{"format", "pt"}}},
          {"a", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 8}}}},
          {"b", {{"dtype", "BF16"}, {"shape", {1, 2}}, {"data_offsets", {8, 12}}}},
          {"c", {{"dtype", "U8"}, {"shape", {12}}, {"data_offsets", {12, 24}}}}};
}

class SafetensorsFuzzTest : public FuzzTest {
 protected:
  // Whatever is accepted accounts for each byte of the data once.
  void try_bytes(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    try {
      const SafetensorsContent content = parse_safetensors(bytes, "fuzz.safetensors");
      ++accepted_;
      const std::byte* next = content.tensors.empty() ? nullptr : content.tensors.front().bytes.data();
      for (const StoredTensor& tensor : content.tensors) {
        ASSERT_EQ(tensor.bytes.data(), next) << tensor.name;
        ASSERT_EQ(static_cast<std::int64_t>(tensor.bytes.size()),
                  element_count(tensor.shape) * static_cast<std::int64_t>(size_of(tensor.type)));
        next += tensor.bytes.size();
      }
      if (next != nullptr) {
        ASSERT_EQ(next, bytes.data() + bytes.size());
      }
    } catch (const ModelError& error) {
      const std::string message = error.what();
      ASSERT_TRUE(message.starts_with("fuzz.safetensors: ")) << message;
      ASSERT_NO_THROW((void)json(message).dump()) << message;
      ASSERT_EQ(message.find('\n'), std::string::npos);
      ++refused_;
    }
  }
};

TEST_F(SafetensorsFuzzTest, DamagedHeadersAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 11, kHeaderWords);
  repeat(5, {}, [&] { try_bytes(safetensors_bytes(mutator.damaged(small_header().dump()), kDataBytes)); });
}

TEST_F(SafetensorsFuzzTest, AlteredHeadersAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 12, kHeaderWords);
  repeat(5, {.accepted = 1}, [&] { try_bytes(safetensors_bytes(mutator.altered(small_header()).dump(), kDataBytes)); });
}

TEST_F(SafetensorsFuzzTest, DamagedFilesAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 13, kHeaderWords);
  repeat(5, {}, [&] { try_bytes(mutator.damaged(safetensors_bytes(small_header().dump(), kDataBytes))); });
}

}  // namespace
}  // namespace pascaline
