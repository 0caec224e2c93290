#pragma once

#include <filesystem>
#include <optional>

#include "core/util/draft_folder.hpp"

namespace pascaline::cli {

/// A folder that is filled beside its place and takes it when it is complete; before that nothing is there. Not to be
/// moved. What was not completed is removed.
class NewFolder {
 public:
  /// Throws Error if `place` exists (unless `replace`, and it is a folder without folders in it), or if nothing can be
  /// written beside it.
  NewFolder(const std::filesystem::path& place, bool replace);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to write.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return part_->path(); }
  /// Puts it in its place; what was there is removed. Throws Error if that cannot be, for example as something is there
  /// by now.
  void complete();

 private:
  std::filesystem::path place_;
  std::optional<DraftFolder> part_;
  bool replace_;
};

}  // namespace pascaline::cli
