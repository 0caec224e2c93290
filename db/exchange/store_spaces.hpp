#pragma once

#include <string>
#include <vector>

#include "db/exchange/recorded_space.hpp"
#include "db/store.hpp"

namespace pascaline {

/// What of a database is wanted; empty fields do not narrow.
struct SpaceFilter {
  std::string kernel{};
  std::string problem{};      ///< Problem::text()
  std::string device{};       ///< the device's name, whole
  bool with_samples = false;  ///< fill `samples_us`
};

/// The search-stage trials of a database, one space for each device, toolkit, kernel source and problem (and for each
/// set of parameters, should a kernel's space have got another), in the order of their first trials. Of several trials
/// of one configuration the `ok` one with the narrowest interval counts, else the last one. Throws StoreError.
[[nodiscard]] std::vector<RecordedSpace> recorded_spaces(const Store& store, const SpaceFilter& filter = {});

}  // namespace pascaline
