#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"

namespace pascaline::testing {

/// A kernel of one parameter, X = 0 to 4, whose model section is `model`; BLOCKS blocks of 128 threads.
inline nlohmann::json modelled_space(const nlohmann::json& model) {
  nlohmann::json space = nlohmann::json::parse(R"json({
    "schema": 1,
    "kernel": "modelled",
    "dimensions": [{"name": "BLOCKS", "example": 400}],
    "types": [],
    "parameters": [{"name": "X", "values": [0, 1, 2, 3, 4], "default": 0}],
    "launch": {"function": "modelled", "block": [128], "grid": ["BLOCKS"]},
    "arguments": [{"name": "y", "buffer": "float32", "access": "out", "extent": "BLOCKS"}],
    "reference": {"default": true},
    "tolerance": {"float32": 1e-6},
    "work": {"flops": "BLOCKS * 100000", "bytes": "BLOCKS * 4000"}
  })json");
  if (!model.is_null()) {
    space["model"] = model;
  }
  return space;
}

inline DeviceRates sm_61_rates(std::int64_t sm_count = 20) {
  DeviceLimits limits = limits_of_architecture("sm_61").value();
  limits.sm_count = sm_count;
  return typical_rates("sm_61", limits).value();
}

}  // namespace pascaline::testing
