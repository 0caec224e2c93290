#include "runtime/device/emulator/parsed_headers.hpp"

#include <sys/stat.h>

#include <system_error>

#include "core/error.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/file_draft.hpp"
#include "core/util/hash.hpp"
#include "core/util/ownership.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

fs::path file_in(const fs::path& folder) { return folder / "pascaline" / "unit.h.gch"; }

std::string hash_of(const HostCompiler& compiler, const std::vector<std::string>& command) {
  FieldHash hash;
  hash.add(compiler.version);
  for (const std::string& word : command) {
    hash.add(word);
  }
  return hash.hex();
}

}  // namespace

ParsedHeaders::ParsedHeaders(const fs::path& kept_in, const HostCompiler& compiler,
                             const std::vector<std::string>& command)
    : command_(command) {
  if (!kept_in.empty() && compiler.name == "g++") {
    folder_ = kept_in / emulator_shim_hash() / hash_of(compiler, command);
  }
}

bool ParsedHeaders::found() const {
  struct ::stat status {};
  return ::lstat(file_in(folder_).c_str(), &status) == 0 && S_ISREG(status.st_mode) && why_foreign(status).empty();
}

void ParsedHeaders::make(const fs::path& header,
                         const std::function<bool(const std::vector<std::string>&)>& run) const {
  if (folder_.empty() || found()) {
    return;
  }
  std::error_code error;
  const fs::path version = folder_.parent_path();
  for (fs::directory_iterator entry(version.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path() != version) {
      fs::remove_all(entry->path(), error);
    }
  }
  fs::create_directories(file_in(folder_).parent_path(), error);
  remove_abandoned(file_in(folder_).parent_path());
  try {
    FileDraft draft(file_in(folder_), 0600);
    std::vector<std::string> command = command_;
    command.insert(command.end(), {"-x", "c++-header", header.string(), "-o", draft.path().string()});
    if (!run(command)) {
      fs::remove(draft.path(), error);
      (void)draft.open();
    }
    fs::permissions(draft.path(), fs::perms::owner_read | fs::perms::owner_write, error);
    draft.complete();
  } catch (const Error&) {
    // They only save time.
  }
}

bool ParsedHeaders::given_up_after(const std::string& log) const {
  if (folder_.empty() || log.find("PCH") == std::string::npos) {
    return false;
  }
  try {
    write_file_atomically(file_in(folder_), {}, 0600);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace pascaline
