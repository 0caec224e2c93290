#include "cli/output_folder.hpp"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "core/error.hpp"

namespace pascaline::cli {

void make_output_folder(const std::filesystem::path& folder, const std::string& way_out) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (!fault && !std::filesystem::is_directory(folder, fault) && !fault) {
    fault = std::make_error_code(std::errc::not_a_directory);
  }
  if (fault) {
    throw Error(fmt::format("cannot make the folder {}: {}; {}", folder.string(), fault.message(), way_out),
                fault.value());
  }
}

// The library's text is "filesystem error: cannot copy file: No such file or directory [a] [b]".
std::string plain_text(const std::filesystem::filesystem_error& error) {
  constexpr std::string_view kPrefix = "filesystem error: ";
  std::string action = error.what();
  if (action.starts_with(kPrefix)) {
    action.erase(0, kPrefix.size());
  }
  const std::string reason = error.code().message();
  const std::size_t end = action.find(": " + reason);
  if (end == std::string::npos) {
    return action;
  }
  action.resize(end);
  if (!error.path1().empty()) {
    action += " " + error.path1().string();
  }
  if (!error.path2().empty()) {
    action += " to " + error.path2().string();
  }
  return fmt::format("{}: {}", action, reason);
}

}  // namespace pascaline::cli
