#include "core/util/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/json_document.hpp"
#include "core/util/json_words.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

std::string line_and_column(std::string_view text, std::size_t byte) {
  // `byte` counts from 1 and is one past the text if the text ended too early.
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return fmt::format("line {}, column {}", line, column + 1);
}

std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

constexpr int kMaxDepth = 64;

// nlohmann's parser recurses only in its destructor and in dump(); this bounds both.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      quoted = text[i] != '"';
      i += text[i] == '\\' ? 1 : 0;  // whatever is escaped does not end the string
      continue;
    }
    quoted = text[i] == '"';
    depth += text[i] == '{' || text[i] == '[' ? 1 : text[i] == '}' || text[i] == ']' ? -1 : 0;
    if (depth > kMaxDepth) {
      return true;
    }
  }
  return false;
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  if (too_deep(text)) {
    throw SpaceError(file, "", fmt::format("not valid JSON here: nested deeper than {} levels", kMaxDepth));
  }
  JsonDocument<json> document;
  if (!json::sax_parse(text, &document)) {
    const std::string where = document.syntax_byte() ? " at " + line_and_column(text, *document.syntax_byte())
                                                     : ": " + json_words(document.fault().value_or(""));
    throw SpaceError(file, "", "not valid JSON" + where);
  }
  if (document.duplicate()) {
    std::string pointer;
    for (const std::string& key : *document.duplicate()) {
      pointer += "/" + escaped(key);
    }
    throw SpaceError(file, pointer, "this key is a duplicate");
  }
  return std::move(document.root());
}

// Far beyond any space or workload.
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

std::string read_space_file(const std::filesystem::path& file) {
  try {
    return read_file(file, kMaxBytes);
  } catch (const Error& error) {
    throw SpaceError(file.string(), "", error.what());
  }
}

void JsonNode::fail(const std::string& problem) const { throw SpaceError(*file_, pointer_, problem); }

std::vector<std::string> JsonNode::keys() const {
  if (!value_->is_object()) {
    fail(fmt::format("expected an object, found {}", value_->type_name()));
  }
  std::vector<std::string> keys;
  for (const auto& [key, ignored] : value_->items()) {
    keys.push_back(key);
  }
  return keys;
}

void JsonNode::only_keys(std::initializer_list<std::string_view> known) const {
  for (const std::string& key : keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail(fmt::format("unknown key '{}' (known here: {})", key, fmt::join(known, ", ")));
    }
  }
}

bool JsonNode::has(std::string_view key) const { return value_->is_object() && value_->contains(key); }

JsonNode JsonNode::at(std::string_view key) const {
  if (!value_->is_object()) {
    fail(fmt::format("expected an object, found {}", value_->type_name()));
  }
  const auto member = value_->find(key);
  if (member == value_->end()) {
    fail(fmt::format("the key '{}' is missing", key));
  }
  return {*member, *file_, pointer_ + "/" + escaped(key)};
}

bool JsonNode::has_value(std::string_view key) const { return has(key) && !at(key).value().is_null(); }

JsonNode JsonNode::at(std::size_t index) const {
  return {value_->at(index), *file_, pointer_ + "/" + std::to_string(index)};
}

std::size_t JsonNode::array_size() const {
  if (!value_->is_array()) {
    fail(fmt::format("expected an array, found {}", value_->type_name()));
  }
  return value_->size();
}

std::string JsonNode::text() const {
  if (!value_->is_string()) {
    fail(fmt::format("expected text, found {}", value_->type_name()));
  }
  return value_->get<std::string>();
}

std::string JsonNode::name() const {
  std::string out = text();
  if (out.empty()) {
    fail("must not be empty");
  }
  return out;
}

std::int64_t JsonNode::integer() const {
  if (!value_->is_number_integer() ||
      (value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX})) {
    fail(fmt::format("expected an integer that fits 64 bits, found {}",
                     value_->is_number() ? value_->dump() : value_->type_name()));
  }
  return value_->get<std::int64_t>();
}

double JsonNode::real() const {
  if (!value_->is_number()) {
    fail(fmt::format("expected a number, found {}", value_->type_name()));
  }
  return value_->get<double>();
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) {
    fail(fmt::format("expected true or false, found {}", value_->type_name()));
  }
  return value_->get<bool>();
}

Expression JsonNode::expression(const Symbols& symbols) const {
  if (value_->is_number()) {
    return Expression::constant(integer());
  }
  const std::string source = text();
  try {
    return Expression::parse(source, symbols);
  } catch (const ExpressionError& error) {
    fail(fmt::format("in expression '{}', column {}: {}", source, error.column(), error.what()));
  }
}

}  // namespace pascaline
