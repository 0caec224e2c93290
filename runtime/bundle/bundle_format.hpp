#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/binary.hpp"
#include "runtime/bundle/bundle.hpp"

namespace pascaline::bundle_format {

inline constexpr std::string_view kMagic{"PSCLBNDL", 8};
inline constexpr std::uint64_t kVersion = 1;
inline constexpr std::size_t kHashDigits = 32;
/// Magic, then version, bytes of the manifest and bytes of the file as little-endian 64-bit numbers, then the hash of
/// the manifest.
inline constexpr std::size_t kHeaderBytes = 64;
/// The manifest follows the header; the first code and each further one begin at the next multiple of this, with zeros
/// in between.
inline constexpr std::size_t kAlignment = 64;

inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{64} << 20U;
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30U;
inline constexpr std::size_t kMaxKernels = 256;
inline constexpr std::size_t kMaxToolkits = 17;
inline constexpr std::size_t kMaxWinners = 100'000;
inline constexpr std::size_t kMaxCodes = 100'000;
inline constexpr std::size_t kMaxSettings = 1'000;  ///< dimensions, types, defines or options of one entry

inline constexpr std::array<std::pair<BinaryKind, std::string_view>, 3> kKinds{
    {{BinaryKind::cubin, "cubin"}, {BinaryKind::ptx, "ptx"}, {BinaryKind::host_object, "host"}}};

inline constexpr std::array<std::pair<std::string_view, int Resources::*>, 8> kResources{
    {{"registers", &Resources::registers},
     {"static_shared_bytes", &Resources::static_shared_bytes},
     {"constant_bytes", &Resources::constant_bytes},
     {"local_bytes", &Resources::local_bytes},
     {"local_loads", &Resources::local_loads},
     {"local_stores", &Resources::local_stores},
     {"instructions", &Resources::instructions},
     {"ffma", &Resources::ffma}}};

[[nodiscard]] constexpr std::uint64_t aligned(std::uint64_t offset) noexcept {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

/// The file that holds this manifest and these bytes of code behind it, codes aligned already.
[[nodiscard]] std::string assemble(const std::string& manifest, std::string_view codes);

/// Reads a manifest whose codes are these bytes. Throws Error (SpaceError) without naming the file.
[[nodiscard]] Bundle read_manifest(std::string_view manifest, std::string_view codes);

inline constexpr const char* kDamaged = "the file is damaged; copy it again, or make it again with pascaline bundle";

/// Throws Error "cannot use bundle FILE: why", in one line and without terminal control characters, whatever the file
/// holds.
[[noreturn]] void refuse(const std::string& file, std::string why);

/// Throws Error unless the bytes are those that fill gaps.
void require_zeros(std::string_view bytes);

}  // namespace pascaline::bundle_format
