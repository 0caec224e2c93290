#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// The line that tells a compile worker a source, before the first request that uses it.
[[nodiscard]] std::string source_message(const KernelSource& source);
/// The line that asks for a compilation of a source already told.
[[nodiscard]] std::string request_message(std::uint64_t id, const CompileRequest& request);

/// A binary as bytes, for a reply that must carry it because the cache could not keep it; and back.
[[nodiscard]] std::vector<std::uint8_t> packed(const Binary& binary);
[[nodiscard]] Binary unpacked(const std::vector<std::uint8_t>& bytes);

}  // namespace pascaline
