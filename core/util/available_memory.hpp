#pragma once

#include <cstdint>
#include <filesystem>

namespace pascaline {

/// Bytes that this process can still take without swapping: what the machine has free or would get back from caches of
/// files, or what is left of the limits of the process's control groups (as containers have them) or of its address
/// space (`ulimit -v`), whichever is the least. A limit that cannot be read does not count. `root` is where /proc and
/// /sys are.
[[nodiscard]] std::uint64_t available_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace pascaline
