#include "tests/core/util/mutator.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace pascaline::testing {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxText = 1 << 16;

long long number_from(const char* variable, long long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoll(text) : otherwise;
}

// Pointers to every value of the document.
void collect(json& value, std::vector<json*>& out) {
  out.push_back(&value);
  for (json& child : value) {
    if (value.is_structured()) {
      collect(child, out);
    }
  }
}

}  // namespace

std::chrono::milliseconds fuzz_time(int parts) {
  return std::chrono::milliseconds(number_from("PASCALINE_FUZZ_SECONDS", 5) * 1000 / parts);
}

std::uint64_t fuzz_seed() { return static_cast<std::uint64_t>(number_from("PASCALINE_FUZZ_SEED", 1)); }

std::vector<std::string_view> word_list(std::string_view dictionary) {
  std::vector<std::string_view> all;
  for (std::size_t begin = 0; begin <= dictionary.size(); begin += all.back().size() + 1) {
    all.push_back(dictionary.substr(begin, dictionary.find('|', begin) - begin));
  }
  return all;
}

std::string Mutator::word() {
  constexpr std::array<std::string_view, 12> kNumbers{"0",
                                                      "-1",
                                                      "1e999",
                                                      "1.5",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "-9223372036854775808",
                                                      "18446744073709551616",
                                                      "99999999999999999999999999999999999999",
                                                      "0x7fffffffffffffff",
                                                      "00",
                                                      "4294967296"};
  switch (below(8)) {
    case 0:
      return std::string(kNumbers[below(kNumbers.size())]);
    case 1:
      return std::string(1 + below(400), "([{-!~\"\\"[below(8)]);
    case 2:
      return std::string(1 + below(8), static_cast<char>(below(256)));
    default:
      return dictionary_.empty() ? "" : std::string(dictionary_[below(dictionary_.size())]);
  }
}

void Mutator::change(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = std::min(below(32), text.size() - at);
  switch (below(8)) {
    case 0:
      if (at < text.size()) {
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      }
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(below(text.size() + 1), text.substr(at, length));
      break;
    case 3:
      text.resize(below(4) == 0 ? at : text.size());
      break;
    case 4:
      text.replace(at, length, word());
      break;
    default:
      text.insert(at, word());
      break;
  }
}

std::string Mutator::damaged(std::string text) {
  for (std::size_t i = 1 + below(8); i > 0; --i) {
    change(text);
  }
  return text.substr(0, kMaxText);
}

json Mutator::value() {
  switch (below(8)) {
    case 0:
      return nullptr;
    case 1:
      return below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(random_()) >> below(64);
    case 3:
      return random_();
    case 4:
      return static_cast<double>(below(1000)) / 8;
    case 5:
      return below(2) == 0 ? json::array() : json::object();
    default: {
      const std::string text = word();
      return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; }) ? text : "";
    }
  }
}

json Mutator::altered(json document) {
  for (std::size_t i = 1 + below(4); i > 0; --i) {
    std::vector<json*> places;
    collect(document, places);
    json& place = *places[below(places.size())];
    const json other = *places[below(places.size())];
    if (below(4) == 0 && place.is_array() && !place.empty()) {
      place.erase(below(place.size()));
    } else if (below(4) == 0 && place.is_array()) {
      place.push_back(other);
    } else if (below(4) == 0 && place.is_object() && !place.empty()) {
      place.erase(std::next(place.begin(), static_cast<std::ptrdiff_t>(below(place.size()))));
    } else if (place.is_string() && below(2) == 0) {
      std::string text = damaged(place.get<std::string>());
      std::replace_if(
          text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
      place = text;
    } else {
      place = below(2) == 0 ? other : value();
    }
  }
  return document;
}

}  // namespace pascaline::testing
