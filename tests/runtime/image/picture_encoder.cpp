#include "tests/runtime/image/picture_encoder.hpp"

// jpeglib.h needs FILE before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <png.h>

#include <cstdlib>
#include <utility>

namespace pascaline::testing {
namespace {

void append_png(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), count);
}

// The samples of a row as PNG packs them: from the highest bit on, 16 bits big-endian.
std::vector<std::uint8_t> packed_row(const PngPicture& picture, std::int64_t y) {
  const auto count = static_cast<std::size_t>(picture.width * picture.channels());
  const auto depth = static_cast<std::size_t>(picture.bit_depth);
  std::vector<std::uint8_t> row((count * depth + 7) / 8);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned sample = picture.samples.at(static_cast<std::size_t>(y) * count + i);
    for (std::size_t bit = 0; bit < depth; ++bit) {
      const std::size_t at = i * depth + bit;
      row[at / 8] = static_cast<std::uint8_t>(row[at / 8] | ((sample >> (depth - 1 - bit) & 1) << (7 - at % 8)));
    }
  }
  return row;
}

void write_png_metadata(png_structp png, png_infop info, const PngPicture& picture) {
  if (!picture.palette.empty()) {
    std::vector<png_color> palette;
    for (const auto& colour : picture.palette) {
      palette.push_back({colour[0], colour[1], colour[2]});
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  }
  if (!picture.palette_alpha.empty()) {
    png_set_tRNS(png, info, picture.palette_alpha.data(), static_cast<int>(picture.palette_alpha.size()), nullptr);
  }
  if (!picture.transparent.empty()) {
    const auto& t = picture.transparent;
    png_color_16 colour{0, t[0], t.size() > 1 ? t[1] : t[0], t.size() > 2 ? t[2] : t[0], t[0]};
    png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  if (!picture.exif.empty()) {
    std::string exif = picture.exif;
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), reinterpret_cast<png_bytep>(exif.data()));
  }
}

void configure_jpeg(jpeg_compress_struct& info, const JpegPicture& picture) {
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, picture.quality, TRUE);
  if (picture.as_ycck) {
    jpeg_set_colorspace(&info, JCS_YCCK);
  } else if (picture.as_rgb) {
    jpeg_set_colorspace(&info, JCS_RGB);
  }
  for (int c = 0; c < info.num_components; ++c) {
    info.comp_info[c].h_samp_factor = picture.subsampled && c == 0 ? 2 : 1;
    info.comp_info[c].v_samp_factor = picture.subsampled && c == 0 ? 2 : 1;
  }
  info.arith_code = picture.arithmetic ? TRUE : FALSE;
  info.restart_in_rows = picture.restart_rows;
  if (picture.progressive) {
    jpeg_simple_progression(&info);
  }
}

std::uint8_t byte_of(std::int64_t value) { return static_cast<std::uint8_t>(value & 255); }

}  // namespace

int PngPicture::channels() const {
  switch (color_type) {
    case PNG_COLOR_TYPE_RGB:
      return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2;
    default:
      return 1;
  }
}

// The encoders' own faults end the test program: their input is the tests'.
std::string encode_png(const PngPicture& picture) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append_png, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height),
               picture.bit_depth, picture.color_type, picture.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  write_png_metadata(png, info, picture);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < picture.height; ++y) {
      png_write_row(png, packed_row(picture, y).data());
    }
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string encode_jpeg(const JpegPicture& picture) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : picture.channels == 3 ? JCS_RGB : JCS_CMYK;
  configure_jpeg(info, picture);
  jpeg_start_compress(&info, TRUE);
  if (!picture.exif.empty()) {
    const std::string marker = std::string("Exif\0\0", 6) + picture.exif;
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  std::vector<std::uint8_t> pixels = picture.pixels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + static_cast<std::size_t>(info.next_scanline) * info.image_width * picture.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<const char*>(bytes), count);
  std::free(bytes);
  return out;
}

std::string exif_with_orientation(int orientation, bool big_endian) {
  const auto value = static_cast<char>(orientation);
  return big_endian ? std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) + value + std::string(6, '\0')
                    : std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + value + std::string(7, '\0');
}

Image synthetic_image(std::int64_t height, std::int64_t width) {
  Image image = black_image(height, width);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        image.row(y)[x * 3 + c] = byte_of(7 * x + 13 * y + 29 * c + x * y % 31);
      }
    }
  }
  return image;
}

Image smooth_image(std::int64_t height, std::int64_t width) {
  Image image = black_image(height, width);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      image.row(y)[x * 3] = byte_of(40 + 160 * x / width);
      image.row(y)[x * 3 + 1] = byte_of(30 + 180 * y / height);
      image.row(y)[x * 3 + 2] = byte_of(200 - 70 * (x + y) / (width + height));
    }
  }
  return image;
}

std::string png_of(const Image& image) {
  PngPicture picture;
  picture.height = image.height;
  picture.width = image.width;
  picture.color_type = PNG_COLOR_TYPE_RGB;
  picture.samples.assign(image.pixels.begin(), image.pixels.end());
  return encode_png(picture);
}

JpegPicture jpeg_of(const Image& image) {
  JpegPicture picture;
  picture.height = image.height;
  picture.width = image.width;
  picture.pixels = image.pixels;
  return picture;
}

}  // namespace pascaline::testing
