#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "model/image/formats.hpp"
#include "model/image/orientation.hpp"

namespace pascaline {
namespace {

struct WebpDeleter {
  void operator()(WebPDemuxer* demuxer) const noexcept { WebPDemuxDelete(demuxer); }
  void operator()(WebPAnimDecoder* decoder) const noexcept { WebPAnimDecoderDelete(decoder); }
};

[[noreturn]] void fail_webp(std::string_view problem) {
  throw Error(fmt::format("the WebP image is damaged or incomplete ({}): get the file again", problem));
}

const std::uint8_t* bytes_of(std::string_view bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

WebPBitstreamFeatures read_webp_header(std::string_view bytes) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(bytes_of(bytes), bytes.size(), &features) != VP8_STATUS_OK) {
    fail_webp("its header");
  }
  return features;
}

int webp_orientation(const WebPDemuxer& demuxer) {
  WebPChunkIterator chunk{};
  int orientation = 1;
  if (WebPDemuxGetChunk(&demuxer, "EXIF", 1, &chunk) != 0) {
    std::string_view exif(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
    // Some programs write the signature of JPEG here, too.
    exif.remove_prefix(exif.starts_with(kExifSignature) ? kExifSignature.size() : 0);
    orientation = exif_orientation(exif);
  }
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

// The first frame of an animation on its canvas, RGBA.
void decode_first_frame(const WebPData& data, Image& image) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) {
    throw Error("libwebpdemux cannot be started: its version is not the one this program was built with");
  }
  const std::unique_ptr<WebPAnimDecoder, WebpDeleter> decoder(WebPAnimDecoderNew(&data, &options));
  std::uint8_t* canvas = nullptr;
  int end_ms = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &canvas, &end_ms) == 0) {
    fail_webp("the first frame of its animation");
  }
  std::copy_n(canvas, image.pixels.size(), image.pixels.begin());
  image.notes.emplace_back(kFirstFrameNote);
}

}  // namespace

Image decode_webp(std::string_view bytes, const DecodeOptions& options) {
  const WebPBitstreamFeatures features = read_webp_header(bytes);
  Image image;
  image.width = features.width;
  image.height = features.height;
  check_dimensions(image.width, image.height, options);
  const WebPData data{bytes_of(bytes), bytes.size()};
  const std::unique_ptr<WebPDemuxer, WebpDeleter> demuxer(WebPDemux(&data));  // none of a file that ends too early
  if (demuxer == nullptr) {
    fail_webp("its parts");
  }
  const bool has_alpha = features.has_alpha != 0 || features.has_animation != 0;
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * (has_alpha ? 4 : 3);
  image.pixels.resize(static_cast<std::size_t>(image.height) * row_bytes);
  if (features.has_animation != 0) {
    decode_first_frame(data, image);
  } else {
    const auto decode = has_alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
    if (decode(data.bytes, data.size, image.pixels.data(), image.pixels.size(), static_cast<int>(row_bytes)) ==
        nullptr) {
      fail_webp("its pixels");
    }
  }
  if (has_alpha) {
    lay_on_white(image);
  }
  return upright(std::move(image), webp_orientation(*demuxer));
}

}  // namespace pascaline
