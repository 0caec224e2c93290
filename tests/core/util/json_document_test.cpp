#include "core/util/json_document.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace pascaline {
namespace {

// Steps from one member of an object to the next, in all objects of the kind below.
std::size_t steps = 0;

template <typename Base>
struct CountingIterator : Base {
  CountingIterator() = default;
  CountingIterator(Base base) : Base(base) {}  // NOLINT(google-explicit-constructor): as the map's own convert
  CountingIterator& operator++() {
    ++steps;
    Base::operator++();
    return *this;
  }
  CountingIterator& operator--() {
    ++steps;
    Base::operator--();
    return *this;
  }
};

template <typename Key, typename Value, typename Less, typename Allocator>
struct CountingMap : std::map<Key, Value, Less, Allocator> {
  using Map = std::map<Key, Value, Less, Allocator>;
  using Map::Map;
  using iterator = CountingIterator<typename Map::iterator>;
  using const_iterator = CountingIterator<typename Map::const_iterator>;
  iterator begin() { return Map::begin(); }
  iterator end() { return Map::end(); }
  const_iterator begin() const { return Map::begin(); }
  const_iterator end() const { return Map::end(); }
  const_iterator cbegin() const { return Map::cbegin(); }
  const_iterator cend() const { return Map::cend(); }
};

using CountingJson = nlohmann::basic_json<CountingMap>;

std::size_t steps_to_parse(int entries) {
  std::string text = R"({"cache": {)";
  for (int i = 0; i < entries; ++i) {
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(": {"x": 1, "times": [1.5, 2.5]})";
  }
  text += "}}";
  steps = 0;
  JsonDocument<CountingJson> document;
  EXPECT_TRUE(CountingJson::sax_parse(text, &document));
  EXPECT_EQ(document.root().at("cache").size(), static_cast<std::size_t>(entries));
  return steps;
}

TEST(JsonDocumentTest, AnEntryIsReadWithoutLookingAtTheEarlierOnes) {
  EXPECT_LE(steps_to_parse(1000), 2000U);
  EXPECT_LE(steps_to_parse(4000), 8000U);
}

TEST(JsonDocumentTest, EveryKindOfValueIsKept) {
  const std::string text =
      R"([null, true, -3, 18446744073709551615, 0.5, "text", {"a": [], "b": {"c": [{}]}}, [[1], 2]])";
  JsonDocument<nlohmann::json> document;
  ASSERT_TRUE(nlohmann::json::sax_parse(text, &document));
  EXPECT_EQ(document.root(), nlohmann::json::parse(text));
  EXPECT_FALSE(document.duplicate());
}

}  // namespace
}  // namespace pascaline
