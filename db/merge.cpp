#include "db/merge.hpp"

#include <fmt/format.h>

#include <exception>
#include <system_error>

#include "core/error.hpp"
#include "db/open.hpp"
#include "db/stored_probe.hpp"

namespace pascaline {
namespace {

bool holds_something(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::file_size(file, error) == 0 && !error) {
    return false;
  }
  try {
    const Store store(file, OpenMode::read_only);
    return !store.sessions().empty() || !store.probes(nullptr).empty();
  } catch (const Error&) {
    return true;  // what cannot be read may be another's
  }
}

}  // namespace

void require_another_file(const std::filesystem::path& other, const std::filesystem::path& mine) {
  std::error_code unseen;  // what cannot be compared cannot be opened, either
  if (std::filesystem::equivalent(other, mine, unseen)) {
    throw StoreError(fmt::format("{}: cannot merge the database into itself; give another file", other.string()));
  }
}

void check_mergeable(const std::filesystem::path& other, const std::filesystem::path& mine) {
  require_another_file(other, mine);
  const Store opened(other, OpenMode::read_only);
}

std::vector<MergeCounts> merge_databases(std::span<const std::filesystem::path> files, Store& mine,
                                         const std::function<void(const std::filesystem::path&)>& on_file) {
  return mine.merge(files, on_file);
}

MergeCounts merge_database(const std::filesystem::path& other, Store& mine) {
  return merge_databases({&other, 1}, mine).front();
}

void remove_if_unused(const std::filesystem::path& file) noexcept {
  try {
    std::error_code kept;
    if (!std::filesystem::exists(file, kept) || kept || holds_something(file) || is_open_elsewhere(file)) {
      return;
    }
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(file.string() + end, kept);
    }
  } catch (const std::exception&) {
    return;  // it is kept, which is no harm
  }
}

}  // namespace pascaline
