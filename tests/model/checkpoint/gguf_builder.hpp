#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"

namespace pascaline::testing {

/// Puts a GGUF file together, right or wrong.
class GgufBuilder {
 public:
  template <typename Number>
  static std::string raw(Number number) {
    return {reinterpret_cast<const char*>(&number), sizeof number};
  }
  static std::string text(const std::string& text) { return raw(std::uint64_t{text.size()}) + text; }

  /// A key with the bytes of its value after its type.
  GgufBuilder& key(const std::string& name, GgufValueType type, const std::string& value) {
    keys_ += text(name) + raw(type) + value;
    ++key_count;
    return *this;
  }
  GgufBuilder& integer(const std::string& name, std::uint32_t value) {
    return key(name, GgufValueType::uint32, raw(value));
  }
  GgufBuilder& real(const std::string& name, float value) { return key(name, GgufValueType::float32, raw(value)); }
  GgufBuilder& word(const std::string& name, const std::string& value) {
    return key(name, GgufValueType::text, text(value));
  }
  GgufBuilder& array(const std::string& name, GgufValueType type, std::uint64_t count, const std::string& bytes) {
    return key(name, GgufValueType::array, raw(type) + raw(count) + bytes);
  }
  /// A tensor, its extents innermost first, with its bytes after those before it.
  GgufBuilder& tensor(const std::string& name, std::uint32_t type, const std::vector<std::int64_t>& shape,
                      const std::string& bytes) {
    describe(name, type, shape, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  /// Only says that there is one.
  GgufBuilder& describe(const std::string& name, std::uint32_t type, const std::vector<std::int64_t>& shape,
                        std::uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (const std::int64_t extent : shape) {
      tensors_ += raw(extent);
    }
    tensors_ += raw(type) + raw(offset);
    ++tensor_count;
    return *this;
  }
  [[nodiscard]] std::string bytes() const {
    std::string all = "GGUF" + raw(version) + raw(tensor_count) + raw(key_count) + keys_ + tensors_;
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    return all + data_;
  }

  std::uint32_t version = 3;
  std::uint64_t tensor_count = 0;
  std::uint64_t key_count = 0;
  std::size_t alignment = 32;

 private:
  std::string keys_;
  std::string tensors_;
  std::string data_;
};

}  // namespace pascaline::testing
