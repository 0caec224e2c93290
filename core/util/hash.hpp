#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// XXH3's 128-bit hash of the bytes as 32 hexadecimal digits: the key of caches and of kernel sources.
/// It tells inputs apart; it does not guard against an adversary.
[[nodiscard]] std::string hash_hex(std::string_view bytes);

/// Hashes fields in order, each with its length, so that no two field lists run together.
class FieldHash {
 public:
  FieldHash& add(std::string_view field);
  [[nodiscard]] std::string hex() const { return hash_hex(fields_); }

 private:
  std::string fields_;
};

}  // namespace pascaline
