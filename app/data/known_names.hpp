#pragma once

#include <string>

#include "db/store.hpp"

namespace pascaline {

/// Throws Error if the database has something, but nothing of a kernel of that name; empty: of any.
void require_known_kernel(const Store& store, const std::string& kernel);
/// The same of a device's whole name.
void require_known_device(const Store& store, const std::string& device);

/// Throws UsageError if there is a problem's settings, but no kernel that they are of.
void require_kernel_of(const std::string& settings, const std::string& kernel);
/// Text of the kernel's stored problem that has the settings of a text such as "M=512,N=2048", in any order and as many
/// of them as tell it from the others; empty if they are. Throws Error with what there is if no problem has them, or
/// several.
[[nodiscard]] std::string stored_problem(const Store& store, const std::string& kernel, const std::string& settings);

}  // namespace pascaline
