#include "db/process_identity.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

namespace pascaline {
namespace {

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, id);
  return id;
}

// Field 22 of /proc/PID/stat (proc(5)); nothing for a process that is gone or a zombie. The second field is the
// program's name in parentheses and may hold anything, so fields are counted from the last parenthesis.
std::optional<std::int64_t> start_of(std::int64_t process_id) {
  std::string line;
  if (!std::getline(std::ifstream(fmt::format("/proc/{}/stat", process_id)) >> std::ws, line)) {
    return std::nullopt;
  }
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(line.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") {
    return std::nullopt;
  }
  std::string skipped;
  for (int field = 4; field < 22; ++field) {
    fields >> skipped;
  }
  std::int64_t start = 0;
  return fields >> start ? std::optional(start) : std::nullopt;
}

}  // namespace

ProcessIdentity this_process() {
  const std::int64_t self = ::getpid();
  return {self, start_of(self).value_or(0), boot_id()};
}

bool is_alive(const ProcessIdentity& process) {
  return process.boot_id == boot_id() && start_of(process.process_id) == process.start;
}

}  // namespace pascaline
