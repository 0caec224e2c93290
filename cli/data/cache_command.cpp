#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/util/byte_size.hpp"
#include "core/util/counted.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "report/text.hpp"
#include "runtime/device/cubin_cache.hpp"

namespace pascaline::cli {
namespace {

constexpr std::int64_t kMaxDays = 36'500;

struct CacheCommandOptions {
  std::string cache;
  bool clear = false;
  std::int64_t older_than_days = 0;
  bool as_json = false;
};

struct FileTotal {
  std::size_t files = 0;
  std::uint64_t bytes = 0;

  void add(const CubinCacheEntry& entry) {
    ++files;
    bytes += entry.bytes;
  }
  [[nodiscard]] std::string text() const { return fmt::format("{}, {}", counted(files, "file"), shown_bytes(bytes)); }
};

struct CacheSummary {
  FileTotal total;
  std::map<std::pair<std::string, std::string>, FileTotal> kinds;  ///< by kind and target
  std::int64_t oldest_unix_ms = std::numeric_limits<std::int64_t>::max();
  std::int64_t newest_unix_ms = std::numeric_limits<std::int64_t>::min();
};

CacheSummary summary_of(const CubinCache& cache) {
  CacheSummary summary;
  for (const CubinCacheEntry& entry : cache.entries()) {
    summary.total.add(entry);
    summary.kinds[{entry.kind, entry.target}].add(entry);
    summary.oldest_unix_ms = std::min(summary.oldest_unix_ms, entry.used_unix_ms);
    summary.newest_unix_ms = std::max(summary.newest_unix_ms, entry.used_unix_ms);
  }
  return summary;
}

// Removes the entries that were not used for so many days; 0: all.
FileTotal clear_cache(const CubinCache& cache, std::int64_t days) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(now - std::chrono::hours(24 * days));
  FileTotal removed;
  for (const CubinCacheEntry& entry : cache.entries()) {
    if ((days == 0 || entry.used_unix_ms < limit.count()) && cache.remove(entry)) {
      removed.add(entry);
    }
  }
  return removed;
}

nlohmann::json document_of(const CubinCache& cache, const CacheSummary& summary) {
  nlohmann::json document{{"folder", shown_text(cache.folder().string())},
                          {"exists", std::filesystem::exists(cache.folder())},
                          {"files", summary.total.files},
                          {"bytes", summary.total.bytes},
                          {"kinds", nlohmann::json::array()},
                          {"oldest_use_unix_ms", nullptr},
                          {"newest_use_unix_ms", nullptr}};
  for (const auto& [name, total] : summary.kinds) {
    document["kinds"].push_back(
        {{"kind", name.first}, {"target", name.second}, {"files", total.files}, {"bytes", total.bytes}});
  }
  if (summary.total.files > 0) {
    document["oldest_use_unix_ms"] = summary.oldest_unix_ms;
    document["newest_use_unix_ms"] = summary.newest_unix_ms;
  }
  return document;
}

void print_cache(const CubinCache& cache, const CacheSummary& summary) {
  fmt::print("{}: {}\n", cache.folder().string(), summary.total.text());
  for (const auto& [name, total] : summary.kinds) {
    fmt::print("  {:<28} {:>6}  {:>10}\n", name.second.empty() ? name.first : name.first + " for " + name.second,
               total.files, shown_bytes(total.bytes));
  }
  if (summary.total.files > 0) {
    fmt::print("last used: from {} to {}\n", utc_time(summary.oldest_unix_ms), utc_time(summary.newest_unix_ms));
  }
}

int run_cache_command(const CacheCommandOptions& options) {
  const CubinCache cache(options.cache.empty() ? cache_folder() : std::filesystem::path(options.cache));
  const FileTotal removed = options.clear ? clear_cache(cache, options.older_than_days) : FileTotal{};
  const CacheSummary summary = summary_of(cache);
  if (options.as_json) {
    nlohmann::json document = document_of(cache, summary);
    if (options.clear) {
      document["removed"] = {{"files", removed.files}, {"bytes", removed.bytes}};
    }
    fmt::print("{}\n", document.dump(2));
  } else if (!std::filesystem::exists(cache.folder())) {
    fmt::print("{} does not exist yet; the first compiled kernel makes it\n", cache.folder().string());
  } else if (options.clear) {
    fmt::print("removed {} from {}; {} left\n", removed.text(), cache.folder().string(), summary.total.text());
  } else {
    print_cache(cache, summary);
  }
  return kSuccess;
}

void add_cache_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("cache", "Show or clear the folder of compiled kernels");
  const auto options = std::make_shared<CacheCommandOptions>();
  command->add_option("--cache", options->cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  CLI::Option* const clear = command->add_flag("--clear", options->clear, "Remove the compiled kernels");
  command
      ->add_option("--older-than", options->older_than_days,
                   "Remove only kernels that were not used for this many days, such as 30")
      ->transform(whole_number(0, kMaxDays))
      ->needs(clear);
  command->add_flag("--json", options->as_json, "Print JSON; with --clear the removed and the remaining totals");
  command->footer(
      "--clear removes only files that Pascaline stored as compiled kernels, follows no symbolic links in the folder,\n"
      "and may run beside a sweep. A removed kernel is compiled again when it is needed.\n\n"
      "Examples:\n  pascaline cache\n  pascaline cache --clear --older-than 30\n  pascaline cache --cache "
      "build/kernels "
      "--json");
  command->callback([&action, options] { action = [options] { return run_cache_command(*options); }; });
}

const Command kCacheCommand(Heading::data, 8, add_cache_command);

}  // namespace

}  // namespace pascaline::cli
