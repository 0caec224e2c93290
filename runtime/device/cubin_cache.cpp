#include "runtime/device/cubin_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/descriptor.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/hash.hpp"
#include "core/util/ownership.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// An entry is this line, the hash of all that follows it, and the fields, each with its length.
constexpr std::string_view kMagic = "pascaline binary 2\n";
constexpr std::string_view kMagicOfEveryVersion = "pascaline binary ";
constexpr std::size_t kHashDigits = 32;
constexpr const char* kParsedHeaders = "parsed_headers";
constexpr std::string_view kHeadersKind = "parsed headers";

constexpr std::array<int Resources::*, 8> kResourceMembers{
    &Resources::registers,   &Resources::static_shared_bytes, &Resources::constant_bytes, &Resources::local_bytes,
    &Resources::local_loads, &Resources::local_stores,        &Resources::instructions,   &Resources::ffma};

// Letters, digits and underscores, as in "sm_61"; a damaged name could be anything.
bool is_target_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

class Writer {
 public:
  void number(std::int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes_ += value;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what Writer wrote; past the end everything is empty and `good` is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::int64_t number() {
    std::int64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
    return value;
  }
  std::string text() {
    const std::int64_t size = number();
    return std::string(take(size < 0 ? rest_.size() + 1 : static_cast<std::size_t>(size)));
  }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

std::string encode(const CompileResult& result) {
  Writer writer;
  writer.number(result.ok ? 1 : 0);
  writer.text(result.reason);
  writer.text(result.log);
  const Binary& binary = result.binary;
  writer.number(static_cast<std::int64_t>(binary.kind));
  writer.text(binary.target);
  writer.text(binary.function);
  writer.text(binary.code);
  writer.text(binary.log);
  writer.number(binary.max_registers);
  writer.text(binary.translated);
  for (const auto member : kResourceMembers) {
    writer.number(binary.resources.*member);
  }
  return std::string(kMagic) + hash_hex(writer.bytes()) + writer.bytes();
}

// Reads the fields that say what the entry is, and returns the number of the binary's kind.
std::int64_t read_first_fields(Reader& reader, CompileResult& result) {
  result.ok = reader.number() != 0;
  result.reason = reader.text();
  result.log = reader.text();
  const std::int64_t kind = reader.number();
  result.binary.kind = static_cast<BinaryKind>(kind);
  result.binary.target = reader.text();
  return kind;
}

bool is_known_kind(std::int64_t kind) {
  return kind >= 0 && kind <= static_cast<std::int64_t>(BinaryKind::host_object);
}

std::optional<CompileResult> decode(std::string_view entry) {
  if (!entry.starts_with(kMagic) || entry.size() < kMagic.size() + kHashDigits) {
    return std::nullopt;
  }
  const std::string_view hash = entry.substr(kMagic.size(), kHashDigits);
  const std::string_view fields = entry.substr(kMagic.size() + kHashDigits);
  if (hash != hash_hex(fields)) {
    return std::nullopt;
  }
  Reader reader(fields);
  CompileResult result;
  const std::int64_t kind = read_first_fields(reader, result);
  Binary& binary = result.binary;
  binary.function = reader.text();
  binary.code = reader.text();
  binary.log = reader.text();
  binary.max_registers = static_cast<int>(reader.number());
  binary.translated = reader.text();
  for (const auto member : kResourceMembers) {
    binary.resources.*member = static_cast<int>(reader.number());
  }
  binary.from_cache = true;
  return reader.good() && reader.at_end() && is_known_kind(kind) ? std::optional(std::move(result)) : std::nullopt;
}

// Sets kind and target from the first bytes of a file.
void describe_entry(CubinCacheEntry& entry, std::string_view start) {
  entry.kind = "unreadable";
  constexpr std::size_t kBeforeFields = kMagic.size() + kHashDigits;
  if (!start.starts_with(kMagic) || start.size() < kBeforeFields + sizeof(std::int64_t)) {
    return;
  }
  Reader reader(start.substr(kBeforeFields));
  CompileResult result;
  const std::int64_t kind = read_first_fields(reader, result);
  if (!result.ok) {
    entry.kind = "failed compilation";
  } else if (const std::string& target = result.binary.target;
             reader.good() && is_known_kind(kind) && is_target_name(target)) {
    constexpr std::array kNames{"cubin", "ptx", "shared object"};
    entry.kind = kNames.at(static_cast<std::size_t>(kind));
    entry.target = target;
  }
}

// Folders of at most a few hundred entries keep file systems quick.
fs::path entry_file(const fs::path& folder, const std::string& key) {
  const bool plain = key.size() > 2 && std::all_of(key.begin(), key.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0;
                     });
  if (!plain) {
    throw Error(fmt::format("'{}' is not a key of the kernel cache; keys consist of digits and letters", key));
  }
  return folder / key.substr(0, 2) / key.substr(2);
}

// Names in the folder that consist of so many hexadecimal digits, sorted; none if the folder is missing.
std::vector<std::string> digit_names(const fs::path& folder, std::size_t digits) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.size() == digits && name.find_first_not_of("0123456789abcdef") == std::string::npos) {
      names.push_back(std::move(name));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(fmt::format("cannot list the folder {} of the kernel cache: {}", folder.string(), error.message()),
                error.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Opens a regular file; holds nothing for any other one.
Descriptor open_entry(const fs::path& file, struct ::stat& status) {
  Descriptor entry(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const bool regular = entry.get() >= 0 && ::fstat(entry.get(), &status) == 0 && S_ISREG(status.st_mode);
  return regular ? std::move(entry) : Descriptor();
}

// For the user only, whatever the umask: code is loaded from it. The folders that it is in are as the umask has them.
void make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) {
    fs::create_directories(folder.parent_path(), error);
  }
  const bool made = !error && ::mkdir(folder.c_str(), 0700) == 0;
  const int code = error ? error.value() : made ? 0 : errno;
  if (made ? ::chmod(folder.c_str(), 0700) != 0 : code != EEXIST || !fs::is_directory(folder, error)) {
    const int reason = made ? errno : code;
    throw Error(fmt::format("cannot create the folder {} of the kernel cache: {}; set PASCALINE_CACHE_DIR to one that "
                            "can be written",
                            folder.string(), std::strerror(reason)),
                reason);
  }
}

// Code of others is not loaded, nor is anything put where they could exchange it. What is not there is nobody's.
void require_own(const fs::path& path, const struct ::stat& status) {
  if (const std::string foreign = why_foreign(status); !foreign.empty()) {
    throw Error(
        fmt::format("cannot use {} of the kernel cache: code is loaded from there, but {}; remove it, or set "
                    "PASCALINE_CACHE_DIR to a folder that only you can write",
                    path.string(), foreign));
  }
}

void require_own_folder(const fs::path& folder) {
  struct ::stat status {};
  if (::stat(folder.c_str(), &status) == 0) {
    require_own(folder, status);
  }
}

void set_size_and_use(CubinCacheEntry& entry, const struct ::stat& status) {
  entry.bytes = static_cast<std::uint64_t>(status.st_size);
  entry.used_unix_ms = status.st_mtim.tv_sec * std::int64_t{1000} + status.st_mtim.tv_nsec / 1'000'000;
}

void append_parsed_headers(std::vector<CubinCacheEntry>& found, const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder / kParsedHeaders, error), end; !error && file != end;
       file.increment(error)) {
    struct ::stat status {};
    if (file->path().extension() == ".gch" && ::lstat(file->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      CubinCacheEntry& entry = found.emplace_back();
      entry.key = file->path().lexically_relative(folder).string();
      entry.kind = kHeadersKind;
      entry.target = kStoredEmulatorName;
      set_size_and_use(entry, status);
    }
  }
}

