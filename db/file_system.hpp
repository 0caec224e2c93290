#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace pascaline {

/// What tells a file system: the type that statfs(2) reports, and the name that it is mounted under (`nfs4`,
/// `fuse.sshfs`; empty if not known).
struct FileSystem {
  std::uint64_t type = 0;
  std::string mounted_as{};
};

/// The one that the file or, if there is none, the nearest folder above it lies on; type 0 if that cannot be told.
[[nodiscard]] FileSystem file_system_of(const std::filesystem::path& file);

/// A network file system's name for people; nothing for a local one. Behind FUSE there can be either: those known to
/// keep their files on another machine count.
[[nodiscard]] std::optional<std::string> network_name_of(const FileSystem& system);

/// As `network_name_of` of where the file lies.
[[nodiscard]] std::optional<std::string> network_file_system(const std::filesystem::path& file);

/// For tests: what `network_file_system` takes for every file's; nothing: what it is.
void pretend_file_system(std::optional<FileSystem> system);

}  // namespace pascaline
