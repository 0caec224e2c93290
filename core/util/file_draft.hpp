#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "core/util/descriptor.hpp"
#include "core/util/draft_folder.hpp"

namespace pascaline {

/// A file that is written beside its place and takes it when it is complete, so that readers see the old or the new
/// file, never half of one. A symbolic link stays one, to the new file; what is no regular file, such as /dev/stdout,
/// is written to as it is. The file keeps the mode of the one that it replaces. Not to be moved; removed if not
/// completed.
class FileDraft {
 public:
  /// `mode` less the umask is that of a new file. Throws Error naming the file and the cause, as all here do.
  explicit FileDraft(const std::filesystem::path& place, mode_t mode = 0666);

  /// Where to write; nothing is there yet, unless it is no regular file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Opens `path` to write, once.
  [[nodiscard]] Descriptor open() const;
  void complete();
  /// Throws Error for an errno that writing ended with.
  [[noreturn]] void fail(int code) const;

 private:
  std::filesystem::path given_;
  std::filesystem::path place_;
  mode_t mode_;
  std::optional<DraftFolder> folder_;  // nothing: written to as it is
  std::filesystem::path path_;
};

}  // namespace pascaline
