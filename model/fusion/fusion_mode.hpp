#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "db/store.hpp"

namespace pascaline {

/// Which operations of a model run as one launch on a device.
enum class Fusion : std::uint8_t {
  automatic,  ///< those that a plan says: measured, or estimated
  off,        ///< none but what a product does with its result: bias, activation, residual, rounding
};

/// A plan that somebody wrote down: which alternative computes which site.
struct FusionFile {
  struct Entry {
    Problem site;
    std::string alternative;
  };
  std::string name;  ///< of the file, for messages; empty: there is no file
  DeviceRow device;  ///< that it was made for
  std::vector<Entry> sites;
};

}  // namespace pascaline
