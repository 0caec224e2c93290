#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

#include "core/util/hash.hpp"
#include "core/version.hpp"
#include "db/merge_rows.hpp"
#include "db/open.hpp"
#include "db/rows.hpp"
#include "db/store_impl.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMerging = "merge another database into it";
constexpr std::string_view kReading = "read what is to be merged";
constexpr std::uintmax_t kManyBytes = 64U << 20U;

// A file to merge, as it was at one moment, whatever is written to it meanwhile; nothing was found wrong with it.
struct Source {
  std::unique_ptr<Connection> connection;
  std::unique_ptr<SQLite::Transaction> moment;
};

std::unique_ptr<SQLite::Transaction> begin_reading(Connection& from) {
  return merge_reading(from, [&] { return std::make_unique<SQLite::Transaction>(from.database()); });
}

Source open_source(const fs::path& file, const fs::path& mine) {
  require_another_file(file, mine);
  Source source{open_database(file, OpenMode::read_only, Durability::full), nullptr};
  source.moment = begin_reading(*source.connection);
  check_merged_pages(*source.connection);
  check_merged_rows(*source.connection);
  return source;
}

// Looking for damage takes about as long as merging, so the next file is looked at meanwhile.
class Sources {
 public:
  Sources(std::span<const fs::path> files, const fs::path& mine) : files_(files), mine_(mine) { open_next(); }
  [[nodiscard]] Source next() {
    Source source = coming_.get();
    open_next();
    return source;
  }

 private:
  void open_next() {
    if (opened_ < files_.size()) {
      const auto policy = files_.size() > 1 ? std::launch::async : std::launch::deferred;
      coming_ = std::async(policy, open_source, files_[opened_++], mine_);
    }
  }
  std::span<const fs::path> files_;
  const fs::path& mine_;
  std::size_t opened_ = 0;
  std::future<Source> coming_;
};

std::string content_hash(Merge& merge) {
  FieldHash hash;
  Query row = merge_read(merge,
                         "SELECT uuid || ' ' || state || ' ' || spent_ms || ' ' || coalesce(finished_unix_ms, '') || "
                         "' ' || (SELECT count(*) FROM trials WHERE session_id = sessions.id) FROM sessions "
                         "ORDER BY uuid");
  while (merge_next(merge, row)) {
    hash.add(row.text());
  }
  Query probe = merge_read(merge, "SELECT uuid FROM probes ORDER BY uuid");
  while (merge_next(merge, probe)) {
    hash.add(probe.text());
  }
  return hash.hex();
}

void begin_import(Merge& merge) {
  merge.to
      .query(
          "INSERT INTO imports (kind, source, content_hash, imported_unix_ms, program_version) VALUES "
          "('merge', ?, ?, ?, ?)")
      .bind(merge.from.file().filename().string(), content_hash(merge), unix_ms_now(), std::string_view(kVersion))
      .run();
  merge.import_id = last_inserted(merge);
}

// One file of several, up to its decisions: they are made when the trials of all are there.
struct MergedFile {
  std::int64_t import_id = 0;
  MergeCounts counts;
  std::vector<MergedDecision> decisions;
};

MergedFile merge_rows(Connection& from, Connection& to, bool checked) {
  Merge merge{from, to, checked};
  begin_import(merge);
  merge_references(merge);
  merge_sessions(merge);
  merge_trials(merge);
  merge_telemetry(merge);
  merge_probes(merge);
  for (const std::int64_t session : merge.known_sessions) {
    (merge.grown_sessions.contains(session) ? merge.counts.sessions_grown : merge.counts.sessions_known) += 1;
  }
  std::vector<MergedDecision> decisions = read_decisions(merge);
  return {merge.import_id, merge.counts, std::move(decisions)};
}

MergedFile merge_file(Connection& from, Connection& to, bool checked) {
  try {
    return merge_rows(from, to, checked);
  } catch (const SQLite::Exception& fault) {
    if (fault.getErrorCode() == SQLITE_CONSTRAINT) {
      merge_damaged(from, fmt::format("a row does not fit {} ({})", to.file().string(), fault.what()));
    }
    throw;
  }
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code unknown;
  const std::uintmax_t size = fs::file_size(file, unknown);
  return unknown ? 0 : size;
}

