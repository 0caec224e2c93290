// jpeglib.h needs size_t and FILE before it, jerror.h the settings that jpeglib.h includes.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <fmt/format.h>

#include <csetjmp>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "model/image/formats.hpp"
#include "model/image/orientation.hpp"

namespace pascaline {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
// A progressive image has about ten; hostile ones repeat empty scans over a large area.
constexpr int kMaxScans = 100;

// State of libjpeg. It reports faults by longjmp, which runs no destructors: the functions that call it below
// (jpeg_*_step) hold nothing but plain values, and all memory belongs to libjpeg or to their callers.
struct JpegState {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  char problem[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void fail_jpeg(j_common_ptr common) {
  auto* state = static_cast<JpegState*>(common->client_data);
  common->err->format_message(common, state->problem);
  std::longjmp(state->escape, 1);
}

// libjpeg makes up pixels that are missing or damaged and warns; here such an image is refused.
void judge_jpeg_message(j_common_ptr common, int level) {
  if (level >= 0) {
    return;
  }
  switch (common->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      fail_jpeg(common);
    default:
      ++common->err->num_warnings;
  }
}

void ignore_jpeg_message(j_common_ptr /*common*/) {}

void limit_scans(j_common_ptr common) {
  auto* state = static_cast<JpegState*>(common->client_data);
  if (state->info.input_scan_number > kMaxScans) {
    std::snprintf(state->problem, sizeof state->problem, "more than %d scans", kMaxScans);
    std::longjmp(state->escape, 1);
  }
}

class JpegReader {
 public:
  JpegReader() {
    state_.info.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = fail_jpeg;
    state_.errors.emit_message = judge_jpeg_message;
    state_.errors.output_message = ignore_jpeg_message;
    state_.progress.progress_monitor = limit_scans;
    state_.info.client_data = &state_;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&state_.info); }

  [[nodiscard]] JpegState& state() noexcept { return state_; }
  /// Throws what libjpeg complained of.
  [[noreturn]] void fail() const {
    throw Error(
        fmt::format("the JPEG image cannot be decoded; it is damaged, incomplete or of an unusual kind ({}): "
                    "get the file again, or save it again as an ordinary JPEG or PNG",
                    state_.problem));
  }

 private:
  JpegState state_;
};

bool jpeg_header_step(JpegState& state, const unsigned char* bytes, unsigned long count) {
  if (setjmp(state.escape) != 0) {
    return false;
  }
  jpeg_create_decompress(&state.info);
  state.info.progress = &state.progress;
  jpeg_mem_src(&state.info, bytes, count);
  jpeg_save_markers(&state.info, kExifMarker, 0xffff);
  jpeg_read_header(&state.info, TRUE);
  return true;
}

bool jpeg_start_step(JpegState& state, J_COLOR_SPACE colours) {
  if (setjmp(state.escape) != 0) {
    return false;
  }
  state.info.out_color_space = colours;
  jpeg_start_decompress(&state.info);
  return true;
}

bool jpeg_rows_step(JpegState& state, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(state.escape) != 0) {
    return false;
  }
  while (state.info.output_scanline < state.info.output_height) {
    JSAMPROW row = pixels + state.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&state.info, &row, 1);
  }
  jpeg_finish_decompress(&state.info);
  return true;
}

J_COLOR_SPACE colours_wanted(const jpeg_decompress_struct& info) {
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB:
      return JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      throw Error(
          fmt::format("the JPEG image has {} channels of unknown meaning: save it as RGB", info.num_components));
  }
}

// round(a * b / 255) of two 8-bit values.
unsigned multiply_255(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

// Inverted CMYK to RGB, in place; the rounding is that of the reference's loader.
void cmyk_to_rgb(std::vector<std::uint8_t>& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned light = pixels[i * 4 + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[i * 3 + c] = static_cast<std::uint8_t>(light - multiply_255(255U - pixels[i * 4 + c], light));
    }
  }
  pixels.resize(count * 3);
}

int jpeg_orientation(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == kExifMarker && data.starts_with(kExifSignature)) {
      return exif_orientation(data.substr(kExifSignature.size()));
    }
  }
  return 1;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const DecodeOptions& options) {
  JpegReader reader;
  JpegState& state = reader.state();
  if (!jpeg_header_step(state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) {
    reader.fail();
  }
  const std::int64_t width = state.info.image_width;
  const std::int64_t height = state.info.image_height;
  check_dimensions(width, height, options);
  if (state.info.arith_code == FALSE) {
    // A Huffman code has a bit at least, and a quarter of the blocks is there however channels are subsampled.
    check_file_bytes(bytes.size(), ((width + 7) / 8) * ((height + 7) / 8) / 32);
  }
  const J_COLOR_SPACE colours = colours_wanted(state.info);
  // libjpeg forgets the markers when it has finished.
  const int orientation = jpeg_orientation(state.info);
  if (!jpeg_start_step(state, colours)) {
    reader.fail();
  }
  Image image{height, width, {}};
  const std::size_t row_bytes = static_cast<std::size_t>(width) * (colours == JCS_CMYK ? 4 : 3);
  image.pixels.resize(static_cast<std::size_t>(height) * row_bytes);
  if (!jpeg_rows_step(state, image.pixels.data(), row_bytes)) {
    reader.fail();
  }
  if (colours == JCS_CMYK) {
    cmyk_to_rgb(image.pixels);
  }
  return upright(std::move(image), orientation);
}

}  // namespace pascaline
