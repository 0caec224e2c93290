#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/util/descriptor.hpp"

namespace pascaline {

/// A new folder for files that are not complete yet, removed at the end with all that is in it. Its name cannot be
/// guessed, and nobody can have put a file or a link there before. Everything that is written before it takes its place
/// is written in one. Not to be moved.
///
/// A lock on it marks its owner. A process that is killed leaves its folders, without the lock; `remove_abandoned`
/// removes them.
class DraftFolder {
 public:
  /// Makes it beside `place`, with a name that begins as that, and with `mode` less the umask. Throws Error with the
  /// errno and the folder that it was to be in.
  explicit DraftFolder(const std::filesystem::path& place, mode_t mode = 0700);
  DraftFolder(const DraftFolder&) = delete;
  DraftFolder& operator=(const DraftFolder&) = delete;
  ~DraftFolder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// It was renamed, and stays.
  void release() noexcept { path_.clear(); }

 private:
  std::filesystem::path path_;
  Descriptor lock_;
};

/// Removes the user's DraftFolders in `folder` that were made on this machine and that no living process owns.
/// Looks once in a process for each folder. Faults are ignored.
void remove_abandoned(const std::filesystem::path& folder);

/// Looks again in the folders where `remove_abandoned` has looked: after a process was killed that this one had
/// started.
void remove_abandoned_again();

/// These folders, at most so many of them, for a signal handler.
[[nodiscard]] std::span<const char* const> draft_places() noexcept;
inline constexpr std::size_t kMaxDraftPlaces = 256;

/// The folder for temporary files: $TMPDIR, else /tmp. It may be none; making something in it says so.
[[nodiscard]] std::filesystem::path temporary_files();

}  // namespace pascaline
