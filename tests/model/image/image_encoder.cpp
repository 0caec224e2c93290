#include "tests/model/image/image_encoder.hpp"

// jpeglib.h needs FILE before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <png.h>
#include <webp/encode.h>

#include <cstdlib>
#include <utility>

namespace pascaline::testing {
namespace {

void append_png(png_structp png, png_bytep bytes, std::size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), count);
}

// The samples of a row as PNG packs them: from the highest bit on, 16 bits big-endian.
std::vector<std::uint8_t> packed_row(const PngSource& source, std::int64_t y) {
  const auto count = static_cast<std::size_t>(source.width * source.channels());
  const auto depth = static_cast<std::size_t>(source.bit_depth);
  std::vector<std::uint8_t> row((count * depth + 7) / 8);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned sample = source.samples.at(static_cast<std::size_t>(y) * count + i);
    for (std::size_t bit = 0; bit < depth; ++bit) {
      const std::size_t at = i * depth + bit;
      row[at / 8] = static_cast<std::uint8_t>(row[at / 8] | ((sample >> (depth - 1 - bit) & 1) << (7 - at % 8)));
    }
  }
  return row;
}

void write_png_metadata(png_structp png, png_infop info, const PngSource& source) {
  if (!source.palette.empty()) {
    std::vector<png_color> palette;
    for (const auto& colour : source.palette) {
      palette.push_back({colour[0], colour[1], colour[2]});
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  }
  if (!source.palette_alpha.empty()) {
    png_set_tRNS(png, info, source.palette_alpha.data(), static_cast<int>(source.palette_alpha.size()), nullptr);
  }
  if (!source.transparent.empty()) {
    const auto& t = source.transparent;
    png_color_16 colour{0, t[0], t.size() > 1 ? t[1] : t[0], t.size() > 2 ? t[2] : t[0], t[0]};
    png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  if (!source.exif.empty()) {
    std::string exif = source.exif;
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), reinterpret_cast<png_bytep>(exif.data()));
  }
}

void configure_jpeg(jpeg_compress_struct& info, const JpegSource& source) {
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, source.quality, TRUE);
  if (source.as_ycck) {
    jpeg_set_colorspace(&info, JCS_YCCK);
  } else if (source.as_rgb) {
    jpeg_set_colorspace(&info, JCS_RGB);
  }
  for (int c = 0; c < info.num_components; ++c) {
    info.comp_info[c].h_samp_factor = source.subsampled && c == 0 ? 2 : 1;
    info.comp_info[c].v_samp_factor = source.subsampled && c == 0 ? 2 : 1;
  }
  info.arith_code = source.arithmetic ? TRUE : FALSE;
  info.restart_in_rows = source.restart_rows;
  if (source.progressive) {
    jpeg_simple_progression(&info);
  }
}

std::uint8_t byte_of(std::int64_t value) { return static_cast<std::uint8_t>(value & 255); }

std::string little_endian(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * i));
  }
  return text;
}

std::string webp_chunk(const std::string& name, const std::string& content) {
  return name + little_endian(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}

// The chunks of one image's pixels: what libwebp writes, without what is around it.
std::string webp_pixels(const WebpSource& source, const std::vector<std::uint8_t>& pixels) {
  constexpr float kQuality = 90;
  constexpr std::size_t kFileHeader = 12;
  constexpr std::size_t kExtendedHeader = 18;
  const auto width = static_cast<int>(source.width);
  const auto height = static_cast<int>(source.height);
  std::uint8_t* out = nullptr;
  const std::size_t size = source.lossy ? WebPEncodeRGBA(pixels.data(), width, height, 4 * width, kQuality, &out)
                                        : WebPEncodeLosslessRGBA(pixels.data(), width, height, 4 * width, &out);
  std::string chunks(reinterpret_cast<const char*>(out), size);
  WebPFree(out);
  chunks.erase(0, kFileHeader);
  return chunks.starts_with("VP8X") ? chunks.substr(kExtendedHeader) : chunks;
}

}  // namespace

std::string encode_webp(const WebpSource& source) {
  constexpr std::size_t kAnimated = 0x02;
  constexpr std::size_t kHasExif = 0x08;
  constexpr std::size_t kHasAlpha = 0x10;
  const std::string size = little_endian(static_cast<std::size_t>(source.width - 1), 3) +
                           little_endian(static_cast<std::size_t>(source.height - 1), 3);
  const std::size_t flags = kHasAlpha | (source.animated ? kAnimated : 0) | (source.exif.empty() ? 0 : kHasExif);
  std::string chunks = webp_chunk("VP8X", little_endian(flags, 4) + size);
  if (source.animated) {
    const std::vector<std::uint8_t> white(source.pixels.size(), 255);
    const std::string frame = little_endian(0, 6) + size + little_endian(100, 3) + little_endian(0, 1);
    chunks += webp_chunk("ANIM", little_endian(0, 6)) + webp_chunk("ANMF", frame + webp_pixels(source, source.pixels)) +
              webp_chunk("ANMF", frame + webp_pixels(source, white));
  } else {
    chunks += webp_pixels(source, source.pixels);
  }
  if (!source.exif.empty()) {
    chunks += webp_chunk("EXIF", source.exif);
  }
  return "RIFF" + little_endian(chunks.size() + 4, 4) + "WEBP" + chunks;
}

WebpSource webp_of(const Image& image) {
  WebpSource source;
  source.height = image.height;
  source.width = image.width;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const std::uint8_t* const pixel = image.pixels.data() + i;
    source.pixels.insert(source.pixels.end(), {pixel[0], pixel[1], pixel[2], 255});
  }
  return source;
}

int PngSource::channels() const {
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
std::string encode_png(const PngSource& source) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append_png, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(source.width), static_cast<png_uint_32>(source.height),
               source.bit_depth, source.color_type, source.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  write_png_metadata(png, info, source);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < source.height; ++y) {
      png_write_row(png, packed_row(source, y).data());
    }
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string encode_jpeg(const JpegSource& source) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = static_cast<JDIMENSION>(source.width);
  info.image_height = static_cast<JDIMENSION>(source.height);
  info.input_components = source.channels;
  info.in_color_space = source.channels == 1 ? JCS_GRAYSCALE : source.channels == 3 ? JCS_RGB : JCS_CMYK;
  configure_jpeg(info, source);
  jpeg_start_compress(&info, TRUE);
  if (!source.exif.empty()) {
    const std::string marker = std::string("Exif\0\0", 6) + source.exif;
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  std::vector<std::uint8_t> pixels = source.pixels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + static_cast<std::size_t>(info.next_scanline) * info.image_width * source.channels;
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
  PngSource source;
  source.height = image.height;
  source.width = image.width;
  source.color_type = PNG_COLOR_TYPE_RGB;
  source.samples.assign(image.pixels.begin(), image.pixels.end());
  return encode_png(source);
}

JpegSource jpeg_of(const Image& image) {
  JpegSource source;
  source.height = image.height;
  source.width = image.width;
  source.pixels = image.pixels;
  return source;
}

}  // namespace pascaline::testing
