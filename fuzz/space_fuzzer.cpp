#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "core/space/space.hpp"
#include "tests/core/space/space_exercise.hpp"

/// Any text is a search space or a SpaceError, and whatever is a search space can be used.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    pascaline::testing::exercise(pascaline::Space::parse({reinterpret_cast<const char*>(data), size}, "fuzz.json"));
  } catch (const pascaline::SpaceError&) {
  }
  return 0;
}
