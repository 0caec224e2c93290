#include "model/session/foreign_database.hpp"

#include <fmt/format.h>

#include <set>

#include "db/store.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

std::string device_text(const DeviceRow& device) {
  return device.compute_capability.empty() ? fmt::format("{} '{}'", device.kind, device.name)
                                           : fmt::format("{} (compute capability {}, {} SMs)", device.name,
                                                         device.compute_capability, device.sm_count);
}

}  // namespace

std::string reason_database_is_foreign(const std::filesystem::path& database, const DeviceInfo& device) {
  const DeviceRow own = device_row(device);
  const Store store(database, OpenMode::read_only);
  if (!store.winners({}, &own).empty()) {
    return {};
  }
  std::set<std::string> others;
  for (const Winner& winner : store.winners({}, nullptr)) {
    others.insert(device_text(winner.device));
  }
  if (others.empty()) {
    return {};
  }
  return fmt::format(
      "{} was tuned on {}, and has nothing for {}, {}: tune on this device with `pascaline sweep --db {}`, or run with "
      "--untuned",
      database.string(), fmt::join(others, ", "), device.id, device_text(own), database.string());
}

}  // namespace pascaline