// How the connection is set while it merges. References need no check here, as each is looked up. Where more comes than
// is there, the one index that rows are put all over is made when they are all there: it would be most of the work.
class MergeSettings {
 public:
  MergeSettings(Connection& to, std::span<const fs::path> files) : to_(to) {
    std::uintmax_t coming = 0;
    for (const fs::path& file : files) {
      coming += size_of(file);
    }
    bulk_ = coming >= kManyBytes && coming >= size_of(to.file());
    to_.database().exec("PRAGMA foreign_keys = OFF");
    if (bulk_) {
      cache_size_ = to_.database().execAndGet("PRAGMA cache_size").getInt64();
      to_.database().exec("PRAGMA cache_size = -262144; PRAGMA threads = 1");
    }
  }
  MergeSettings(const MergeSettings&) = delete;
  MergeSettings& operator=(const MergeSettings&) = delete;
  ~MergeSettings() {
    sqlite3* const handle = to_.database().getHandle();
    if (bulk_) {
      sqlite3_exec(handle, fmt::format("PRAGMA cache_size = {}; PRAGMA threads = 0", cache_size_).c_str(), nullptr,
                   nullptr, nullptr);
    }
    sqlite3_exec(handle, "PRAGMA foreign_keys = ON", nullptr, nullptr, nullptr);
  }

  void drop_index() {
    if (bulk_) {
      index_ = to_.database()
                   .execAndGet("SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = 'trials_by_measurement'")
                   .getString();
      to_.database().exec("DROP INDEX trials_by_measurement");
    }
  }
  void make_index() {
    if (bulk_) {
      to_.database().exec(index_);
    }
  }

 private:
  Connection& to_;
  bool bulk_ = false;
  std::int64_t cache_size_ = 0;
  std::string index_;
};

// Decides, now that the trials of all files are there. Nothing of a file that brought nothing is left, not even that it
// was read.
std::vector<MergeCounts> finish(Connection& to, std::vector<MergedFile>& merged) {
  std::vector<MergeCounts> counts;
  for (MergedFile& file : merged) {
    merge_decisions(to, file.decisions, file.counts);
    if (&file == &merged.back()) {
      settle_winners(to, file.counts);
    }
    if (!file.counts.changed()) {
      to.query("DELETE FROM imports WHERE id = ?").bind(file.import_id).run();
    }
    counts.push_back(file.counts);
  }
  return counts;
}

}  // namespace

Query merge_read(Merge& merge, const std::string& sql) {
  return merge.from.guard(kReading, [&] { return merge.from.query(sql); });
}

bool merge_next(Merge& merge, Query& row) {
  return merge.from.guard(kReading, [&] { return row.step(); });
}

void merge_damaged(Connection& from, std::string_view what) {
  from.fail(kReading, fmt::format("{}; the file was damaged or changed by another program: restore a copy", what),
            SQLITE_CORRUPT);
}

void merge_dangling(Connection& from, std::int64_t id, std::string_view table) {
  merge_damaged(from, fmt::format("a row refers to a missing one (row {} of table {})", id, table));
}

std::int64_t merged_id(const Merge& merge, const MergeIds& ids, std::int64_t id, std::string_view table) {
  const auto found = ids.find(id);
  if (found == ids.end()) {
    merge_dangling(merge.from, id, table);
  }
  return found->second;
}

std::int64_t last_inserted(Merge& merge) { return merge.to.database().getLastInsertRowid(); }

std::vector<MergeCounts> Store::merge(std::span<const fs::path> files,
                                      const std::function<void(const fs::path&)>& on_file) {
  Connection& to = *impl_->connection;
  Sources sources(files, to.file());
  return to.guard(kMerging, [&] {
    MergeSettings settings(to, files);
    SQLite::Transaction transaction(to.database(), SQLite::TransactionBehavior::IMMEDIATE);
    settings.drop_index();
    std::vector<MergedFile> merged;
    for (const fs::path& file : files) {
      if (on_file) {
        on_file(file);
      }
      merged.push_back(merge_file(*sources.next().connection, to, true));
    }
    settings.make_index();
    std::vector<MergeCounts> counts = finish(to, merged);
    if (std::any_of(counts.begin(), counts.end(), [](const MergeCounts& file) { return file.changed(); })) {
      transaction.commit();
    }
    return counts;
  });
}

MergeCounts Store::merge(Store& other) {
  Connection& to = *impl_->connection;
  Connection& from = *other.impl_->connection;
  return to.guard(kMerging, [&] {
    const auto moment = begin_reading(from);
    check_merged_rows(from);
    MergeSettings settings(to, {});
    SQLite::Transaction transaction(to.database(), SQLite::TransactionBehavior::IMMEDIATE);
    std::vector<MergedFile> merged;
    merged.push_back(merge_file(from, to, false));
    const MergeCounts counts = finish(to, merged).front();
    if (counts.changed()) {
      transaction.commit();
    }
    return counts;
  });
}

}  // namespace pascaline
