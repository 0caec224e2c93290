#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/draft_folder.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

/// A kernel's headers in a folder of their own, for one compilation. So a compiler finds each where the including file
/// says, however that says it, and nothing that the source's hash does not cover.
class SourceFolder {
 public:
  using Rewrite = std::function<std::string(const std::string&)>;

  /// Writes each header, rewritten, with its name behind `named_in` in messages. Throws Error if the disk refuses.
  SourceFolder(const KernelSource& source, const std::filesystem::path& named_in, const Rewrite& rewrite);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return folder_.path(); }
  /// The kernel's folder in it. Above is room for the headers that are reached through `../`.
  [[nodiscard]] const std::filesystem::path& home() const noexcept { return home_; }
  /// The folders to search for the kernel's headers: its own, and the further ones of the source.
  [[nodiscard]] std::vector<std::filesystem::path> searched() const;
  /// A folder to be searched first, for `hide`.
  [[nodiscard]] std::filesystem::path hiding() const { return path() / "hiding"; }
  /// Puts there, before each header of the system that the source names, one that includes it without the macros: in it
  /// `size` is what it always is, whatever a kernel's parameters are called. Only before headers that are in one of the
  /// folders searched later, as a source may ask whether one is.
  void hide(const std::vector<std::string>& macros, const KernelSource& source,
            const std::vector<std::filesystem::path>& searched_later) const;

 private:
  DraftFolder folder_;
  std::filesystem::path home_;
  std::vector<std::string> further_;
};

/// Folder with the headers of CUDA that NVRTC and the emulated device have alike.
[[nodiscard]] std::filesystem::path shared_headers();

/// Whether a header of that name is one of CUDA's or of its libraries.
[[nodiscard]] bool is_cuda_header(std::string_view header);

/// Messages of a compiler with the names of a folder's files alone.
[[nodiscard]] std::string without_folder(std::string log, const std::filesystem::path& folder);

/// `#line 1 "file"` with its line end.
[[nodiscard]] std::string line_directive(const std::filesystem::path& file);

/// The macros of a request as `NAME=value`: its defines and those of its options.
[[nodiscard]] std::vector<std::string> macros_of(const CompileRequest& request);
/// The NAME of `NAME=value`.
[[nodiscard]] std::string macro_name(const std::string& macro);
/// Whether an option defines a macro, which `macros_of` tells.
[[nodiscard]] bool is_macro_option(const std::string& option);

/// Lines that define macros, and that end their definition.
[[nodiscard]] std::string define_lines(const std::vector<std::string>& macros);
[[nodiscard]] std::string undefine_lines(const std::vector<std::string>& macros);

/// Hash of the names and texts of the files in a folder and below it; of none if it is not there.
[[nodiscard]] std::string folder_hash(const std::filesystem::path& folder);

}  // namespace pascaline