// Nowhere if that cannot be: storing the kernel will say why.
fs::path parsed_headers_in(const fs::path& folder) {
  try {
    for (const fs::path& made : {folder, folder / kParsedHeaders}) {
      make_folder(made);
      require_own_folder(made);
    }
    return folder / kParsedHeaders;
  } catch (const Error&) {
    return {};
  }
}

void warn_once(const Error& error) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    fmt::print(stderr, "pascaline: compiled kernels are not cached: {}\n", error.what());
  }
}

// Adds the next function of a pipeline; one that did not compile is the result of all.
void add_function(std::optional<CompileResult>& all, CompileResult next) {
  if (!all || !next.ok) {
    all = std::move(next);
    return;
  }
  all->binary.compile_ms += next.binary.compile_ms;
  all->binary.from_cache = all->binary.from_cache && next.binary.from_cache;
  all->binary.then.push_back(std::move(next.binary));
}

}  // namespace

CubinCache::CubinCache(fs::path folder) : folder_(std::move(folder)) {
  folder_ = folder_.has_filename() ? folder_ : folder_.parent_path();  // "a/" is "a"
  require_own_folder(folder_);
  remove_abandoned(folder_);
}

std::optional<CompileResult> CubinCache::find(const std::string& key) const {
  const fs::path file = entry_file(folder_, key);
  struct ::stat status {};
  const Descriptor entry = open_entry(file, status);
  if (entry.get() < 0) {
    return std::nullopt;
  }
  for (const fs::path& folder : {folder_, file.parent_path()}) {
    require_own_folder(folder);
  }
  require_own(file, status);
  std::string bytes;
  try {
    bytes = read_file(entry, file);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::optional<CompileResult> result = decode(bytes);
  if (!result) {
    std::error_code ignored;
    fs::remove(file, ignored);
  } else {
    ::futimens(entry.get(), nullptr);  // the time of the last use; without it the entry only looks older
  }
  return result;
}

void CubinCache::store(const std::string& key, const CompileResult& result) const {
  const fs::path file = entry_file(folder_, key);
  for (const fs::path& folder : {folder_, file.parent_path()}) {
    make_folder(folder);
    require_own_folder(folder);
  }
  // In the cache's own folder, where drafts of killed workers are looked for.
  const DraftFolder draft(folder_ / "entry");
  const fs::path entry = draft.path() / "entry";
  write_file_atomically(entry, encode(result), 0600);
  if (std::rename(entry.c_str(), file.c_str()) != 0) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)), errno);
  }
}

