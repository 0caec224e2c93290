#pragma once

#include <cstdint>
#include <string>

namespace pascaline {

/// A process as other processes can recognise it: its id may come again, after a reboot or before, but not with
/// the same start in the same boot.
struct ProcessIdentity {
  std::int64_t process_id = 0;
  std::int64_t start = 0;  ///< clock ticks after boot
  std::string boot_id;
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

[[nodiscard]] ProcessIdentity this_process();

/// Whether that process still runs on this machine (a zombie does not).
[[nodiscard]] bool is_alive(const ProcessIdentity& process);

}  // namespace pascaline
