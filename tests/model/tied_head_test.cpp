#include "model/checkpoint/tied_head.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/recorded_run.hpp"

namespace pascaline::testing {
namespace {

// Folders whose config.json and weights disagree about the head, made from those that Transformers wrote.
class TiedHeadTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  void copy(const char* name, bool tied) {
    std::filesystem::copy(std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / name, folder_.path());
    auto config = nlohmann::json::parse(read_file(folder_ / "config.json"));
    config["tie_word_embeddings"] = tied;
    std::ofstream(folder_ / "config.json") << config;
  }
  // Writes the weights again with a head that is the embedding, as `type`; with or without the embedding itself.
  void write_head(StoredType type, bool keeps_embedding) {
    const std::filesystem::path place = folder_ / "model.safetensors";
    std::filesystem::rename(place, folder_ / "before");
    const Safetensors before{folder_ / "before"};
    std::vector<StoredTensor> tensors = before.tensors();
    const auto embedding = std::find_if(tensors.begin(), tensors.end(),
                                        [](const StoredTensor& tensor) { return is_embedding_tensor(tensor.name); });
    StoredTensor head = *embedding;
    head.name = kHeadTensor;
    std::vector<std::byte> wide;  // as F32: two bytes of zero below those of BF16
    if (type == StoredType::F32) {
      for (std::size_t i = 0; i < head.bytes.size(); i += 2) {
        wide.insert(wide.end(), {std::byte{0}, std::byte{0}, head.bytes[i], head.bytes[i + 1]});
      }
      head.type = type;
      head.bytes = wide;
    }
    if (!keeps_embedding) {
      tensors.erase(embedding);
    }
    tensors.push_back(head);
    write_safetensors(place, tensors);
  }
  void expect_logits_of(const char* name) {
    const auto host = open_device("emulator");
    Executor executor(*host);
    const std::filesystem::path file =
        std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / name / "reference.safetensors";
    check_recorded(executor, folder_.path(), file, {});
  }
};

TEST_F(TiedHeadTest, AHeadWithOtherValuesIsUsedAndToldOf) {
  copy("qwen3_untied", true);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(load_model_config(folder_.path()).text.tied);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(
      told.find("config.json: tie_word_embeddings is true, but the checkpoint's 'lm_head.weight' has other values "
                "than its 'model.embed_tokens.weight'"),
      std::string::npos)
      << told;
  {
    const StrictKeys strict(true);
    EXPECT_THROW((void)load_model_config(folder_.path()), Error);
  }
  expect_logits_of("qwen3_untied");
}

TEST_F(TiedHeadTest, AHeadWithTheSameValuesStaysTied) {
  for (const StoredType type : {StoredType::BF16, StoredType::F32}) {
    std::filesystem::remove_all(folder_.path());
    copy("qwen3_tied", true);
    write_head(type, true);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(load_model_config(folder_.path()).text.tied);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
  expect_logits_of("qwen3_tied");
}

TEST_F(TiedHeadTest, TiedWeightsMayBeStoredAsTheHead) {
  copy("qwen3_tied", true);
  write_head(StoredType::BF16, false);
  EXPECT_TRUE(load_model_config(folder_.path()).text.tied);
  expect_logits_of("qwen3_tied");
}

TEST_F(TiedHeadTest, DamagedWeightsAreLeftToWhoOpensThem) {
  copy("qwen3_untied", true);
  std::filesystem::resize_file(folder_ / "model.safetensors", 100);
  EXPECT_TRUE(load_model_config(folder_.path()).text.tied);
}

}  // namespace
}  // namespace pascaline::testing
