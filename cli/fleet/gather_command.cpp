#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/fleet/hosts.hpp"
#include "cli/fleet/shard_check.hpp"
#include "cli/fleet/submissions.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "db/merge.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/html.hpp"
#include "report/report.hpp"
#include "tuner/fleet/attempts.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

struct FleetGatherOptions {
  std::string folder;
  std::string database;
  std::vector<std::string> files;
  std::vector<std::string> accept;
  FleetSources sources;
  std::string report;
  bool as_json = false;
};

/// What a gather brought.
struct Gathered {
  std::vector<ShardDatabase> databases;
  std::vector<std::pair<int, std::string>> missing;  ///< shard and how it stands
  std::vector<std::string> notes;
  MergeCounts counts;
};

// The fleet's own files: its plan, and what shards measured, which each belongs to one of them.
void require_none_of_fleet(const fs::path& file, const char* option, const FleetGatherOptions& options,
                           const Fleet& fleet) {
  const auto same = [&](const fs::path& other) { return is_same_place(file, other); };
  bool own = same(fleet_file(options.folder));
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    own = own || same(shard_database(options.folder, shard));
  }
  if (own || std::ranges::any_of(options.files, same)) {
    throw Error(fmt::format("{}: {} is one of the fleet's own files, which gathering reads; give another one", option,
                            file.string()));
  }
}

// Each host's into a folder of its own, as several may have had the same shard.
void fetch(const FleetGatherOptions& options, const Fleet& fleet, std::vector<std::string>& notes) {
  require_hosts_named(options.folder, fleet, options.sources);
  for (const HostShards& host : load_submissions(options.folder, fleet).hosts) {
    if (!options.sources.asks(host)) {
      continue;
    }
    const fs::path into = fs::path(options.folder) / ("from-" + fs::path(host.folder).filename().string());
    if (const std::string fault = fetch_from_host(host, into); !fault.empty()) {
      notes.push_back(fmt::format("{} could not be fetched from: {}", host.host, fault));
    }
  }
}

std::vector<fs::path> databases_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::is_directory(entry.symlink_status()) && entry.path().filename().string().starts_with("from-")) {
      const std::vector<fs::path> more = databases_in(entry.path());
      files.insert(files.end(), more.begin(), more.end());
    } else if (entry.path().extension() == ".db") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// Written by another machine just now: one that has the file by a network cannot read it meanwhile.
bool is_written_elsewhere(const fs::path& file, const std::string& folder, const std::vector<Attempt>& attempts) {
  return std::ranges::any_of(attempts, [&](const Attempt& attempt) {
    const auto last = newest_attempt(attempts, attempt.shard);
    return file == shard_database(folder, attempt.shard) && last->state == AttemptState::running && !is_lost(*last) &&
           last->process.boot_id != this_process().boot_id;
  });
}

Accepted accepted_of(const FleetGatherOptions& options) {
  Accepted accepted;
  accepted.clock = std::ranges::find(options.accept, "clock") != options.accept.end();
  accepted.versions = std::ranges::find(options.accept, "versions") != options.accept.end();
  return accepted;
}

void add(MergeCounts& sum, const MergeCounts& counts) {
  sum.sessions += counts.sessions;
  sum.trials += counts.trials;
  sum.trials_known += counts.trials_known;
  sum.winners_added += counts.winners_added + counts.winners_replaced;
}

Gathered look(const FleetGatherOptions& options, const Fleet& fleet, const fs::path& target) {
  Gathered gathered;
  fetch(options, fleet, gathered.notes);
  std::vector<fs::path> files = databases_in(options.folder);
  for (const std::string& file : options.files) {
    files.emplace_back(file);
  }
  const std::vector<Attempt> attempts = read_attempts(options.folder);
  for (const fs::path& file : files) {
    std::error_code unseen;
    if (!fs::equivalent(file, target, unseen) && !is_written_elsewhere(file, options.folder, attempts)) {
      gathered.databases.push_back(look_at_shard(file, fleet, accepted_of(options)));
    }
  }
  keep_fullest(gathered.databases);
  std::vector<std::string> unused;
  const std::vector<ShardStatus> stands = fleet_status(options.folder, fleet, {.local = true, .hosts = {}}, unused);
  for (int shard = 1; shard <= fleet.count(); ++shard) {
    const auto found = std::ranges::find_if(
        gathered.databases, [&](const ShardDatabase& one) { return one.shard == shard && one.refusal.empty(); });
    const std::string& state = stands[static_cast<std::size_t>(shard - 1)].state;
    if (found == gathered.databases.end()) {
      const bool left_out =
          std::ranges::any_of(gathered.databases, [&](const ShardDatabase& one) { return one.shard == shard; });
      gathered.missing.emplace_back(shard, state == "running" ? "it is running: gather again"
                                           : left_out         ? "its database is left out"
                                                              : fmt::format("there is nothing of it ({})", state));
    } else if (!found->finished) {
      gathered.missing.emplace_back(shard, fmt::format("only its {} so far ({})", counted(found->trials, "trial"),
                                                       found->running                          ? "running"
                                                       : state == "done" || state == "waiting" ? "unfinished"
                                                                                               : state));
    }
  }
  return gathered;
}

std::vector<fs::path> kept_files(const Gathered& gathered) {
  std::vector<fs::path> files;
  for (const ShardDatabase& one : gathered.databases) {
    if (one.refusal.empty()) {
      files.push_back(one.file);
    }
  }
  return files;
}

