#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pascaline {

/// A message between a sweep and one of its workers as bytes: its length (8 bytes, little endian), then CBOR
/// (RFC 8949), which carries binaries and doubles unchanged.
[[nodiscard]] std::string frame_of(const nlohmann::json& message);

/// Takes a stream of frames apart.
class FrameReader {
 public:
  /// Adds bytes as they come.
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole message, if there is one. Throws Error if the stream holds something else than frames.
  [[nodiscard]] std::optional<nlohmann::json> next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;
};

/// The next whole message from a descriptor, waiting for it; nothing once the descriptor has ended. Throws as
/// FrameReader::next.
[[nodiscard]] std::optional<nlohmann::json> read_message(int descriptor, FrameReader& reader);

/// Writes all bytes to a descriptor; false if the reader has gone.
[[nodiscard]] bool write_all(int descriptor, std::string_view bytes) noexcept;

}  // namespace pascaline
