#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {

/// The headers that every unit for the emulated device begins with (pascaline/unit.h), precompiled by GCC: parsing them
/// takes longer than compiling most kernels. There is one file for each set of options. An empty file says that GCC
/// could not make or use it, and has GCC read the headers.
class ParsedHeaders {
 public:
  /// Looks below `kept_in`, which only the user can write, for commands that begin with `command`: the compiler and its
  /// options, without the folders of one compilation. An empty `kept_in`, or Clang, disables this.
  ParsedHeaders(const std::filesystem::path& kept_in, const HostCompiler& compiler,
                const std::vector<std::string>& command);

  /// The folder to search first; empty if none are used.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  /// Makes them of `header`, unless they are there, by a command that `run` runs; it returns whether that succeeded.
  /// Nothing is made where it throws an Error. Those of other versions of the headers are removed.
  void make(const std::filesystem::path& header, const std::function<bool(const std::vector<std::string>&)>& run) const;
  /// Empties the file if GCC, which failed and printed this, blames it; returns true then.
  [[nodiscard]] bool given_up_after(const std::string& log) const;

 private:
  [[nodiscard]] bool found() const;

  std::filesystem::path folder_;  // empty: none are used
  std::vector<std::string> command_;
};

}  // namespace pascaline
