#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline {

// Files never choose code or paths. Databases, plans, fleets, bundles, policies and models may come from anyone, so
// kernels, libraries, caches, logs and hosts come from the command line and the environment only. Whatever a file says
// that becomes an option, a file's name or a host passes a check of this header; what becomes C++, a compiler's option
// or a kernel's file passes one of core/space/code_words.hpp. Each gives what is wrong, to be read after the text in
// question, or nothing.

/// Options with their values; a value is empty for one that takes none.
using OptionWords = std::vector<std::pair<std::string, std::string>>;

/// Of an option of `pascaline sweep`: only those that say how to search and to measure, with values that can be no
/// path.
[[nodiscard]] std::optional<std::string> why_no_file_option(std::string_view option, std::string_view value);

/// Of a hash, or the id of a fleet: hexadecimal digits, no more than a hash has.
[[nodiscard]] std::optional<std::string> why_no_hash(std::string_view text);

/// Of a file that another one names: one in the same folder, and not a hidden one.
[[nodiscard]] std::optional<std::string> why_no_neighbour(std::string_view name);

/// Of a host for ssh, as `user@host`: no option, and nothing that a shell or a terminal takes for a command.
[[nodiscard]] std::optional<std::string> why_no_host(std::string_view name);

/// Options that a file gave. None is among them that `why_no_file_option` refuses: whoever rebuilds a command line from
/// a file takes this.
class FileOptions {
 public:
  /// Throws Error naming the first option that a file must not give.
  explicit FileOptions(OptionWords words);
  [[nodiscard]] const OptionWords& words() const noexcept { return words_; }

 private:
  OptionWords words_;
};

}  // namespace pascaline
