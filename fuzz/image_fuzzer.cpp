#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "model/image/preprocess.hpp"
#include "tests/model/image/small_config.hpp"

/// Any bytes are an image, which is then prepared for a vision tower if it is small, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const pascaline::PreprocessorConfig config = limit_tokens(pascaline::testing::real_config(), 4);
  pascaline::DecodeOptions options;
  options.max_pixels = 1 << 16;
  try {
    const pascaline::Image image =
        pascaline::decode_image({reinterpret_cast<const char*>(data), size}, "fuzz", options);
    if (image.pixels.size() != static_cast<std::size_t>(image.height * image.width * 3)) {
      std::abort();
    }
    if (image.height < 32 && image.width < 32) {
      (void)preprocess(image, config);
    }
  } catch (const pascaline::Error&) {
  }
  return 0;
}
