#include "core/util/hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace pascaline {
namespace {

TEST(HashTest, IsThirtyTwoHexadecimalDigits) {
  for (const char* text : {"", "a", "some longer text that fills more than one block of the hash function's input"}) {
    const std::string hash = hash_hex(text);
    EXPECT_EQ(hash.size(), 32U);
    EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
  // XXH3's published value for the empty input: a change here would orphan every cache and database.
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(FieldHashTest, BoundariesOfFieldsCount) {
  std::set<std::string> hashes;
  hashes.insert(FieldHash().hex());
  hashes.insert(FieldHash().add("").hex());
  hashes.insert(FieldHash().add("").add("").hex());
  hashes.insert(FieldHash().add("ab").hex());
  hashes.insert(FieldHash().add("a").add("b").hex());
  hashes.insert(FieldHash().add("b").add("a").hex());
  hashes.insert(FieldHash().add("").add("ab").hex());
  hashes.insert(FieldHash().add("ab").add("").hex());
  hashes.insert(FieldHash().add("a1:b").hex());
  hashes.insert(FieldHash().add("1:a1:b").hex());
  hashes.insert(FieldHash().add(std::string("a\0b", 3)).hex());
  EXPECT_EQ(hashes.size(), 11U);
}

TEST(FieldHashTest, EqualFieldsGiveEqualHashes) {
  EXPECT_EQ(FieldHash().add("a").add("b").hex(), FieldHash().add("a").add("b").hex());
}

}  // namespace
}  // namespace pascaline
