#include "model/text/tokenizer_file.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/util/json_words.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepest = 64;

std::string pointer_word(std::string_view key) {
  std::string out;
  for (const char c : key) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

// Receives the parser's events: two large members are read as what they are, the rest becomes a document.
class TokenizerFileReader {
 public:
  explicit TokenizerFileReader(const std::string& file) : file_(&file) {}

  TokenizerFile take() { return std::move(out_); }

  bool null() { return value(nullptr); }
  bool boolean(bool given) { return value(given); }
  bool number_integer(json::number_integer_t number) { return integer(number); }
  bool number_unsigned(json::number_unsigned_t number) {
    return number > std::uint64_t{INT64_MAX} ? value(number) : integer(static_cast<std::int64_t>(number));
  }
  bool number_float(json::number_float_t number, const std::string& /*text*/) { return value(number); }
  bool binary(json::binary_t& /*bytes*/) { return false; }  // not in JSON text
  bool string(std::string& text) {
    if (mode_ == Mode::merges) {
      merge_of_text(text);
    } else if (mode_ == Mode::pair) {
      pair_.push_back(std::move(text));
    } else {
      return value(std::move(text));
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) {
    if (mode_ == Mode::document && at_model() && key_ == "vocab") {
      add(nullptr);
      mode_ = Mode::vocabulary;
      return true;
    }
    return open(json::object());
  }
  bool key(std::string& text) {
    if (mode_ == Mode::document && open_.back()->contains(text)) {
      fail(here() + "/" + pointer_word(text), "this key is a duplicate");
    }
    key_ = std::move(text);
    return true;
  }
  bool end_object() { return close(); }

  bool start_array(std::size_t /*size*/) {
    if (mode_ == Mode::document && at_model() && key_ == "merges") {
      add(nullptr);
      mode_ = Mode::merges;
      return true;
    }
    if (mode_ == Mode::merges) {
      pair_.clear();
      mode_ = Mode::pair;
      return true;
    }
    return open(json::array());
  }
  bool end_array() {
    if (mode_ != Mode::pair) {
      return close();
    }
    if (pair_.size() != 2) {
      fail(merge_pointer(), fmt::format("expected two tokens, found {}", pair_.size()));
    }
    out_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
    mode_ = Mode::merges;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*error*/) {
    fail("", fmt::format("not valid JSON at byte {}", position));
  }

 private:
  enum class Mode { document, vocabulary, merges, pair };

  [[noreturn]] void fail(const std::string& pointer, const std::string& problem) const {
    throw SpaceError(*file_, pointer, problem);
  }
  // Inside the object under the document's key "model".
  [[nodiscard]] bool at_model() const { return open_.size() == 2 && names_.back() == "/model"; }
  [[nodiscard]] std::string here() const { return fmt::format("{}", fmt::join(names_, "")); }
  [[nodiscard]] std::string merge_pointer() const { return fmt::format("/model/merges/{}", out_.merges.size()); }

  json* add(json given) {
    if (open_.empty()) {
      out_.settings = std::move(given);
      return &out_.settings;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(given));
      return &open_.back()->back();
    }
    return &((*open_.back())[key_] = std::move(given));
  }
  bool value(json given) {
    if (mode_ != Mode::document) {
      refuse(given.type_name());
    }
    add(std::move(given));
    return true;
  }
  // What stands where a vocabulary or a list of merges has no place for it.
  [[noreturn]] void refuse(std::string_view found) const {
    if (mode_ == Mode::vocabulary) {
      fail("/model/vocab/" + pointer_word(key_), fmt::format("expected a token id, found {}", found));
    }
    fail(merge_pointer(), fmt::format("expected two tokens (\"a b\" or [\"a\", \"b\"]), found {}", found));
  }
  bool integer(std::int64_t number) {
    if (mode_ != Mode::vocabulary) {
      return value(number);
    }
    out_.vocabulary.emplace_back(std::move(key_), number);
    return true;
  }
  bool open(json container) {
    if (mode_ != Mode::document) {
      refuse(container.type_name());
    }
    if (open_.size() == kDeepest) {
      fail("", fmt::format("nested deeper than {} levels", kDeepest));
    }
    const bool in_array = !open_.empty() && open_.back()->is_array();
    const std::string name =
        open_.empty() ? "" : "/" + (in_array ? std::to_string(open_.back()->size()) : pointer_word(key_));
    open_.push_back(add(std::move(container)));
    names_.push_back(name);
    return true;
  }
  bool close() {
    if (mode_ == Mode::document) {
      open_.pop_back();
      names_.pop_back();
    }
    mode_ = Mode::document;
    return true;
  }
  void merge_of_text(const std::string& text) {
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string::npos) {
      fail(merge_pointer(), fmt::format("expected two tokens with a space between them, found '{}'", text));
    }
    out_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }

  const std::string* file_;
  TokenizerFile out_;
  Mode mode_ = Mode::document;
  std::vector<json*> open_;         // containers being read; a parent does not grow while a child is open
  std::vector<std::string> names_;  // their parts of a JSON pointer
  std::string key_;
  std::vector<std::string> pair_;
};

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view text, const std::string& file) {
  TokenizerFileReader reader(file);
  try {
    if (!json::sax_parse(text, &reader)) {
      throw SpaceError(file, "", "not valid JSON");
    }
  } catch (const json::exception& error) {
    throw SpaceError(file, "", fmt::format("not valid JSON: {}", json_words(error)));
  }
  return reader.take();
}

}  // namespace pascaline
