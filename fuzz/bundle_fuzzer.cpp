#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/runtime/bundle/bundle_exercise.hpp"

/// Any bytes are a bundle or an Error, as they are and with the header's hash and sizes put right; whatever is a bundle
/// is written as it was read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pascaline::testing::exercise_bundle(bytes);
  (void)pascaline::testing::exercise_bundle(pascaline::testing::resealed(bytes));
  return 0;
}
