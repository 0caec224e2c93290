#pragma once

#include <filesystem>
#include <optional>

#include "core/util/draft_folder.hpp"

namespace pascaline::cli {

/// A file that is written beside its place and takes it when it is complete; before that nothing is there. Not to be
/// moved. What was not completed is removed.
class NewFile {
 public:
  /// Throws Error if `place` exists, unless `replace` and it is a file.
  NewFile(std::filesystem::path place, bool replace);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] const std::filesystem::path& place() const noexcept { return place_; }
  /// Where it is to be written: of the same name in a folder of its own, and not there yet.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return part_; }
  /// Puts it in its place. Throws Error if there is something by now, unless it may be replaced.
  void complete();

 private:
  std::filesystem::path place_;
  std::optional<DraftFolder> folder_;
  std::filesystem::path part_;
  bool replace_;
};

}  // namespace pascaline::cli
