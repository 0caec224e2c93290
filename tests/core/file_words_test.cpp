#include "core/file_words.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

TEST(FileWordsTest, OptionsOfFilesSayHowToMeasureAndNothingElse) {
  const OptionWords allowed{{"--devices", "cuda:0,emulator"},
                            {"--seed", "7"},
                            {"--precision", "1e-05"},
                            {"--budget", "7200.5s"},
                            {"--polite", ""},
                            {"--nvrtc", "11.8,12.9"},
                            {"--nvrtc", "all"},
                            {"--target", "sm_61"},
                            {"--portfolio", "none"},
                            {"--kernel", "matmul-2.x"},
                            {"--tolerate", "power"}};
  EXPECT_EQ(FileOptions(allowed).words(), allowed);
  for (const char* const option :
       {"--kernels", "--spaces",   "--cache",      "--log",      "--sensors", "--db",      "--model",
        "--mmproj",  "--workload", "--fleet",      "--resume",   "--ssh",     "--program", "--template",
        "--config",  "-m",         "--kernels=/x", "--kernels ", "--KERNELS", "",          "--"}) {
    const auto why = why_no_file_option(option, "1");
    ASSERT_TRUE(why) << option;
    EXPECT_NE(why->find("command line"), std::string::npos) << option;
    EXPECT_THROW(FileOptions({{"--seed", "7"}, {option, "1"}}), Error) << option;
  }
}

TEST(FileWordsTest, ValuesOfAllowedOptionsAreNoPaths) {
  const OptionWords refused{{"--nvrtc", "/tmp/evil.so"}, {"--nvrtc", "evil.so"},
                            {"--nvrtc", "11.8,./evil"},  {"--nvrtc", ""},
                            {"--portfolio", "/tmp/p"},   {"--portfolio", "p.json"},
                            {"--portfolio", ""},         {"--kernel", "../k"},
                            {"--kernel", "a/b"},         {"--kernel", ".k"},
                            {"--devices", "/dev/x"},     {"--devices", "cuda:0\n"},
                            {"--devices", ""},           {"--searcher", "--log"},
                            {"--polite", "1"},           {"--warm-cache", "/tmp/x"},
                            {"--seed", "1 --log=/tmp"},  {"--seed", ""},
                            {"--target", "sm_61/.."},    {"--objective", "a.so"},
                            {"--budget", "1s\n--log"}};
  for (const auto& [option, value] : refused) {
    EXPECT_TRUE(why_no_file_option(option, value)) << option << " " << value;
  }
}

TEST(FileWordsTest, HashesAreHexadecimalDigits) {
  EXPECT_FALSE(why_no_hash("0123456789abcdef"));
  for (const char* const text : {"", "../ab", "ab/cd", "ab\ncd", "AB", "0x1", "g", "ab ", ".."}) {
    EXPECT_TRUE(why_no_hash(text)) << text;
  }
  EXPECT_TRUE(why_no_hash(std::string_view("ab\0", 3)));
  EXPECT_TRUE(why_no_hash(std::string(65, 'a')));
}

TEST(FileWordsTest, NeighboursAreInTheSameFolder) {
  EXPECT_FALSE(why_no_neighbour("model-00001-of-00002.safetensors"));
  for (const char* const name : {"", ".", "..", ".hidden", "../x", "a/b", "/etc/passwd", "a\\b", "a\nb"}) {
    EXPECT_TRUE(why_no_neighbour(name)) << name;
  }
  EXPECT_TRUE(why_no_neighbour(std::string_view("a\0b", 3)));
}

TEST(FileWordsTest, HostsAreNeitherOptionsNorCommands) {
  for (const char* const name : {"alpha", "me@alpha.example.org", "10.0.0.1", "user_1@[fe80::1%eth0]"}) {
    EXPECT_FALSE(why_no_host(name)) << name;
  }
  for (const char* const name : {"", "-oProxyCommand=touch x", "a b", "a;id", "$(id)", "a`id`", "a/b", "a\n",
                                 "\x1b[31mred", "a'b", "a\"b", "a|b"}) {
    EXPECT_TRUE(why_no_host(name)) << name;
  }
}

}  // namespace
}  // namespace pascaline::testing