CompileResult CubinCache::get(const Toolchain& toolchain, const CompileRequest& request) const {
  std::optional<CompileResult> all;
  for (const CompileRequest& function : requests_of_functions(request)) {
    add_function(all, get_one(toolchain, function));
    if (!all->ok) {
      break;
    }
  }
  return std::move(*all);
}

std::optional<CompileResult> CubinCache::find(std::span<const std::string> keys) const {
  std::optional<CompileResult> all;
  for (const std::string& key : keys) {
    std::optional<CompileResult> function = find(key);
    if (!function) {
      return std::nullopt;
    }
    add_function(all, std::move(*function));
    if (!all->ok) {
      break;
    }
  }
  return all;
}

CompileResult CubinCache::get_one(const Toolchain& toolchain, const CompileRequest& request) const {
  const std::string key = toolchain.cache_key(request);
  if (std::optional<CompileResult> found = find(key)) {
    return std::move(*found);
  }
  CompileRequest compiled = request;
  compiled.parsed_headers = parsed_headers_in(folder_);
  CompileResult result = toolchain.compile(compiled);
  if (result.crashed) {
    return result;
  }
  try {
    store(key, result);
  } catch (const Error& error) {
    warn_once(error);
  }
  return result;
}

std::vector<CubinCacheEntry> CubinCache::entries() const {
  constexpr std::size_t kFirstDigits = 2;
  std::vector<CubinCacheEntry> found;
  for (const std::string& first : digit_names(folder_, kFirstDigits)) {
    std::error_code gone;
    if (!fs::is_directory(fs::symlink_status(folder_ / first, gone))) {
      continue;
    }
    for (const std::string& rest : digit_names(folder_ / first, kHashDigits - kFirstDigits)) {
      struct ::stat status {};
      const Descriptor file = open_entry(folder_ / first / rest, status);
      std::array<char, 512> start{};
      const ssize_t count = ::pread(file.get(), start.data(), start.size(), 0);
      const std::string_view bytes(start.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
      if (!bytes.starts_with(kMagicOfEveryVersion)) {
        continue;
      }
      CubinCacheEntry& entry = found.emplace_back();
      entry.key = first + rest;
      set_size_and_use(entry, status);
      describe_entry(entry, bytes);
    }
  }
  append_parsed_headers(found, folder_);
  return found;
}

bool CubinCache::remove(const CubinCacheEntry& entry) const {
  const fs::path file = entry.kind == kHeadersKind ? folder_ / entry.key : entry_file(folder_, entry.key);
  const Descriptor folder(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() >= 0 && ::unlinkat(folder.get(), file.filename().c_str(), 0) == 0) {
    return true;
  }
  if (errno == ENOENT) {
    return false;
  }
  throw Error(fmt::format("cannot remove {}: {}", file.string(), std::strerror(errno)), errno);
}

}  // namespace pascaline
