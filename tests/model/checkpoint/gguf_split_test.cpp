#include "model/checkpoint/gguf/gguf_split.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/checkpoint/model_error.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline::testing {
namespace {

// A model of two tensors in as many files.
class GgufSplitTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  GgufSplitTest() {
    write(0, "first", 1);
    write(1, "second", 2);
  }

  [[nodiscard]] std::filesystem::path part(int number) const {
    return folder_.path() / ("m-0000" + std::to_string(number + 1) + "-of-00002.gguf");
  }
  void write(int number, const std::string& tensor, char value, std::uint16_t count = 2,
             std::int32_t tensors = 2) const {
    GgufBuilder file;
    if (number == 0) {
      file.word("general.architecture", "llama");
    }
    file.key("split.no", GgufValueType::uint16, GgufBuilder::raw(static_cast<std::uint16_t>(number)));
    file.key("split.count", GgufValueType::uint16, GgufBuilder::raw(count));
    file.key("split.tensors.count", GgufValueType::int32, GgufBuilder::raw(tensors));
    file.tensor(tensor, 0, {8}, std::string(32, value));
    std::ofstream(part(number), std::ios::binary) << file.bytes();
  }
  [[nodiscard]] std::string complaint(int number) const {
    return complaint_of([&] { (void)GgufFile::open(part(number)); });
  }
};

TEST_F(GgufSplitTest, AnyPartOpensTheWholeModel) {
  for (const int number : {0, 1}) {
    const GgufFile file = GgufFile::open(part(number));
    EXPECT_EQ(file.path(), part(0));
    EXPECT_EQ(file.metadata().text("general.architecture"), "llama");
    ASSERT_EQ(file.tensors().size(), 2U);
    ASSERT_NE(file.find("first"), nullptr);
    ASSERT_NE(file.find("second"), nullptr);
    EXPECT_EQ(file.find("first")->bytes[0], std::byte{1});
    EXPECT_EQ(file.find("second")->bytes[31], std::byte{2});
  }
}

TEST_F(GgufSplitTest, PartsThatAreMissingAreNamed) {
  std::filesystem::remove(part(0));
  PASCALINE_EXPECT_SAYS(complaint(1),
                        "this is part 2 of 2 of a split model, and part 1 is missing: put "
                        "m-00001-of-00002.gguf beside it");
}

TEST_F(GgufSplitTest, PartsThatDoNotBelongTogetherAreRefused) {
  write(1, "first", 2);
  PASCALINE_EXPECT_SAYS(complaint(0), "tensor 'first': another part of the split model has it, too");
  write(1, "second", 2, 3);
  PASCALINE_EXPECT_SAYS(complaint(0), "this is part 2 of 3, though it is named as part 2 of 2");
  write(0, "first", 1, 2, 5);
  write(1, "second", 2);
  PASCALINE_EXPECT_SAYS(complaint(0), "the 2 parts have 2 tensors together, not 5");
}

TEST_F(GgufSplitTest, APartUnderAnotherNameIsTold) {
  std::filesystem::rename(part(1), folder_.path() / "other.gguf");
  PASCALINE_EXPECT_SAYS(
      complaint_of([&] { (void)GgufFile::open(folder_.path() / "other.gguf"); }),
      "does not end in -00002-of-00002.gguf, so the other parts cannot be found; restore the original "
      "names, or join the files");
}

}  // namespace
}  // namespace pascaline::testing