// Of a database that cannot be read to its end, as the error says; false if the error is of something else.
bool leave_out(Gathered& gathered, const fs::path& file, const StoreError& error) {
  const auto found = std::ranges::find_if(
      gathered.databases, [&](const ShardDatabase& one) { return one.refusal.empty() && one.file == file; });
  if (found == gathered.databases.end() || !std::string_view(error.what()).starts_with(file.string() + ":")) {
    return false;
  }
  found->refusal = error.what();
  std::erase_if(gathered.missing, [&](const auto& one) { return one.first == found->shard; });
  gathered.missing.emplace_back(found->shard, "its database is left out");
  std::ranges::sort(gathered.missing);
  return true;
}

// All at once: what is gathered is there whole, or not at all. What turns out to be damaged as it is read is left out.
void merge_kept(Gathered& gathered, const fs::path& target) {
  const bool made_here = !fs::exists(target);
  for (std::vector<fs::path> files = kept_files(gathered); !files.empty(); files = kept_files(gathered)) {
    fs::path at_hand;
    try {
      Store store(target, OpenMode::create);
      for (const MergeCounts& counts : merge_databases(files, store, [&](const fs::path& file) { at_hand = file; })) {
        add(gathered.counts, counts);
      }
      return;
    } catch (const StoreError& error) {
      if (!leave_out(gathered, at_hand, error)) {
        throw;
      }
    }
  }
  if (made_here) {
    remove_if_unused(target);
  }
}

void write_fleet_report(const std::string& file, const fs::path& target) {
  const Store store(target, OpenMode::read_only);
  const std::string text = fs::path(file).extension() == ".md"
                               ? markdown_report(store)
                               : html_report(document_json(gather_report(store), nullptr));
  write_file_atomically(file, text);
}

void print_text(const Gathered& gathered, const Fleet& fleet, const fs::path& target) {
  for (const std::string& note : gathered.notes) {
    fmt::print("{}\n", clean_line(note));
  }
  for (const ShardDatabase& one : gathered.databases) {
    if (!one.refusal.empty()) {
      fmt::print("left out: {}\n", clean_line(one.file.string() + ": " + one.refusal));
    }
  }
  for (const auto& [shard, why] : gathered.missing) {
    fmt::print("incomplete: shard {}: {}\n", Shard{shard, fleet.count()}.text(), clean_line(why));
  }
  const auto complete = static_cast<std::size_t>(fleet.count()) - gathered.missing.size();
  fmt::print("{} of {} whole; new in {}: {}, {}, {}\n", complete, counted(fleet.count(), "shard"), target.string(),
             counted(gathered.counts.sessions, "session"), counted(gathered.counts.trials, "trial"),
             counted(gathered.counts.winners_added, "winner"));
}

void print_json(const Gathered& gathered, const Fleet& fleet, const fs::path& target) {
  nlohmann::ordered_json json{{"fleet", fleet.id},
                              {"database", target.string()},
                              {"shards", fleet.count()},
                              {"taken", nlohmann::ordered_json::array()},
                              {"left_out", nlohmann::ordered_json::array()},
                              {"incomplete", nlohmann::ordered_json::array()},
                              {"new",
                               {{"sessions", gathered.counts.sessions},
                                {"trials", gathered.counts.trials},
                                {"winners", gathered.counts.winners_added}}},
                              {"notes", gathered.notes}};
  for (const ShardDatabase& one : gathered.databases) {
    if (one.refusal.empty()) {
      json["taken"].push_back({{"file", one.file.string()}, {"shard", one.shard}, {"trials", one.trials}});
    } else {
      json["left_out"].push_back({{"file", one.file.string()}, {"reason", one.refusal}});
    }
  }
  for (const auto& [shard, why] : gathered.missing) {
    json["incomplete"].push_back({{"shard", shard}, {"reason", why}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int gather(FleetGatherOptions options) {
  const Fleet fleet = fleet_of(options.folder);
  const fs::path target = database_path(options.database);
  require_none_of_fleet(target, "--db", options, fleet);
  if (!options.report.empty()) {
    require_none_of_fleet(options.report, "--report", options, fleet);
    require_writable(options.report);
    require_no_database(options.report, target);
  }
  Gathered gathered = look(options, fleet, target);
  merge_kept(gathered, target);
  if (options.as_json) {
    print_json(gathered, fleet, target);
  } else {
    print_text(gathered, fleet, target);
  }
  const bool all = gathered.missing.empty();
  if (!options.report.empty() && fs::exists(target)) {
    write_fleet_report(options.report, target);
  }
  return all ? kSuccess : kNegative;
}

}  // namespace

void add_fleet_gather_command(CLI::App& fleet, Action& action) {
  CLI::App* command =
      fleet.add_subcommand("gather", "Merge what all shards measured, and tell what is missing or left out");
  const auto options = std::make_shared<FleetGatherOptions>();
  add_fleet_folder(*command, options->folder);
  add_database_option(*command, options->database, "Database to merge into; created if missing");
  command->add_option("--from", options->files, "A shard's database that lies elsewhere (repeatable)")
      ->check(CLI::ExistingFile);
  add_source_options(*command, options->sources);
  command
      ->add_option("--accept", options->accept,
                   "Take databases all the same whose clock is hours off, or of another version of program or kernels "
                   "(clock, versions)")
      ->check(one_of({"clock", "versions"}));
  command->add_option("--report", options->report, "Also write a report: HTML, or Markdown where the name ends in .md")
      ->check(not_empty());
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Of a shard that was run more than once, what holds most is taken and the rest is told. It can be called while\n"
      "shards run, and again. Exit codes: 0 every shard is whole; 3 some are not: it says which.\n\nExamples:\n"
      "  pascaline fleet gather night --db tuned.db\n"
      "  pascaline fleet gather night --db tuned.db --ssh alpha,beta\n"
      "  pascaline fleet gather night --db tuned.db --report night.html");
  command->callback([&action, options] { action = [options] { return gather(*options); }; });
}

}  // namespace pascaline::cli
