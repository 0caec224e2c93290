#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "core/util/shown_text.hpp"
#include "core/util/utf8_check.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t index) {
  Number number{};
  std::memcpy(&number, bytes.data() + index * sizeof(Number), sizeof number);
  return number;
}

// Element `index`, or nothing if it is no integer or exceeds 63 bits.
std::optional<std::int64_t> integer_at(const GgufValue& value, std::size_t index) {
  switch (value.type) {
    case GgufValueType::uint8:
      return number_at<std::uint8_t>(value.bytes, index);
    case GgufValueType::int8:
      return number_at<std::int8_t>(value.bytes, index);
    case GgufValueType::uint16:
      return number_at<std::uint16_t>(value.bytes, index);
    case GgufValueType::int16:
      return number_at<std::int16_t>(value.bytes, index);
    case GgufValueType::uint32:
      return number_at<std::uint32_t>(value.bytes, index);
    case GgufValueType::int32:
      return number_at<std::int32_t>(value.bytes, index);
    case GgufValueType::int64:
      return number_at<std::int64_t>(value.bytes, index);
    case GgufValueType::uint64: {
      const auto number = number_at<std::uint64_t>(value.bytes, index);
      return number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                 ? std::optional(static_cast<std::int64_t>(number))
                 : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> real_at(const GgufValue& value, std::size_t index) {
  switch (value.type) {
    case GgufValueType::float32:
      return number_at<float>(value.bytes, index);
    case GgufValueType::float64:
      return number_at<double>(value.bytes, index);
    default:
      return std::nullopt;
  }
}

std::optional<bool> boolean_at(const GgufValue& value, std::size_t index) {
  return value.type == GgufValueType::boolean ? std::optional(number_at<std::uint8_t>(value.bytes, index) != 0)
                                              : std::nullopt;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What `at` makes of the value, which must be a single one of the right type.
template <typename At>
auto single(const GgufMetadata& metadata, std::string_view key, const GgufValue& value, const char* expected, At at) {
  const auto found = value.is_array ? std::nullopt : at(value, 0);
  if (!found) {
    metadata.fail(key, fmt::format("it is not {}", expected));
  }
  return *found;
}

template <typename Element, typename At>
std::vector<Element> elements(const GgufMetadata& metadata, std::string_view key, const GgufValue& value,
                              const char* expected, At at) {
  std::vector<Element> all;
  all.reserve(value.count);
  for (std::size_t i = 0; i < value.count; ++i) {
    const auto found = at(value, i);
    if (!found) {
      metadata.fail(key, fmt::format("its element {} is not {}", i, expected));
    }
    all.push_back(*found);
  }
  return all;
}

constexpr const char* kInteger = "an integer that fits 64 bits";
constexpr const char* kReal = "a floating-point number";
constexpr const char* kBoolean = "a truth value";

}  // namespace

void GgufMetadata::fail(std::string_view key, const std::string& problem) const {
  throw ModelError(fmt::format("{}: key {}: {}", file_, quoted_name(key), problem));
}

const GgufValue* GgufMetadata::find(std::string_view key) const noexcept {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufValue& GgufMetadata::at(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    fail(key, "it is missing from the metadata");
  }
  return *value;
}

const GgufValue& GgufMetadata::array(std::string_view key) const {
  const GgufValue& value = at(key);
  if (!value.is_array) {
    fail(key, "it is not an array");
  }
  return value;
}

std::int64_t GgufMetadata::integer(std::string_view key) const {
  return single(*this, key, at(key), kInteger, integer_at);
}

std::optional<std::int64_t> GgufMetadata::find_integer(std::string_view key) const {
  return has(key) ? std::optional(integer(key)) : std::nullopt;
}

double GgufMetadata::real(std::string_view key) const { return single(*this, key, at(key), kReal, real_at); }

std::optional<double> GgufMetadata::find_real(std::string_view key) const {
  return has(key) ? std::optional(real(key)) : std::nullopt;
}

double GgufMetadata::number(std::string_view key) const {
  return single(*this, key, at(key), "a number", [](const GgufValue& value, std::size_t index) {
    const std::optional<std::int64_t> whole = integer_at(value, index);
    return whole ? std::optional(static_cast<double>(*whole)) : real_at(value, index);
  });
}

bool GgufMetadata::boolean(std::string_view key) const { return single(*this, key, at(key), kBoolean, boolean_at); }

std::optional<bool> GgufMetadata::find_boolean(std::string_view key) const {
  return has(key) ? std::optional(boolean(key)) : std::nullopt;
}

std::string_view GgufMetadata::text(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array || value.type != GgufValueType::text) {
    fail(key, "it is not a text");
  }
  const std::string_view text = as_text(value.bytes);
  if (!is_utf8(text)) {
    fail(key, fmt::format("the text {} is not UTF-8", quoted_name(text)));
  }
  return text;
}

std::optional<std::string_view> GgufMetadata::find_text(std::string_view key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

std::string GgufMetadata::description(std::string_view key) const {
  const GgufValue* value = find(key);
  const bool is_text = value != nullptr && !value->is_array && value->type == GgufValueType::text;
  return is_text ? shown_text(as_text(value->bytes)) : std::string();
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const GgufValue& value = array(key);
  if (value.type != GgufValueType::text) {
    fail(key, "it is not an array of texts");
  }
  std::vector<std::string_view> all;
  all.reserve(value.count);
  std::span<const std::byte> rest = value.bytes;
  for (std::size_t i = 0; i < value.count; ++i) {
    const auto length = number_at<std::uint64_t>(rest, 0);
    all.push_back(as_text(rest.subspan(sizeof length, length)));
    if (!is_utf8(all.back())) {
      fail(key, fmt::format("its element {}, {}, is not UTF-8", i, quoted_name(all.back())));
    }
    rest = rest.subspan(sizeof length + length);
  }
  return all;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  return elements<std::int64_t>(*this, key, array(key), kInteger, integer_at);
}

std::vector<double> GgufMetadata::reals(std::string_view key) const {
  return elements<double>(*this, key, array(key), kReal, real_at);
}

std::vector<bool> GgufMetadata::booleans(std::string_view key) const {
  return elements<bool>(*this, key, array(key), kBoolean, boolean_at);
}

}  // namespace pascaline
