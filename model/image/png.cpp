#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "model/image/formats.hpp"
#include "model/image/orientation.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kHeaderBytes = 33;      // the signature and the chunk IHDR
constexpr std::int64_t kDeflateRatio = 1040;  // a little more than deflate's best

// State of libpng. It reports faults by longjmp, which runs no destructors: the functions that call it below
// (png_*_step) hold nothing but plain values, and all memory belongs to libpng or to their callers.
struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view input;  // not yet read
  char problem[160] = "";
};

[[noreturn]] void fail_png(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::snprintf(state->problem, sizeof state->problem, "%s", message);
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void read_png_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (state->input.size() < count) {
    png_error(png, "it ends too early");
  }
  std::memcpy(out, state->input.data(), count);
  state->input.remove_prefix(count);
}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) {
    state_.input = bytes;
    state_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, fail_png, ignore_png_warning);
    state_.info = state_.png != nullptr ? png_create_info_struct(state_.png) : nullptr;
    if (state_.info == nullptr) {
      png_destroy_read_struct(&state_.png, nullptr, nullptr);
      throw Error(
          "libpng cannot be started: its version is not the one this program was built with, or memory is "
          "short");
    }
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&state_.png, &state_.info, nullptr); }

  [[nodiscard]] PngState& state() noexcept { return state_; }
  /// Throws what libpng complained of.
  [[noreturn]] void fail() const {
    throw Error(fmt::format("the PNG image is damaged or incomplete ({}): get the file again", state_.problem));
  }

 private:
  PngState state_;
};

// Text, profiles and the like are skipped: they cannot then fail, nor take memory.
bool png_header_step(PngState& state) {
  if (setjmp(png_jmpbuf(state.png)) != 0) {
    return false;
  }
  png_set_read_fn(state.png, &state, read_png_bytes);
  static constexpr png_byte kSkipped[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT\0hIST\0pCAL";
  png_set_keep_unknown_chunks(state.png, PNG_HANDLE_CHUNK_NEVER, kSkipped, sizeof kSkipped / 5);
  png_read_info(state.png, state.info);
  return true;
}

// Asks for rows of 8-bit RGB, or RGBA of an image with transparency, and gives the bytes of a row.
bool png_transform_step(PngState& state, std::size_t& row_bytes) {
  if (setjmp(png_jmpbuf(state.png)) != 0) {
    return false;
  }
  const int type = png_get_color_type(state.png, state.info);
  png_set_strip_16(state.png);
  if (type == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(state.png);
  } else if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) {
    png_set_expand_gray_1_2_4_to_8(state.png);
    png_set_gray_to_rgb(state.png);
  }
  if (png_get_valid(state.png, state.info, PNG_INFO_tRNS) != 0) {
    png_set_tRNS_to_alpha(state.png);
  }
  png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  row_bytes = png_get_rowbytes(state.png, state.info);
  return true;
}

bool png_rows_step(PngState& state, std::uint8_t* pixels, std::int64_t rows, std::size_t row_bytes) {
  if (setjmp(png_jmpbuf(state.png)) != 0) {
    return false;
  }
  const int passes =
      png_get_interlace_type(state.png, state.info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < rows; ++y) {
      png_read_row(state.png, pixels + static_cast<std::size_t>(y) * row_bytes, nullptr);
    }
  }
  png_read_end(state.png, state.info);
  return true;
}

std::int64_t big_endian_32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

// Refuses by the header alone what is too large, or larger than the file's bytes can hold.
void check_header(std::string_view bytes, const DecodeOptions& options) {
  if (bytes.size() < kHeaderBytes || bytes.substr(12, 4) != "IHDR") {
    throw Error("the PNG image is damaged or incomplete (it has no header): get the file again");
  }
  const std::int64_t width = big_endian_32(bytes, 16);
  const std::int64_t height = big_endian_32(bytes, 20);
  check_dimensions(width, height, options);
  const std::int64_t bits_per_sample = static_cast<std::uint8_t>(bytes[24]);
  const auto type = static_cast<std::uint8_t>(bytes[25]);
  const bool colours = (type & PNG_COLOR_MASK_COLOR) != 0 && (type & PNG_COLOR_MASK_PALETTE) == 0;
  const std::int64_t samples = (colours ? 3 : 1) + ((type & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
  const std::int64_t row = 1 + width * samples * bits_per_sample / 8;
  check_file_bytes(bytes.size(), height * row / kDeflateRatio);
}

// An animation has the chunk acTL, with the number of its frames, before the pixels, which are the first of them or an
// image to show instead.
bool is_animated(std::string_view bytes) {
  constexpr std::size_t kFirstChunk = 8;
  constexpr std::size_t kAroundData = 12;  // length, name and checksum of a chunk
  for (std::size_t at = kFirstChunk; at + kAroundData <= bytes.size();) {
    const std::string_view name = bytes.substr(at + 4, 4);
    if (name == "acTL" || name == "IDAT") {
      return name == "acTL" && big_endian_32(bytes, at + 8) > 1;
    }
    at += kAroundData + static_cast<std::size_t>(big_endian_32(bytes, at));
  }
  return false;
}

int png_orientation(PngState& state) {
  png_uint_32 bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(state.png, state.info, &bytes, &exif) == 0 || exif == nullptr) {
    return 1;
  }
  return exif_orientation({reinterpret_cast<const char*>(exif), bytes});
}

}  // namespace

Image decode_png(std::string_view bytes, const DecodeOptions& options) {
  check_header(bytes, options);
  PngReader reader(bytes);
  PngState& state = reader.state();
  if (!png_header_step(state)) {
    reader.fail();
  }
  const bool with_alpha = (png_get_color_type(state.png, state.info) & PNG_COLOR_MASK_ALPHA) != 0 ||
                          png_get_valid(state.png, state.info, PNG_INFO_tRNS) != 0;
  std::size_t row_bytes = 0;
  if (!png_transform_step(state, row_bytes)) {
    reader.fail();
  }
  Image image;
  image.width = png_get_image_width(state.png, state.info);
  image.height = png_get_image_height(state.png, state.info);
  if (row_bytes != static_cast<std::size_t>(image.width) * (with_alpha ? 4 : 3)) {
    throw Error(fmt::format("libpng gives rows of {} bytes for {} pixels: this build of libpng cannot be used",
                            row_bytes, image.width));
  }
  image.pixels.resize(static_cast<std::size_t>(image.height) * row_bytes);
  if (!png_rows_step(state, image.pixels.data(), image.height, row_bytes)) {
    reader.fail();
  }
  if (is_animated(bytes)) {
    image.notes.emplace_back(kFirstFrameNote);
  }
  if (with_alpha) {
    lay_on_white(image);
  }
  return upright(std::move(image), png_orientation(state));
}

}  // namespace pascaline
