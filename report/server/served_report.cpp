#include "report/server/served_report.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/util/hash.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/html.hpp"

namespace pascaline {
namespace {

constexpr int kRestFactor = 4;  // rests so many times as long as making a report took

// What changes with every transaction: size and time of the database and of its write-ahead log.
std::string state_of_files(const std::filesystem::path& database) {
  std::string state;
  for (const char* end : {"", "-wal"}) {
    const std::filesystem::path file = database.string() + end;
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    const auto time = std::filesystem::last_write_time(file, none);
    state += none ? std::string("-;") : fmt::format("{} {};", size, time.time_since_epoch().count());
  }
  return state;
}

std::vector<std::int64_t> alive_sessions(const Store& store) {
  std::vector<std::int64_t> ids;
  for (const SessionRow& session : store.sessions()) {
    if (session.alive) {
      ids.push_back(session.id);
    }
  }
  return ids;
}

}  // namespace

ServedReport::ServedReport(std::filesystem::path database, ReportOptions options)
    : database_(std::move(database)), options_(std::move(options)) {
  options_.live = true;
}

std::shared_ptr<const ServedReport::Made> ServedReport::last() const {
  const std::lock_guard lock(taking_);
  return made_;
}

std::shared_ptr<const ServedReport::Made> ServedReport::get() {
  std::shared_ptr<const Made> before = last();
  std::unique_lock making(making_, std::try_to_lock);
  if (!making) {
    if (before) {
      return before;
    }
    making.lock();
    before = last();
  }
  const std::string state = state_of_files(database_);
  if (before && Clock::now() < not_before_) {
    return before;
  }
  if (before && state == state_ &&
      (alive_.empty() || alive_ == alive_sessions(Store(database_, OpenMode::read_only)))) {
    return before;
  }
  return make(state);
}

std::shared_ptr<const ServedReport::Made> ServedReport::make(const std::string& state) {
  const Clock::time_point start = Clock::now();
  const Store store(database_, OpenMode::read_only);
  std::vector<std::int64_t> alive = alive_sessions(store);
  nlohmann::ordered_json document = document_json(gather_report(store, options_));
  const auto made = std::make_shared<Made>();
  made->json = document.dump();
  made->page = html_report(document);
  document.erase("generated_unix_ms");
  FieldHash hash;
  hash.add(document.dump());
  made->tag = '"' + hash.hex() + '"';
  state_ = state;
  alive_ = std::move(alive);
  not_before_ = Clock::now() + kRestFactor * (Clock::now() - start);
  const std::lock_guard lock(taking_);
  made_ = made;
  return made;
}

}  // namespace pascaline
