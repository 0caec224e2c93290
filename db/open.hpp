#pragma once

#include <filesystem>
#include <memory>

#include "db/connection.hpp"
#include "db/store.hpp"

namespace pascaline {

/// Opens, checks and prepares the database as `Store`'s constructor promises; throws StoreError.
[[nodiscard]] std::unique_ptr<Connection> open_database(const std::filesystem::path& file, OpenMode mode,
                                                        Durability durability);
/// Whether another process has the database open, as far as locks tell; true where that cannot be told. Not to be asked
/// while this process has it open: its own locks end then.
[[nodiscard]] bool is_open_elsewhere(const std::filesystem::path& file);
/// As `Store::scratch_copy` promises; throws StoreError.
[[nodiscard]] std::unique_ptr<Connection> open_scratch_copy(const std::filesystem::path& file);

}  // namespace pascaline
