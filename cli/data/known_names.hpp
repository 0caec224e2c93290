#pragma once

#include <string>

#include "db/store.hpp"

namespace pascaline::cli {

/// Throws Error if the database has something, but nothing of a kernel of that name; empty: of any.
void require_known_kernel(const Store& store, const std::string& kernel);
/// The same of a device's whole name.
void require_known_device(const Store& store, const std::string& device);

}  // namespace pascaline::cli
