#include "runtime/image/decode.hpp"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "runtime/image/formats.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxSide = 1'000'000;
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30;
constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::string_view kJpegSignature("\xff\xd8\xff", 3);

// What a file of another format is, if its signature tells.
std::string_view other_format(std::string_view bytes) {
  if (bytes.starts_with("GIF8")) {
    return "a GIF image";
  }
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) {
    return "a WebP image";
  }
  if (bytes.starts_with("BM")) {
    return "a BMP image";
  }
  if (bytes.starts_with(std::string_view("II*\0", 4)) || bytes.starts_with(std::string_view("MM\0*", 4))) {
    return "a TIFF image";
  }
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") {
    return "a HEIC, AVIF or video file";
  }
  return bytes.empty() ? "empty" : "of an unknown format";
}

Image decode_by_signature(std::string_view bytes, const DecodeOptions& options) {
  if (bytes.starts_with(kPngSignature)) {
    return decode_png(bytes, options);
  }
  if (bytes.starts_with(kJpegSignature)) {
    return decode_jpeg(bytes, options);
  }
  throw Error(fmt::format("the file is {}, neither PNG nor JPEG: convert it to one of them", other_format(bytes)));
}

}  // namespace

void check_dimensions(std::int64_t width, std::int64_t height, const DecodeOptions& options) {
  if (width < 1 || height < 1) {
    throw Error(fmt::format("the header says {} x {} pixels: the file is damaged", width, height));
  }
  // The sides are checked first, so that their product cannot overflow.
  if (width > kMaxSide || height > kMaxSide) {
    throw Error(fmt::format("the image has {} x {} pixels, but a side may have at most {}: scale it down", width,
                            height, kMaxSide));
  }
  if (width * height > options.max_pixels) {
    throw Error(fmt::format("the image has {} x {} pixels, more than the allowed {}: scale it down", width, height,
                            options.max_pixels));
  }
}

void check_file_bytes(std::size_t bytes, std::int64_t needed) {
  if (static_cast<std::int64_t>(bytes) < needed) {
    throw Error(
        fmt::format("its {} bytes cannot hold the pixels that its header promises, which take at least {}: "
                    "the file is damaged or incomplete, get it again",
                    bytes, needed));
  }
}

Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  try {
    Image image = decode_by_signature(bytes, options);
    image.name = name;
    return image;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()), error.code());
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("{}: there is not enough memory to decode this image: scale it down", name));
  }
}

Image read_image(const std::filesystem::path& file, const DecodeOptions& options) {
  if (file.empty()) {
    throw Error("the name of an image's file is '', which is empty: give a PNG or JPEG file");
  }
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(file, code);
  if (std::filesystem::is_directory(status)) {
    throw Error(fmt::format("{}: this is a folder, not an image", file.string()));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(fmt::format("{}: this is not a regular file: save the image to one", file.string()));
  }
  const std::uintmax_t size = std::filesystem::file_size(file, code);
  if (!code && size > kMaxFileBytes) {
    throw Error(fmt::format("{}: the file has {} bytes, more than the {} that an image may have: scale it down",
                            file.string(), size, kMaxFileBytes));
  }
  return decode_image(read_file(file), file.string(), options);
}

}  // namespace pascaline
