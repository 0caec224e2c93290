#include "model/image/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <system_error>

#include "core/error.hpp"
#include "core/util/foreign_text.hpp"
#include "core/util/paths.hpp"
#include "model/image/formats.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxSide = 1'000'000;
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30;
constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::string_view kJpegSignature("\xff\xd8\xff", 3);

struct Signature {
  std::size_t at;
  std::string_view bytes;
  std::string_view format;
};

// Formats that people have images in, and that are not read here. The brand of a file of ISO boxes follows "ftyp".
constexpr std::array<Signature, 20> kOtherFormats{
    {{0, "GIF8", "a GIF image"},        {0, "BM", "a BMP image"},
     {0, {"II*\0", 4}, "a TIFF image"}, {0, {"MM\0*", 4}, "a TIFF image"},
     {4, "ftypheic", "a HEIC image"},   {4, "ftypheix", "a HEIC image"},
     {4, "ftyphevc", "a HEIC image"},   {4, "ftypmif1", "a HEIC image"},
     {4, "ftypmsf1", "a HEIC image"},   {4, "ftypavif", "an AVIF image"},
     {4, "ftypavis", "an AVIF image"},  {4, "ftyp", "a video"},
     {4, "JXL ", "a JPEG XL image"},    {0, "\xff\x0a", "a JPEG XL image"},
     {4, "jP  ", "a JPEG 2000 image"},  {0, {"\0\0\1\0", 4}, "an icon file"},
     {0, "8BPS", "a Photoshop file"},   {0, "%PDF-", "a PDF document"},
     {0, "<svg", "an SVG image"},       {0, "<?xml", "an XML file, perhaps an SVG image"}}};

// What a file of another format is, if its signature tells.
std::string_view other_format(std::string_view bytes) {
  const auto* const found = std::find_if(kOtherFormats.begin(), kOtherFormats.end(), [&](const Signature& format) {
    return bytes.size() >= format.at && bytes.substr(format.at).starts_with(format.bytes);
  });
  return found != kOtherFormats.end() ? found->format : bytes.empty() ? "empty" : "of an unknown format";
}

bool is_webp(std::string_view bytes) { return bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP"); }

Image decode_by_signature(std::string_view bytes, const DecodeOptions& options) {
  if (bytes.starts_with(kPngSignature)) {
    return decode_png(bytes, options);
  }
  if (bytes.starts_with(kJpegSignature)) {
    return decode_jpeg(bytes, options);
  }
  if (is_webp(bytes)) {
    return decode_webp(bytes, options);
  }
  if (is_lfs_pointer(bytes)) {
    throw Error(std::string(kLfsPointer));
  }
  throw Error(fmt::format("the file is {}, not PNG, JPEG or WebP: save or convert it as one of them{}",
                          other_format(bytes),
                          bytes.empty() ? "" : ", for example with ImageMagick: convert FILE image.png"));
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

void lay_on_white(Image& image) {
  std::vector<std::uint8_t>& pixels = image.pixels;
  const std::size_t count = pixels.size() / 4;
  unsigned least = 255;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned alpha = pixels[i * 4 + 3];
    least = std::min(least, alpha);
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned weighted = pixels[i * 4 + c] * alpha + 255 * (255 - alpha) + 128;
      pixels[i * 3 + c] = static_cast<std::uint8_t>((weighted + (weighted >> 8)) >> 8);
    }
  }
  pixels.resize(count * 3);
  if (least < 255) {
    image.notes.emplace_back("its transparent pixels are laid on white");
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
    throw Error("the file name of an image is empty: give a PNG, JPEG or WebP file");
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
