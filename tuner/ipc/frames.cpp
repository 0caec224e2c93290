#include "tuner/ipc/frames.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 32U;  // a cubin is a thousand times smaller

}  // namespace

std::string frame_of(const nlohmann::json& message) {
  const std::vector<std::uint8_t> body = nlohmann::json::to_cbor(message);
  std::string bytes;
  bytes.reserve(kHeaderBytes + body.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(body.size() >> shift & 0xff));
  }
  bytes.append(body.begin(), body.end());
  return bytes;
}

std::optional<nlohmann::json> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kHeaderBytes) {
    return std::nullopt;
  }
  std::uint64_t size = 0;
  for (std::size_t i = kHeaderBytes; i-- > 0;) {
    size = size << 8U | static_cast<unsigned char>(rest[i]);
  }
  if (size > kLargest) {
    throw Error("the message stream contains something that is not a message");
  }
  if (rest.size() - kHeaderBytes < size) {
    return std::nullopt;
  }
  const std::string_view body = rest.substr(kHeaderBytes, size);
  nlohmann::json message = nlohmann::json::from_cbor(body.begin(), body.end(), true, false);
  if (!message.is_object()) {
    throw Error("the message stream contains something that is not a message");
  }
  begin_ += kHeaderBytes + size;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  }
  return message;
}

std::optional<nlohmann::json> read_message(int descriptor, FrameReader& reader) {
  std::array<char, 1 << 16> block{};
  for (;;) {
    if (auto message = reader.next()) {
      return message;
    }
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return std::nullopt;
    }
    reader.append({block.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  }
}

bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  return true;
}

}  // namespace pascaline
