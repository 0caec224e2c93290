#pragma once

#include <cstdint>

#include "core/device/probe.hpp"
#include "db/store.hpp"

namespace pascaline {

/// A stored probe with the rows it hangs on.
struct StoredProbe {
  std::int64_t id = 0;
  Probe probe;
  DeviceRow device;
  ToolkitRow toolkit;
};

}  // namespace pascaline
