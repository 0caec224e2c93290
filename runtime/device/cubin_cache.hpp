#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// Compiled kernels on disk, shared by processes and nights. An entry is written to a temporary file and renamed,
/// carries a checksum, and is rebuilt if damaged. Kernels that do not compile are cached too. Only the user can read
/// the folder; one, or an entry, that others than the user and root can change is refused with an Error.
class CubinCache {
 public:
  /// Uses `folder`, which is created when something is to be stored.
  explicit CubinCache(std::filesystem::path folder);

  /// The entry, or nothing if there is none or it is damaged (a damaged one is removed).
  [[nodiscard]] std::optional<CompileResult> find(const std::string& key) const;
  /// Stores an entry; throws Error if the disk refuses.
  void store(const std::string& key, const CompileResult& result) const;
  /// `find`, else compile and `store`. A disk that refuses to store costs a warning on stderr once, not the result.
  [[nodiscard]] CompileResult get(const Toolchain& toolchain, const CompileRequest& request) const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace pascaline
