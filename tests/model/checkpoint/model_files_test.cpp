#include "model/checkpoint/model_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::complaint_of;

constexpr const char* kIndex = "model.safetensors.index.json";

// A folder of two shards: `a` and `b` in the first, `c` in the second.
class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    shard("one.safetensors", {"a", "b"});
    shard("two.safetensors", {"c"});
    map_ = {{"a", "one.safetensors"}, {"b", "one.safetensors"}, {"c", "two.safetensors"}};
  }
  void shard(const std::string& file, const std::vector<std::string>& names) const {
    std::vector<StoredTensor> tensors;
    tensors.reserve(names.size());
    for (const std::string& name : names) {
      tensors.push_back({name, StoredType::F32, {1}, std::as_bytes(std::span(&value_, 1))});
    }
    write_safetensors(folder_.path() / file, tensors);
  }
  // What is said of the folder with this index.
  [[nodiscard]] std::string said(const std::string& index) const {
    folder_.write(kIndex, index);
    return complaint_of([&] { (void)open_model_files(folder_.path()); });
  }
  [[nodiscard]] std::string said() const { return said(json{{"metadata", {}}, {"weight_map", map_}}.dump()); }

  const testing::TemporaryFolder folder_;
  const float value_ = 1;
  json map_;
};

TEST_F(ModelFilesTest, ShardsAreOpened) {
  EXPECT_EQ(said(), "accepted");
  const std::vector<Safetensors> files = open_model_files(folder_.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].tensors().size(), 2U);
  EXPECT_NE(files[1].find("c"), nullptr);
}

TEST_F(ModelFilesTest, ASingleFileNeedsNoIndex) {
  shard("model.safetensors", {"a"});
  EXPECT_EQ(open_model_files(folder_.path()).size(), 1U);
  PASCALINE_EXPECT_SAYS(said(), "there is both model.safetensors and model.safetensors.index.json");
}

TEST_F(ModelFilesTest, AFolderWithoutWeightsSaysWhatIsMissing) {
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder_.path()); }), "there is neither");
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)open_model_files(folder_.path() / "absent"); }), "there is neither");
}

TEST_F(ModelFilesTest, IndexAndShardsHaveTheSameTensors) {
  map_["d"] = "two.safetensors";
  PASCALINE_EXPECT_SAYS(said(),
                        "two.safetensors: 1 of the tensors that model.safetensors.index.json places here are "
                        "missing: 'd'");
  map_.erase("d");
  map_["b"] = "two.safetensors";
  PASCALINE_EXPECT_SAYS(said(), "one.safetensors: it holds 1 tensors that");
  map_.erase("b");
  PASCALINE_EXPECT_SAYS(said(), "does not place here: 'b'");
  map_["b"] = "three.safetensors";
  PASCALINE_EXPECT_SAYS(said(), "three.safetensors: model.safetensors.index.json names this file, but it is missing");
}

TEST_F(ModelFilesTest, ATensorInTwoShardsIsRefused) {
  shard("two.safetensors", {"b", "c"});
  PASCALINE_EXPECT_SAYS(said(), "two.safetensors: it holds 1 tensors that");
}

TEST_F(ModelFilesTest, NoPathLeavesTheFolder) {
  for (const char* name : {"../one.safetensors", "/etc/one.safetensors", "sub/one.safetensors", "..", ".", "",
                           "..\\one.safetensors", ".hidden.safetensors", "one.bin", "one.safetensors/"}) {
    map_["a"] = name;
    PASCALINE_EXPECT_SAYS(said(), "index.json:/weight_map/a: ");
    PASCALINE_EXPECT_SAYS(said(), "is not the name of a safetensors file in this folder");
  }
  map_["a"] = std::string("one\0.safetensors", 16);
  PASCALINE_EXPECT_SAYS(said(), "is not the name of a safetensors file");
}

TEST_F(ModelFilesTest, TheIndexMustBeOne) {
  PASCALINE_EXPECT_SAYS(said("{}"), "the key 'weight_map' is missing");
  PASCALINE_EXPECT_SAYS(said("[]"), "expected an object");
  PASCALINE_EXPECT_SAYS(said("{"), "not valid JSON");
  PASCALINE_EXPECT_SAYS(said(R"({"weight_map": []})"), "/weight_map: expected an object");
  PASCALINE_EXPECT_SAYS(said(R"({"weight_map": {}})"), "/weight_map: 0 files are not possible");
  PASCALINE_EXPECT_SAYS(said(R"({"weight_map": {"a": 1}})"), "/weight_map/a: expected text");
  PASCALINE_EXPECT_SAYS(said(R"({"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}})"), "is a duplicate");
}

TEST_F(ModelFilesTest, ADamagedShardIsNamed) {
  folder_.write("two.safetensors", "damaged");
  PASCALINE_EXPECT_SAYS(said(), "two.safetensors: 7 bytes are too few");
}

}  // namespace
}  // namespace pascaline
