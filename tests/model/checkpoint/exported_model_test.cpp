#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/util/process.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/hf/generation_config.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::read_all;

// A program that is not of this project writes fixture A, once in each type.
class ExportedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("PASCALINE_SHARED_FIXTURES");
    if (shared == nullptr || *shared == '\0') {
      GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES is not set: no model that another program writes is loaded";
    }
    const std::filesystem::path scripts = std::filesystem::path(shared) / "qwen3-vl";
    if (run_process({"sh", "-c", "python3 --version"}, std::chrono::seconds(20)).exit_code != 0) {
      GTEST_SKIP() << "there is no python3: no model that another program writes is loaded";
    }
    ASSERT_TRUE(std::filesystem::exists(scripts / "tiny_ref.py")) << scripts;
    const ProcessResult result =
        run_process({"python3", "-B", "-c",
                     "import sys; sys.path.insert(0, sys.argv[1]); import tiny_ref as r\n"
                     "model = r.Model(r.FIX['A'])\n"
                     "for type in sys.argv[3:]: r.export(model, sys.argv[2] + '/' + type, type)",
                     scripts.string(), folder_.path().string(), "F32", "F16", "BF16"},
                    std::chrono::seconds(120));
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }

  const testing::TemporaryFolder folder_;
};

// Loads a folder, takes every tensor and compares it with the hash.
void expect_hash_weights(const std::filesystem::path& folder) {
  const ModelConfig config = load_model_config(folder);
  EXPECT_EQ(required_tensors(config), required_tensors(testing::config_of("tiny_a")));
  EXPECT_EQ(load_generation_config(folder, config).eos_tokens, std::vector<std::int64_t>{504});
  const WeightSource hashed = hash_weights(config);
  WeightSource loaded = checkpoint_weights(Checkpoint::open(folder, config));
  EXPECT_EQ(loaded.parameters(), 177'440);
  for (const TensorSpec& tensor : hashed.tensors()) {
    const TensorSpec& taken = loaded.take(tensor.name);
    loaded.announce(taken);
    for (const ElementType type : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
      ASSERT_EQ(read_all(loaded, taken, type), read_all(hashed, tensor, type)) << tensor.name;
    }
  }
  EXPECT_NO_THROW(loaded.require_all_taken());
}

TEST_F(ExportedModelTest, LoadsAndHoldsTheHashedWeights) {
  for (const char* type : {"F32", "F16", "BF16"}) {
    SCOPED_TRACE(type);
    ASSERT_NO_FATAL_FAILURE(expect_hash_weights(folder_.path() / type));
  }
}

}  // namespace
}  // namespace pascaline
