#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/runtime/device/sm61/code_exercise.hpp"

/// Any bytes are a cubin, or refused with an Error; and any bytes are machine code.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)pascaline::testing::exercise_cubin(bytes);
  pascaline::testing::exercise_code(bytes);
  return 0;
}
