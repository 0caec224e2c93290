#include "model/checkpoint/given_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/model_files.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n";

class GivenModelTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder_.path() / file).parent_path());
    std::ofstream(folder_.path() / file, std::ios::binary) << text;
  }
  // What is said of a model there.
  [[nodiscard]] std::string complaint(const fs::path& model = "") const {
    return complaint_of([&] { (void)load_model_config(ModelLocation(folder_.path() / model)); });
  }
};

TEST_F(GivenModelTest, AnEntryOfTheCacheIsItsSnapshot) {
  put("models--a--b/snapshots/0123/config.json", config_text("qwen3_0.6b"));
  EXPECT_EQ(downloaded_model(folder_.path() / "models--a--b"), folder_.path() / "models--a--b/snapshots/0123");
  EXPECT_EQ(downloaded_model(folder_.path() / "models--a--b/snapshots/0123"),
            folder_.path() / "models--a--b/snapshots/0123");
  EXPECT_EQ(load_model_config(ModelLocation(folder_.path() / "models--a--b/")), config_of("qwen3_0.6b"));
  EXPECT_EQ(load_model_config(ModelLocation(folder_.path() / "models--a--b/snapshots/")), config_of("qwen3_0.6b"));
  put("models--a--b/snapshots/4567/config.json", config_text("qwen3_1.7b"));
  PASCALINE_EXPECT_SAYS(
      complaint("models--a--b"),
      "has 2 snapshots, and no refs/main that names one; download the model again, or give one of them, as ");
  put("models--a--b/refs/main", "4567\n");
  EXPECT_EQ(load_model_config(ModelLocation(folder_.path() / "models--a--b")), config_of("qwen3_1.7b"));
  put("models--a--b/refs/main", "../../elsewhere");
  put("elsewhere/config.json", config_text("qwen3_0.6b"));
  PASCALINE_EXPECT_SAYS(complaint("models--a--b"), "refs/main names '../../elsewhere', which is missing");
}

TEST_F(GivenModelTest, ASnapshotThatRefsNamesAndThatIsMissingIsTold) {
  put("models--a--b/snapshots/0123/config.json", config_text("qwen3_0.6b"));
  put("models--a--b/refs/main", "4567");
  PASCALINE_EXPECT_SAYS(complaint("models--a--b"),
                        "has 1 snapshot, and refs/main names '4567', which is missing; download the model again, or "
                        "give that one, as ");
  EXPECT_EQ(load_model_config(ModelLocation(folder_.path() / "models--a--b/snapshots/0123")), config_of("qwen3_0.6b"));
  fs::remove_all(folder_.path() / "models--a--b/snapshots/0123");
  PASCALINE_EXPECT_SAYS(complaint("models--a--b"),
                        "refs/main names '4567', which is missing; download the model again");
}

TEST_F(GivenModelTest, WeightsOfOtherLibrariesAreTold) {
  const std::string expected =
      ", and only safetensors and GGUF files are read; take a revision of the model that has "
      "model.safetensors, or make it with Transformers";
  for (const char* name : {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth",
                           "tf_model.h5", "flax_model.msgpack"}) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / name) << "x";
    std::ofstream(folder.path() / "config.json") << config_text("qwen3_0.6b");
    const std::string said = std::string("the weights are in '") + name + "'" + expected;
    PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder.path()); }), said);
    PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)load_model_config(ModelLocation(folder.path() / name)); }), said);
  }
  put("training_args.bin", "x");
  put("optimizer.pt", "x");
  put("config.json", config_text("qwen3_0.6b"));
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder_.path()); }), "there is neither ");
}

TEST_F(GivenModelTest, ACacheIsNotAModel) {
  put("hub/models--a--b/snapshots/0123/config.json", config_text("qwen3_0.6b"));
  for (const char* given : {"hub", ""}) {
    PASCALINE_EXPECT_SAYS(complaint(given),
                          "this is a cache of Hugging Face, not a model; give one of the models in it");
    PASCALINE_EXPECT_SAYS(complaint(given), "hub/models--a--b");
  }
  fs::remove_all(folder_.path() / "hub/models--a--b/snapshots/0123");
  PASCALINE_EXPECT_SAYS(complaint("hub/models--a--b"), "has no snapshot; download the model again");
}

TEST_F(GivenModelTest, AnAdapterIsNotAModel) {
  put("adapter/adapter_config.json", R"({"base_model_name_or_path": "some/base", "peft_type": "LORA"})");
  put("adapter/adapter_model.safetensors", "");
  PASCALINE_EXPECT_SAYS(complaint("adapter"),
                        "adapter: this is a LoRA adapter, not a model; merge it into its base "
                        "model ('some/base') first");
  PASCALINE_EXPECT_SAYS(complaint("adapter/adapter_model.safetensors"), "this is a LoRA adapter, not a model");
  put("adapter/config.json", config_text("qwen3_0.6b"));
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder_.path() / "adapter"); }),
                        "this is a LoRA adapter");
}

TEST_F(GivenModelTest, AnAdapterBesideAModelIsTold) {
  put("config.json", config_text("qwen3_0.6b"));
  put("adapter_model.safetensors", "");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(complaint(), "accepted");
  EXPECT_EQ(complaint(), "accepted");
  const std::string told = ::testing::internal::GetCapturedStderr();
  PASCALINE_EXPECT_SAYS(told, "adapter_model.safetensors: there is an adapter beside the model, which is not applied");
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << "once";
  const StrictKeys strict(true);
  EXPECT_THROW((void)load_model_config(ModelLocation(folder_.path())), Error);
}

TEST_F(GivenModelTest, PointersOfGitLfsAreTold) {
  const std::string expected = "this is a Git LFS pointer, not the file itself; run `git lfs pull`";
  put("m.gguf", kPointer);
  put("without_ending", kPointer);
  put("model.safetensors", kPointer);
  put("config.json", kPointer);
  for (const char* given : {"m.gguf", "without_ending", ""}) {
    PASCALINE_EXPECT_SAYS(complaint(given), expected);
  }
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder_.path()); }),
                        "model.safetensors: " + expected);
}

TEST_F(GivenModelTest, OtherPathsAreTold) {
  PASCALINE_EXPECT_SAYS(complaint("nothing"), "nothing: there is no such folder");
  put("model.safetensors", "x");
  PASCALINE_EXPECT_SAYS(complaint("model.safetensors"), "give the folder that it is in");
  PASCALINE_EXPECT_SAYS(complaint(), "config.json: the model folder lacks this file; download the model completely");
}

}  // namespace
}  // namespace pascaline::testing
