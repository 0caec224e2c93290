#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "db/merge.hpp"

namespace pascaline::cli {
namespace {

struct MergeCommandOptions {
  std::vector<std::string> files;
  std::string database;
  bool dry_run = false;
  bool as_json = false;
};

std::string merge_text(const std::string& file, const MergeCounts& counts, bool dry_run) {
  std::string text = fmt::format("{}: ", file);
  if (!counts.changed()) {
    text += fmt::format("nothing new ({}, {}, {} known{})\n", counted(counts.sessions_known, "session"),
                        counted(counts.trials_known, "trial"),
                        counted(counts.winners_known + counts.winners_kept, "winner"),
                        counts.probes_known > 0 ? ", and " + counted(counts.probes_known, "probe") : "");
  } else {
    text += fmt::format(
        "{}sessions: {} new, {} grown, {} known; trials: {} new, {} known; winners: {} new, {} replaced, {} less "
        "certain "
        "than here, {} known{}\n",
        dry_run ? "would add " : "", counts.sessions, counts.sessions_grown, counts.sessions_known, counts.trials,
        counts.trials_known, counts.winners_added, counts.winners_replaced, counts.winners_kept, counts.winners_known,
        counts.probes + counts.probes_known > 0
            ? fmt::format("; probes: {} new, {} known", counts.probes, counts.probes_known)
            : "");
  }
  if (counts.sessions_running > 0) {
    text += fmt::format("  {} may still run there: merge again later for the rest\n",
                        counted(counts.sessions_running, "session"));
  }
  return text;
}

nlohmann::json merge_json(const std::string& file, const MergeCounts& counts) {
  return {{"file", file},
          {"changed", counts.changed()},
          {"sessions",
           {{"new", counts.sessions},
            {"grown", counts.sessions_grown},
            {"known", counts.sessions_known},
            {"running", counts.sessions_running}}},
          {"trials", {{"new", counts.trials}, {"known", counts.trials_known}}},
          {"samples", counts.samples},
          {"readings", counts.readings},
          {"probes", {{"new", counts.probes}, {"known", counts.probes_known}}},
          {"winners",
           {{"new", counts.winners_added},
            {"replaced", counts.winners_replaced},
            {"kept", counts.winners_kept},
            {"known", counts.winners_known}}}};
}

// Files of many trials take minutes: who looks on is told which is at hand.
class MergeProgress {
 public:
  explicit MergeProgress(std::size_t files) : files_(files), shown_(files > 1 && ::isatty(STDERR_FILENO) != 0) {}
  void begin(const std::filesystem::path& file) {
    ++begun_;
    if (shown_) {
      fmt::print(stderr, "\r\033[K{} of {}: {}", begun_, files_, file.string());
    }
  }
  void end() const {
    if (shown_) {
      fmt::print(stderr, "\r\033[K");
    }
  }

 private:
  std::size_t files_;
  bool shown_;
  std::size_t begun_ = 0;
};

std::vector<MergeCounts> merge_files(const MergeCommandOptions& options, const std::filesystem::path& database) {
  Store store = options.dry_run ? Store::scratch_copy(database) : Store(database, OpenMode::create);
  const std::vector<std::filesystem::path> files(options.files.begin(), options.files.end());
  MergeProgress progress(files.size());
  try {
    std::vector<MergeCounts> counts =
        merge_databases(files, store, [&](const std::filesystem::path& file) { progress.begin(file); });
    progress.end();
    return counts;
  } catch (const Error&) {
    progress.end();
    throw;
  }
}

int merge(const MergeCommandOptions& options) {
  const std::filesystem::path database = database_path(options.database);
  const bool made_here = !options.dry_run && !std::filesystem::exists(database);
  for (const std::string& file : options.files) {
    // What can be seen at once to be wrong is told before anything is merged.
    check_mergeable(file, database);
  }
  std::vector<MergeCounts> counts;
  try {
    counts = merge_files(options, database);
  } catch (const Error&) {
    if (made_here) {
      remove_if_unused(database);
    }
    throw;
  }
  nlohmann::json merged = nlohmann::json::array();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (options.as_json) {
      merged.push_back(merge_json(options.files[i], counts[i]));
    } else {
      fmt::print("{}", merge_text(options.files[i], counts[i], options.dry_run));
    }
  }
  if (options.as_json) {
    const nlohmann::json document{
        {"database", database.string()}, {"dry_run", options.dry_run}, {"merged", std::move(merged)}};
    fmt::print("{}\n", document.dump(2));
  }
  return kSuccess;
}

void add_merge_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("merge", "Merge the contents of other databases into one");
  const auto options = std::make_shared<MergeCommandOptions>();
  command->add_option("files", options->files, "Databases to take over; they stay as they are")->required();
  add_database_option(*command, options->database, "Database to merge into; created if missing");
  command->add_flag("--dry-run", options->dry_run, "Show what would be merged; change nothing");
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Nothing is duplicated or mixed: sessions are identified by uuid, measurements by device, compiler, "
      "kernel,\n"
      "problem and configuration. Merging again adds only what is new. All files are merged, or none.\n\n"
      "Examples:\n  pascaline merge gpu2.db gpu3.db --db all.db\n  pascaline merge gpu2.db --dry-run");
  command->callback([&action, options] { action = [options] { return merge(*options); }; });
}

const Command kMergeCommand(Heading::data, 5, add_merge_command);

}  // namespace

}  // namespace pascaline::cli
