#include "db/exchange/unpack.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

// zlib's state, ended once.
class Inflater {
 public:
  explicit Inflater(const std::string& file) : file_(file) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
      fail("cannot be unpacked: out of memory");
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  std::string unpack(std::string_view packed, std::size_t most) {
    std::string out;
    std::vector<char> block(std::size_t{1} << 18U);
    bool ended = false;  // at the end of a member
    while (!packed.empty() || !ended) {
      if (ended && inflateReset(&stream_) != Z_OK) {
        fail("cannot be unpacked");
      }
      const std::size_t given = std::min<std::size_t>(packed.size(), std::numeric_limits<uInt>::max() / 2);
      // zlib's interface is not const-correct; it does not write here.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(block.data());
      stream_.avail_out = static_cast<uInt>(block.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t taken = given - stream_.avail_in;
      const std::size_t made = block.size() - stream_.avail_out;
      packed.remove_prefix(taken);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        fail("is damaged: its gzip data cannot be unpacked");
      }
      if (made > most - out.size()) {
        fail(fmt::format("unpacks to more than {} bytes", most));
      }
      out.append(block.data(), made);
      ended = code == Z_STREAM_END;
      if (!ended && taken == 0 && made == 0) {
        fail("is cut off: its gzip data end too early");
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw SpaceError(file_, "", problem); }

  const std::string& file_;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

std::string unpack_gzip(std::string_view packed, const std::string& file, std::size_t most) {
  return Inflater(file).unpack(packed, most);
}

std::string read_plain_or_gzip(const std::filesystem::path& file) {
  std::string bytes = read_file(file, kMaxRecordedBytes);
  return is_gzip(bytes) ? unpack_gzip(bytes, file.string()) : bytes;
}

}  // namespace pascaline
