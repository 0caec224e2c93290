#include "db/merge.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/error.hpp"

namespace pascaline {

Store open_to_merge(const std::filesystem::path& other, const std::filesystem::path& mine) {
  std::error_code unseen;  // what cannot be compared cannot be opened, either
  if (std::filesystem::equivalent(other, mine, unseen)) {
    throw StoreError(fmt::format("{}: cannot merge the database into itself; give another file", other.string()));
  }
  return {other, OpenMode::read_only};
}

MergeCounts merge_database(const std::filesystem::path& other, Store& mine) {
  Store source = open_to_merge(other, mine.file());
  return mine.merge(source);
}

}  // namespace pascaline
