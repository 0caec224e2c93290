#include "db/open.hpp"

#include <SQLiteCpp/Backup.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "db/file_system.hpp"
#include "db/known_schema.hpp"
#include "db/migrations.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBusyTimeout{30};
// A connection belongs to one thread at a time (db/connection.hpp); SQLite would lock it for every value.
constexpr int kOneThread = SQLITE_OPEN_NOMUTEX;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

[[noreturn]] void refuse(const fs::path& file, std::string_view why, int code = 0) {
  throw_store_error(fmt::format("{}: cannot open the database: {}", file.string(), why), code);
}

// SQLite's file header (https://www.sqlite.org/fileformat.html, 1.3) as far as it says whose file this is.
struct Header {
  bool empty = true;
  bool sqlite = false;
  std::uint32_t application_id = 0;
  std::uint32_t version = 0;
};

std::uint32_t big_endian(const std::array<char, 100>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

Header read_header(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    refuse(file, "it cannot be read; change its permissions", SQLITE_PERM);
  }
  std::array<char, 100> bytes{};
  stream.read(bytes.data(), bytes.size());
  Header header;
  header.empty = stream.gcount() == 0;
  header.sqlite = stream.gcount() == static_cast<std::streamsize>(bytes.size()) &&
                  std::string_view(bytes.data(), kMagic.size()) == kMagic;
  header.version = big_endian(bytes, 60);
  header.application_id = big_endian(bytes, 68);
  return header;
}

// Opening a pipe waits for somebody who writes into it, perhaps for ever.
void refuse_special(const fs::path& file, const fs::path& named, const fs::file_status& status) {
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    refuse(
        file,
        fmt::format("{} is a pipe, socket or device, not a regular file; give the path of a database", named.string()),
        SQLITE_CANTOPEN);
  }
}

// Whether a rollback journal ends as one does that names a super-journal (https://www.sqlite.org/fileformat.html, 3).
bool names_super_journal(const fs::path& journal) {
  constexpr std::string_view kTrailerMagic{"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8};
  std::ifstream stream(journal, std::ios::binary);
  std::array<char, kTrailerMagic.size()> end{};
  stream.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  stream.read(end.data(), end.size());
  return stream && std::string_view(end.data(), end.size()) == kTrailerMagic;
}

// SQLite rolls a journal back as it opens the database, and then removes the super-journal that it names, which can be
// any file. Only a transaction over several databases has one, and this program has none such.
void refuse_super_journal(const fs::path& file) {
  std::error_code error;
  const fs::path behind_links = fs::weakly_canonical(file, error);  // where SQLite looks for the journal
  for (const fs::path& database : {file, error ? file : behind_links}) {
    const fs::path journal = database.string() + "-journal";
    if (fs::is_regular_file(journal, error) && names_super_journal(journal)) {
      refuse(file, fmt::format("{} is a journal that names another file for SQLite to remove, which this program never "
                               "writes; remove that journal if you do not know where it comes from",
                               journal.string()));
    }
  }
}

// Locks of a network file system do not always hold among machines, and WAL needs memory that all writers share.
void refuse_network(const fs::path& file) {
  const char* const insisted = std::getenv("PASCALINE_NETWORK_DATABASE");
  if (insisted != nullptr && std::string_view(insisted) == "1") {
    return;
  }
  if (const auto network = network_file_system(file)) {
    refuse(file,
           fmt::format("it is on a network file system ({}), where SQLite's locks do not hold and a database that is "
                       "written to gets damaged; give the path of a local file and `pascaline merge` it into others "
                       "afterwards, spread a sweep with `pascaline fleet`, or set PASCALINE_NETWORK_DATABASE=1 if "
                       "nothing else ever opens this file",
                       *network),
           SQLITE_CANTOPEN);
  }
}

// Runs a check of what the file holds; the message of what it throws then names the file.
template <typename Check>
void refuse_unless(const fs::path& file, const Check& check) {
  try {
    check();
  } catch (const Error& fault) {
    refuse(file, fault.what());
  }
}

// A new database is written in rollback mode, first page first, before it turns to WAL. So a file that is not empty
// has the final application_id in its header whatever a WAL beside it holds, and reading 100 bytes, which touches
// nothing, is enough to refuse a stranger.
void check_before_opening(const fs::path& file, OpenMode mode) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) {
    refuse(file, "it is a folder; give the path of a file in it");
  }
  refuse_special(file, file, status);
  for (const char* end : {"-wal", "-shm", "-journal"}) {
    const fs::path beside = file.string() + end;
    refuse_special(file, beside, fs::status(beside, error));
  }
  refuse_super_journal(file);
  if (mode != OpenMode::read_only) {
    refuse_network(file);
  }
  if (!fs::exists(status)) {
    if (mode != OpenMode::create) {
      refuse(file, "there is no such file; give the path of a database, or run `pascaline sweep` to make one",
             SQLITE_CANTOPEN);
    }
    return;
  }
  const Header header = read_header(file);
  if (header.empty && mode == OpenMode::create) {
    return;
  }
  if (header.empty) {
    refuse(file, "the file is empty; give the path of a database, or run `pascaline sweep` to make one", SQLITE_NOTADB);
  }
  if (!header.sqlite) {
    refuse(file, "the file is not an SQLite database; give the path of another file", SQLITE_NOTADB);
  }
  if (header.application_id != kApplicationId) {
    refuse(
        file,
        fmt::format("it has the application id {:#010x} and version {} of a schema, so another program or an "
                    "unreleased version of this one made it, and it cannot be converted; give the path of a new file",
                    header.application_id, static_cast<std::int32_t>(header.version)),
        SQLITE_NOTADB);
  }
  refuse_unless(file, [&] { require_version(static_cast<std::int32_t>(header.version), current_schema()); });
}

