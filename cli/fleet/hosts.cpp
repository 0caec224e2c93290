#include "cli/fleet/hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "cli/fleet/fleet_commands.hpp"
#include "cli/output_folder.hpp"
#include "core/error.hpp"
#include "core/file_words.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "core/util/process.hpp"
#include "core/util/shown_text.hpp"
#include "core/version.hpp"

namespace pascaline::cli {
namespace {

constexpr std::chrono::seconds kAnswerPatience{30};
constexpr std::chrono::minutes kCopyPatience{30};

// Nothing may be asked of a person: keys or an agent, and hosts that are known.
std::vector<std::string> quiet_options() { return {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}; }

ProcessResult on_host(const std::string& host, const std::string& command) {
  std::vector<std::string> words{"ssh"};
  for (const std::string& option : quiet_options()) {
    words.push_back(option);
  }
  words.insert(words.end(), {"--", host, command});
  return run_process(words, kAnswerPatience);
}

ProcessResult copy(const std::vector<std::string>& from_and_to) {
  std::vector<std::string> words{"scp", "-q", "-r", "-p"};
  for (const std::string& option : quiet_options()) {
    words.push_back(option);
  }
  words.emplace_back("--");
  words.insert(words.end(), from_and_to.begin(), from_and_to.end());
  return run_process(words, kCopyPatience);
}

std::string fault_of(const ProcessResult& result) {
  if (result.timed_out) {
    return "no answer in time";
  }
  const std::string said = clean_note(result.output);
  return said.empty() ? fmt::format("exit code {}", result.exit_code) : said;
}

// Why a host cannot be used; empty if it can.
std::string fault_of_host(const std::string& host) {
  try {
    const ProcessResult result = on_host(host, "date +%s");
    if (result.exit_code != 0 || result.timed_out) {
      return fault_of(result);
    }
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const double ahead_s = std::strtod(result.output.c_str(), nullptr) - now;
    if (std::abs(ahead_s) > kMaxClockDifferenceS) {
      return fmt::format("its clock is {} {}", duration_text(std::abs(ahead_s)), ahead_s > 0 ? "ahead" : "behind");
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// What the loader finds for this program, without what belongs to the C library, which must be that of the machine.
std::vector<std::filesystem::path> libraries_of(const std::filesystem::path& program) {
  static const std::regex line(R"(\s*(\S+) => (/\S+) .*)");
  static const std::regex of_system(R"((libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux.*)\.so.*)");
  std::vector<std::filesystem::path> files;
  std::istringstream lines(run_process({"ldd", program.string()}, kAnswerPatience).output);
  for (std::string text; std::getline(lines, text);) {
    std::smatch match;
    if (std::regex_match(text, match, line) && !std::regex_match(match[1].str(), of_system)) {
      files.emplace_back(match[2].str());
    }
  }
  return files;
}

// As an installed tree: the program finds its data beside itself.
void stage(const std::string& folder, const std::filesystem::path& stage) {
  namespace fs = std::filesystem;
  for (const char* const part : {"bin", "lib", "share/pascaline", "fleet"}) {
    fs::create_directories(stage / part);
  }
  const fs::path program = own_program();
  fs::copy_file(program, stage / "bin/pascaline");
  for (const fs::path& library : libraries_of(program)) {
    fs::copy_file(library, stage / "lib" / library.filename());
  }
  for (const char* const data : {"kernel_templates", "search_spaces", "shim"}) {
    fs::copy(data_folder(data), stage / "share/pascaline" / data, fs::copy_options::recursive);
  }
  fs::copy_file(fleet_file(folder), fleet_file(stage / "fleet"));
}

std::string program_there(const std::string& there) {
  return fmt::format("cd {} && LD_LIBRARY_PATH=\"$PWD/lib\" ", shell_word(there));
}

bool counts_more(const std::string& there, const std::string& here) { return there == "done" || here != "done"; }

// How a host says that its shards stand; nothing, with why, if it is not to be asked or does not say.
nlohmann::json asked(const HostShards& host, bool is_named, std::string& fault) {
  if (!is_named) {
    fault = "hosts are asked only if the command line names them (--ssh)";
    return {};
  }
  try {
    const ProcessResult result =
        on_host(host.host, program_there(host.folder) + "bin/pascaline fleet status fleet --local --json");
    nlohmann::json answer = nlohmann::json::parse(result.output, nullptr, false);
    fault = answer.is_object() && answer.contains("shards") ? "" : fault_of(result);
    return answer;
  } catch (const Error& error) {
    fault = error.what();
    return {};
  }
}

bool is_state(std::string_view state) {
  constexpr std::array<std::string_view, 6> kStates{"waiting", "running", "done", "interrupted", "failed", "lost"};
  return std::ranges::find(kStates, state) != kStates.end();
}

}  // namespace

std::string clean_note(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return clean_line(text.substr(0, 400));
}

CLI::Option* add_hosts_option(CLI::App& command, std::vector<std::string>& hosts, const std::string& help) {
  // A list in a variable is checked before it is divided.
  const auto check = [](const std::string& names) {
    for (const std::string& name : CLI::detail::split(names, ',')) {
      if (const auto why = why_no_host(name)) {
        return fmt::format("'{}' {}", name, *why);
      }
    }
    return std::string();
  };
  return command.add_option("--ssh", hosts, help)->delimiter(',')->check(check);
}

void require_hosts(const std::vector<std::string>& hosts) {
  std::vector<std::future<std::string>> asked;
  for (const std::string& host : hosts) {
    asked.push_back(std::async(std::launch::async, fault_of_host, host));
  }
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (const std::string fault = asked[i].get(); !fault.empty()) {
      faults.push_back(fmt::format("{}: {}", hosts[i], fault));
    }
  }
  if (!faults.empty()) {
    throw Error(fmt::format("nothing was started, as {} cannot be used: {}",
                            faults.size() == 1 ? "a host" : fmt::format("{} hosts", faults.size()),
                            fmt::join(faults, "; ")));
  }
}

std::string folder_on_host(const Fleet& fleet, const std::string& host) {
  std::string name = host;
  std::ranges::replace_if(
      name, [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '.' && letter != '-'; }, '_');
  return fmt::format(".pascaline-fleets/{}-{}", fleet.id, name);
}

void bring_program(const std::string& host, const std::string& there, const std::string& folder) {
  const auto fail = [&](const char* what, const ProcessResult& result) {
    throw Error(fmt::format("{}: cannot {} {}: {}; nothing was started there", host, what, there, fault_of(result)));
  };
  const DraftFolder bundle(std::filesystem::path(folder) / ".bundle");
  stage(folder, bundle.path());
  if (const ProcessResult made = on_host(host, fmt::format("mkdir -p {}", shell_word(there))); made.exit_code != 0) {
    fail("make", made);
  }
  std::vector<std::string> words;
  for (const char* const part : {"bin", "lib", "share", "fleet"}) {
    words.push_back((bundle.path() / part).string());
  }
  words.push_back(fmt::format("{}:{}/", host, there));
  const ProcessResult copied = copy(words);
  if (copied.exit_code != 0) {
    fail("copy into", copied);
  }
  const ProcessResult version = on_host(host, program_there(there) + "bin/pascaline --version");
  if (version.exit_code != 0 || clean_note(version.output) != fmt::format("pascaline {}", kVersion)) {
    fail("run the program in", version);
  }
}

void start_on_host(const HostShards& host) {
  std::string command = program_there(host.folder) + "setsid nohup bin/pascaline fleet run fleet";
  for (const int shard : host.shards) {
    command += fmt::format(" --shard {}", shard);
  }
  const ProcessResult result = on_host(host.host, command + " </dev/null >fleet/run.out 2>&1 &");
  if (result.exit_code != 0 || result.timed_out) {
    throw Error(fmt::format("{}: cannot start shards: {}", host.host, fault_of(result)));
  }
}

void add_hosts(const std::vector<HostShards>& hosts, const FleetSources& sources, std::vector<ShardStatus>& shards,
               std::vector<std::string>& notes) {
  for (const HostShards& host : hosts) {
    const auto each = [&](const auto& change) {
      for (const int shard : host.shards) {
        const auto found = std::ranges::find_if(shards, [&](const ShardStatus& one) { return one.shard == shard; });
        if (found != shards.end()) {
          change(*found);
        }
      }
    };
    std::string fault;
    const nlohmann::json answer = asked(host, sources.asks(host), fault);
    if (!fault.empty()) {
      notes.push_back(fmt::format("{} could not be asked: {}", host.host, fault));
      each([&](ShardStatus& shard) {
        if (counts_more("unknown", shard.state)) {
          shard.state = "unknown";
          shard.where = host.host;
        }
      });
      continue;
    }
    each([&](ShardStatus& shard) {
      for (const nlohmann::json& there : answer.at("shards")) {
        try {
          if (there.at("shard").get<int>() != shard.shard || !counts_more(there.at("state"), shard.state)) {
            continue;
          }
          // What is waiting there has been given out, and is begun once the one before it is done.
          const auto state = there.at("state").get<std::string>();
          shard.state = !is_state(state)                                       ? "unknown"
                        : state == "waiting" && answer.value("working", false) ? "queued"
                                                                               : state;
          shard.where = fmt::format("{} over ssh", host.host);
          shard.note = there.at("note");
          shard.attempts = there.at("attempts");
          shard.age_s = there.at("age_s").is_number() ? there.at("age_s").get<double>() : -1;
        } catch (const nlohmann::json::exception&) {
          shard.state = "unknown";
        }
      }
    });
  }
}

std::string fetch_from_host(const HostShards& host, const std::filesystem::path& into) {
  require_own_folder(into);
  make_output_folder(into, "the shards of a host are copied there");
  std::vector<std::string> patterns;
  for (const int shard : host.shards) {
    patterns.push_back(fmt::format("{}:{}/fleet/shard-{:04}*", host.host, host.folder, shard));
  }
  patterns.push_back(into.string());
  try {
    const ProcessResult result = copy(patterns);
    return result.exit_code == 0 ? "" : fault_of(result);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace pascaline::cli
