#include "runtime/device/cubin_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

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
constexpr std::size_t kHashDigits = 32;

constexpr std::array<int Resources::*, 8> kResourceMembers{
    &Resources::registers,   &Resources::static_shared_bytes, &Resources::constant_bytes, &Resources::local_bytes,
    &Resources::local_loads, &Resources::local_stores,        &Resources::instructions,   &Resources::ffma};

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
  result.ok = reader.number() != 0;
  result.reason = reader.text();
  result.log = reader.text();
  Binary& binary = result.binary;
  const std::int64_t kind = reader.number();
  binary.kind = static_cast<BinaryKind>(kind);
  binary.target = reader.text();
  binary.function = reader.text();
  binary.code = reader.text();
  binary.log = reader.text();
  binary.max_registers = static_cast<int>(reader.number());
  binary.translated = reader.text();
  for (const auto member : kResourceMembers) {
    binary.resources.*member = static_cast<int>(reader.number());
  }
  binary.from_cache = true;
  const bool known_kind = kind >= 0 && kind <= static_cast<std::int64_t>(BinaryKind::host_object);
  return reader.good() && reader.at_end() && known_kind ? std::optional(std::move(result)) : std::nullopt;
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

void warn_once(const Error& error) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    fmt::print(stderr, "pascaline: compiled kernels are not cached: {}\n", error.what());
  }
}

}  // namespace

CubinCache::CubinCache(fs::path folder) : folder_(std::move(folder)) {
  folder_ = folder_.has_filename() ? folder_ : folder_.parent_path();  // "a/" is "a"
  require_own_folder(folder_);
  remove_abandoned(folder_);
}

std::optional<CompileResult> CubinCache::find(const std::string& key) const {
  const fs::path file = entry_file(folder_, key);
  const Descriptor entry(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct ::stat status {};
  if (entry.get() < 0 || ::fstat(entry.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
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
  const std::string key = toolchain.cache_key(request);
  if (std::optional<CompileResult> found = find(key)) {
    return std::move(*found);
  }
  CompileResult result = toolchain.compile(request);
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

}  // namespace pascaline