bool has_log(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file.string() + "-wal", error);
  return !error && size > 0;
}

// `file:` URI with everything escaped that could end the path.
std::string immutable_uri(const fs::path& file) {
  std::string uri = "file:";
  for (const char c : fs::absolute(file).string()) {
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return uri + "?immutable=1";
}

// What SQLite takes for a path whatever it begins with: `file:` and `:memory:` mean something else there.
std::string plain_path(const fs::path& file) {
  return file.is_absolute() ? file.string() : (fs::path(".") / file).string();
}

int busy_timeout_ms() { return static_cast<int>(std::chrono::milliseconds(kBusyTimeout).count()); }

SQLite::Database connect_alone(const fs::path& file) {
  SQLite::Database alone(immutable_uri(file), kOneThread | SQLite::OPEN_READONLY | SQLite::OPEN_URI, busy_timeout_ms());
  distrust(alone);
  return alone;
}

SQLite::Database connect_to_read(const fs::path& file) {
  // Neither locks nor memory are shared with a machine that may write there: the file counts as it is.
  if (const auto network = network_file_system(file)) {
    if (has_log(file)) {
      refuse(file,
             fmt::format("it is on a network file system ({}) and its -wal file holds changes, which only the machine "
                         "that writes them can read; wait until that has closed it, or copy both files to a local disk",
                         *network),
             SQLITE_CANTOPEN);
    }
    return connect_alone(file);
  }
  SQLite::Database database(plain_path(file), kOneThread | SQLite::OPEN_READONLY, busy_timeout_ms());
  try {
    distrust(database);
    std::ignore = schema_version(database);
    return database;
  } catch (const SQLite::Exception& fault) {
    const bool needs_side_files = fault.getErrorCode() == SQLITE_CANTOPEN || fault.getErrorCode() == SQLITE_READONLY;
    if (!needs_side_files) {
      throw;
    }
  }
  // Readers of a WAL database need its side files. In a folder where they cannot be made nobody writes either,
  // and without a log the file alone is the whole database.
  if (has_log(file)) {
    refuse(file, "its -wal file holds changes and the folder is read-only; copy both files to a writable folder",
           SQLITE_READONLY);
  }
  return connect_alone(file);
}

SQLite::Database connect(const fs::path& file, OpenMode mode) {
  if (mode == OpenMode::read_only) {
    return connect_to_read(file);
  }
  if (mode == OpenMode::create && file.has_parent_path()) {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    if (error) {
      refuse(file, fmt::format("its folder cannot be made: {}", error.message()), SQLITE_CANTOPEN);
    }
  }
  const int create = mode == OpenMode::create ? SQLite::OPEN_CREATE : 0;
  SQLite::Database database(plain_path(file), kOneThread | SQLite::OPEN_READWRITE | create, busy_timeout_ms());
  distrust(database);
  if (sqlite3_db_readonly(database.getHandle(), "main") == 1) {
    refuse(file, "it cannot be written; make file and folder writable or give the path of another file",
           SQLITE_READONLY);
  }
  return database;
}

// Two processes that turn a new database to WAL can block each other in a way SQLite's busy handler gives up on
// at once, hence the retries.
void use_write_ahead_log(const fs::path& file, SQLite::Database& database) {
  const auto deadline = std::chrono::steady_clock::now() + kBusyTimeout;
  for (;;) {
    try {
      const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
      if (mode != "wal") {
        refuse(file,
               fmt::format("its file system offers journal mode '{}', and WAL is needed; use a local disk", mode));
      }
      return;
    } catch (const SQLite::Exception& fault) {
      if (fault.getErrorCode() != SQLITE_BUSY || std::chrono::steady_clock::now() > deadline) {
        throw;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Before anything else is read or written: even looking for damage evaluates what the schema says.
void check_schema(const fs::path& file, SQLite::Database& database) {
  refuse_unless(file, [&] { require_known_schema(database); });
}

void check_pages(const fs::path& file, SQLite::Database& database) {
  const std::string verdict = database.execAndGet("PRAGMA quick_check(1)").getString();
  if (verdict != "ok") {
    refuse(file, explain_sqlite(SQLITE_CORRUPT, verdict), SQLITE_CORRUPT);
  }
}

void prepare_to_write(const fs::path& file, SQLite::Database& database, Durability durability) {
  refuse_unless(file, [&] { prepare_schema(database, current_schema()); });
  use_write_ahead_log(file, database);
  // A trial reported as stored must survive a power cut. NORMAL keeps the file sound but may lose the last
  // transactions; FULL costs one more fsync a transaction, which is small beside compiling and timing a trial.
  database.exec(durability == Durability::full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  database.exec("PRAGMA foreign_keys = ON");
  // With the first reading SQLite takes the lock by which other processes see that the file is open.
  database.exec("SELECT count(*) FROM sessions");
}

// Removes a database that could not be made, as on a full disk: an empty file would only puzzle.
class Made {
 public:
  Made(const fs::path& file, OpenMode mode) : file_(file) {
    std::error_code error;
    made_ = mode == OpenMode::create && !fs::exists(fs::symlink_status(file, error));
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    std::error_code error;
    // Another process may be about to fill it.
    if (made_ && fs::file_size(file_, error) == 0 && !error && !is_open_elsewhere(file_)) {
      fs::remove(file_, error);
    }
  }

 private:
  const fs::path& file_;
  bool made_ = false;
};

}  // namespace

// SQLite locks these bytes of the file while it reads or writes, and in WAL mode for as long as it has the file open.
bool is_open_elsewhere(const fs::path& file) {
  constexpr off_t kFirstLockedByte = 0x40000000;
  constexpr off_t kLockedBytes = 512;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return true;  // nobody knows
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kFirstLockedByte;
  lock.l_len = kLockedBytes;
  const bool known = ::fcntl(descriptor, F_GETLK, &lock) == 0;
  ::close(descriptor);
  return !known || lock.l_type != F_UNLCK;
}

std::unique_ptr<Connection> open_database(const fs::path& file, OpenMode mode, Durability durability) {
  check_before_opening(file, mode);
  const Made made(file, mode);
  try {
    SQLite::Database database = connect(file, mode);
    // A file that is refused must stay as it was, so closing may not write the log into it yet.
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    check_schema(file, database);
    if (mode != OpenMode::read_only) {
      check_pages(file, database);
      prepare_to_write(file, database, durability);
    }
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
    return std::make_unique<Connection>(file, std::move(database));
  } catch (const SQLite::Exception& fault) {
    refuse(file, explain_sqlite(fault.getExtendedErrorCode(), fault.what()), fault.getExtendedErrorCode());
  }
}

std::unique_ptr<Connection> open_scratch_copy(const fs::path& file) {
  try {
    SQLite::Database copy(
        "", kOneThread | SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);  // SQLite makes and removes the file
    std::error_code error;
    if (fs::exists(file, error)) {
      check_before_opening(file, OpenMode::read_only);
      SQLite::Database original = connect_to_read(file);
      check_schema(file, original);
      SQLite::Backup(copy, original).executeStep();
    }
    distrust(copy);
    check_schema(file, copy);
    refuse_unless(file, [&] { prepare_schema(copy, current_schema()); });
    copy.exec("PRAGMA foreign_keys = ON");
    return std::make_unique<Connection>(file, std::move(copy));
  } catch (const SQLite::Exception& fault) {
    refuse(file, explain_sqlite(fault.getExtendedErrorCode(), fault.what()), fault.getExtendedErrorCode());
  }
}

}  // namespace pascaline
