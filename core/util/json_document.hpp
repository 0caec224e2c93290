#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline {

/// Builds a document from the parser's events and watches for a key that repeats in its object. The library's own way
/// to watch, a callback, looks through all members read so far at the end of each one, so that its time grows with the
/// square of their number.
template <typename Json>
class JsonDocument final : public nlohmann::json_sax<Json> {
 public:
  using Sax = nlohmann::json_sax<Json>;
  using typename Sax::binary_t;
  using typename Sax::number_float_t;
  using typename Sax::number_integer_t;
  using typename Sax::number_unsigned_t;
  using typename Sax::string_t;

  JsonDocument() = default;
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t /*elements*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [member, added] = open_.back()->template get_ref<typename Json::object_t&>().emplace(name, nullptr);
    keys_.back() = std::move(name);
    member_ = &member->second;
    if (!added && !duplicate_) {
      duplicate_ = path();
    }
    return true;
  }
  /// Keeps the fault, after which `root` is incomplete.
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& fault) override {
    const auto* syntax = dynamic_cast<const nlohmann::detail::parse_error*>(&fault);
    syntax_byte_ = syntax != nullptr ? std::optional(syntax->byte) : std::nullopt;
    fault_ = fault.what();
    return false;
  }

  [[nodiscard]] Json& root() noexcept { return root_; }
  /// The library's words for a fault of the text; nothing if it is well-formed.
  [[nodiscard]] const std::optional<std::string>& fault() const noexcept { return fault_; }
  /// The byte, from 1, at which the syntax is wrong, if that is the fault.
  [[nodiscard]] const std::optional<std::size_t>& syntax_byte() const noexcept { return syntax_byte_; }
  /// Keys and indices that lead to the first key that repeats.
  [[nodiscard]] const std::optional<std::vector<std::string>>& duplicate() const noexcept { return duplicate_; }

 private:
  template <typename Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& elements = open_.back()->template get_ref<typename Json::array_t&>();
      elements.emplace_back(std::forward<Value>(value));
      return &elements.back();
    }
    *member_ = std::forward<Value>(value);
    return member_;
  }
  template <typename Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json&& value) {
    open_.push_back(place(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }
  [[nodiscard]] std::vector<std::string> path() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      out.push_back(open_[i]->is_array() ? std::to_string(open_[i]->size() - 1) : keys_[i]);
    }
    return out;
  }

  Json root_;
  std::vector<Json*> open_;        // objects and arrays around the present place; only the last of an array can move
  std::vector<std::string> keys_;  // the latest of each
  Json* member_ = nullptr;         // of the latest key
  std::optional<std::vector<std::string>> duplicate_;
  std::optional<std::string> fault_;
  std::optional<std::size_t> syntax_byte_;
};

}  // namespace pascaline
