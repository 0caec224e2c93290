#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// A file of the cache, as far as its beginning says.
struct CubinCacheEntry {
  std::string key;
  /// "cubin", "ptx", "shared object", "parsed headers" (of the emulated device's kernels), "failed compilation", or
  /// "unreadable" (damaged, or of another version of the program).
  std::string kind;
  std::string target;  ///< as Binary::target; empty for the last two kinds
  std::uint64_t bytes = 0;
  std::int64_t used_unix_ms = 0;  ///< when it was stored or last found
};

/// Compiled kernels on disk, shared by processes and nights. An entry is written to a temporary file and renamed,
/// carries a checksum, and is rebuilt if damaged. Kernels that do not compile are cached too. Only the user can read
/// the folder; one, or an entry, that others than the user and root can change is refused with an Error.
class CubinCache {
 public:
  /// Uses `folder`, which is created when something is to be stored.
  explicit CubinCache(std::filesystem::path folder);

  /// The entry, or nothing if there is none or it is damaged (a damaged one is removed).
  [[nodiscard]] std::optional<CompileResult> find(const std::string& key) const;
  /// The same of the functions of a pipeline, put together; the first that did not compile is the result.
  [[nodiscard]] std::optional<CompileResult> find(std::span<const std::string> keys) const;
  /// Stores an entry; throws Error if the disk refuses.
  void store(const std::string& key, const CompileResult& result) const;
  /// `find`, else compile and `store`, each function of a pipeline, the first that does not compile being the result.
  /// A disk that refuses to store costs a warning on stderr once, not the result.
  [[nodiscard]] CompileResult get(const Toolchain& toolchain, const CompileRequest& request) const;

  /// The entries in the order of their keys, found by their names and how they begin: neither other files nor symbolic
  /// links. None if the folder is missing; throws Error if it cannot be read.
  [[nodiscard]] std::vector<CubinCacheEntry> entries() const;
  /// Removes an entry while others use the cache: a reader that has it open reads it to its end, and folders stay, as a
  /// writer may be about to use them. False if it is already gone; throws Error if it cannot be removed.
  [[nodiscard]] bool remove(const CubinCacheEntry& entry) const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  [[nodiscard]] CompileResult get_one(const Toolchain& toolchain, const CompileRequest& request) const;

  std::filesystem::path folder_;
};

}  // namespace pascaline
