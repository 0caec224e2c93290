#pragma once

#include <filesystem>
#include <memory>

#include "db/connection.hpp"
#include "db/store.hpp"

namespace pascaline {

/// Opens, checks and prepares the database as `Store`'s constructor promises; throws StoreError.
[[nodiscard]] std::unique_ptr<Connection> open_database(const std::filesystem::path& file, OpenMode mode,
                                                        Durability durability);
/// As `Store::scratch_copy` promises; throws StoreError.
[[nodiscard]] std::unique_ptr<Connection> open_scratch_copy(const std::filesystem::path& file);

}  // namespace pascaline
