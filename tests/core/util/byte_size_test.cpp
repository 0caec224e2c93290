#include "core/util/byte_size.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

TEST(ByteSize, UnitsArePowersOf1024Or1000) {
  const std::pair<std::string_view, std::uint64_t> cases[] = {{"1B", 1},
                                                              {"4096B", 4096},
                                                              {"1KiB", 1024},
                                                              {"1.5GiB", 1610612736},
                                                              {"800MiB", 838860800},
                                                              {"0.5 MiB", 524288},
                                                              {"2GB", 2000000000},
                                                              {"3kB", 3000},
                                                              {"3KB", 3000},
                                                              {"1.25MB", 1250000},
                                                              {"1TiB", 1099511627776},
                                                              {"1900M", 1992294400},
                                                              {"1.5G", 1610612736},
                                                              {"1TB", 1000000000000},
                                                              {"1.0009KiB", 1024}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_EQ(parse_byte_size(text), bytes) << text;
  }
}

TEST(ByteSize, AnythingElseIsRefusedWithAnExample) {
  for (const std::string_view text : {"", "GiB", "1", "1.5", "1g", "1gib", "-1GiB", "0GiB", "0.1B", "1e3MiB", "nanGiB",
                                      "infGiB", "1GiB ", " 1GiB", "1  GiB", "1GiBs", "99999999999GiB", "0x10MiB"}) {
    try {
      (void)parse_byte_size(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("such as 1.5GiB"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"), std::string::npos);
    }
  }
}

TEST(ByteSize, IsShownInTheUnitThatSuitsIt) {
  EXPECT_EQ(shown_bytes(0), "0 B");
  EXPECT_EQ(shown_bytes(1023), "1023 B");
  EXPECT_EQ(shown_bytes(1024), "1.0 KiB");
  EXPECT_EQ(shown_bytes(1035728), "1011.5 KiB");
  EXPECT_EQ(shown_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(shown_bytes(1900 << 10), "1.9 MiB");
  EXPECT_EQ(shown_bytes(1073741823), "1.00 GiB");
  EXPECT_EQ(shown_bytes(std::uint64_t{4255140312}), "3.96 GiB");
}

}  // namespace
}  // namespace pascaline
