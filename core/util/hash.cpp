#include "core/util/hash.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pascaline {

std::string hash_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

FieldHash& FieldHash::add(std::string_view field) {
  fields_ += fmt::format("{}:", field.size());
  fields_ += field;
  return *this;
}

}  // namespace pascaline
