#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/bundle/bundle_format.hpp"

namespace pascaline {
namespace {

namespace format = bundle_format;

struct Header {
  std::uint64_t manifest_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::string_view manifest_hash;
};

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

// `actual_bytes`: the file's size.
Header read_header(std::string_view bytes, std::uint64_t actual_bytes) {
  if (bytes.size() < format::kHeaderBytes || !bytes.starts_with(format::kMagic)) {
    throw Error("it is not a bundle; make one with pascaline bundle");
  }
  if (const std::uint64_t version = number_at(bytes, 8); version != format::kVersion) {
    throw Error(
        fmt::format("its format is {}, this program reads {}; make it again with this program's pascaline bundle",
                    version, format::kVersion));
  }
  Header header{number_at(bytes, 16), number_at(bytes, 24), bytes.substr(32, format::kHashDigits)};
  if (header.file_bytes != actual_bytes) {
    throw Error(
        fmt::format("it has {} bytes where its header says {}: {}", actual_bytes, header.file_bytes, format::kDamaged));
  }
  if (actual_bytes > format::kMaxFileBytes || header.manifest_bytes > format::kMaxManifestBytes ||
      format::aligned(format::kHeaderBytes + header.manifest_bytes) > actual_bytes) {
    throw Error(fmt::format("its header gives {} bytes of manifest in {}: {}", header.manifest_bytes, actual_bytes,
                            format::kDamaged));
  }
  return header;
}

Bundle parse(std::string_view bytes) {
  const Header header = read_header(bytes, bytes.size());
  const std::string_view manifest = bytes.substr(format::kHeaderBytes, header.manifest_bytes);
  if (hash_hex(manifest) != header.manifest_hash) {
    throw Error(fmt::format("the hash of its manifest is not the one in its header: {}", format::kDamaged));
  }
  const std::uint64_t end = format::kHeaderBytes + header.manifest_bytes;
  const std::uint64_t begin = format::aligned(end);
  format::require_zeros(bytes.substr(end, begin - end));
  return format::read_manifest(manifest, bytes.substr(begin));
}

}  // namespace

void bundle_format::refuse(const std::string& file, std::string why) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; };
  std::replace_if(why.begin(), why.end(), is_control, '?');
  throw Error(fmt::format("cannot use bundle {}: {}", file, why));
}

void bundle_format::require_zeros(std::string_view bytes) {
  if (bytes.find_first_not_of('\0') != std::string_view::npos) {
    throw Error(fmt::format("there are bytes between its parts: {}", kDamaged));
  }
}

Bundle parse_bundle(std::string_view bytes, const std::string& file) {
  try {
    return parse(bytes);
  } catch (const SpaceError& error) {
    format::refuse(file, fmt::format("{}; make it again with pascaline bundle", error.what()));
  } catch (const Error& error) {
    format::refuse(file, error.what());
  }
}

Bundle load_bundle(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error) {
    format::refuse(file.string(), error.message());
  }
  std::string header(format::kHeaderBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  header.resize(static_cast<std::size_t>(in.gcount()));
  try {
    (void)read_header(header, size);
  } catch (const Error& fault) {
    format::refuse(file.string(), fault.what());
  }
  return parse_bundle(read_file(file), file.string());
}

}  // namespace pascaline
