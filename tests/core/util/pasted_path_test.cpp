#include "core/util/pasted_path.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace pascaline {
namespace {

TEST(PastedPathTest, NamesAreReadAsTerminalsAndFileManagersWriteThem) {
  const std::string home = std::getenv("HOME") == nullptr ? "~" : std::getenv("HOME");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/a/cat.png", "/a/cat.png"},
      {"/a/my cat.png", "/a/my cat.png"},
      {R"("/a/my cat.png")", "/a/my cat.png"},
      {"'/a/my cat.png'", "/a/my cat.png"},
      {R"(/a/my\ cat\ \(1\).png)", "/a/my cat (1).png"},
      {R"("/a/a \"cat\" \$1 \n.png")", R"(/a/a "cat" $1 \n.png)"},
      {R"('/a/it'\''s a cat.png')", "/a/it's a cat.png"},
      {"/a/it's a cat.png", "/a/it's a cat.png"},
      {R"('/a/back\slash.png')", R"(/a/back\slash.png)"},
      {"~/cat.png", home + "/cat.png"},
      {R"(~/my\ cat.png)", home + "/my cat.png"},
      {R"("~/my cat.png")", home + "/my cat.png"},
      {"~other/cat.png", "~other/cat.png"},
      {"file:///a/my%20cat%c3%A9.png", "/a/my cat\xc3\xa9.png"},
      {"file://localhost/a/cat.png", "/a/cat.png"},
      {"file:/a/cat.png", "/a/cat.png"},
      {"'file:///a/my%20cat.png'", "/a/my cat.png"},
      {"file:///a/100%.png", "/a/100%.png"},
      {"file:///a/%00%zz%4.png", "/a/%00%zz%4.png"},
      {"file://elsewhere/cat.png", "file://elsewhere/cat.png"},
      {"file:cat.png", "file:cat.png"},
      {R"(/a/cat.png\)", R"(/a/cat.png\)"}};
  for (const auto& [text, path] : cases) {
    EXPECT_EQ(pasted_path(text).string(), path) << text;
  }
}

TEST(PastedPathTest, AFileOfExactlyThatNameIsMeantFirst) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "pascaline_pasted_path_test";
  std::filesystem::create_directories(folder);
  const std::string name = (folder / R"(a\ b.png)").string();
  EXPECT_NE(pasted_path(name).string(), name);
  std::ofstream(name) << "x";
  EXPECT_EQ(pasted_path(name).string(), name);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pascaline
