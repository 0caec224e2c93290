#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "app/data/code_limits.hpp"
#include "cli/command.hpp"
#include "report/server/report_server.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

constexpr int kServePort = 8461;
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kPatience{5};  // with clients, after it was asked to end

struct ServeCommandOptions {
  std::string database;
  std::string kernels;
  std::string cache;
  bool no_limits = false;
  ServeOptions serve{.database = {}, .report = {}, .host = "127.0.0.1", .port = kServePort};
};

// Estimates of what limits kernels, from code in the cache alone: a page that is waited for compiles nothing. Each is
// made once, however often the report is.
class ServedLimits {
 public:
  explicit ServedLimits(CodeLimitOptions options) : limits_(std::move(options)) {}

  [[nodiscard]] ReportLimit limit_of(const LimitRequest& request) {
    const std::string key = fmt::format(
        "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", request.device.kind, request.device.name,
        request.device.compute_capability, request.device.sm_count, toolkit_text(request.toolkit), request.source_hash,
        request.problem.text(), request.config ? request.config->text() : "", request.measured.measured_unix_ms);
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) {
      return known->second;
    }
    ReportLimit limit = limits_.limit_of(request);
    if (limit.missing.empty()) {
      known_.emplace(key, limit);
    }
    return limit;
  }

 private:
  std::mutex mutex_;
  CodeLimits limits_;
  std::map<std::string, ReportLimit> known_;
};

int serve(ServeCommandOptions options) {
  options.serve.database = database_path(options.database);
  std::optional<ServedLimits> limits;
  if (!options.no_limits) {
    limits.emplace(limit_options(options.kernels, options.serve.report.spaces_folder, options.cache));
    options.serve.report.limit_of = [&limits](const LimitRequest& request) { return limits->limit_of(request); };
  }
  catch_interrupts();
  ReportServer server(options.serve);
  const std::string host =
      options.serve.host.find(':') != std::string::npos ? fmt::format("[{}]", options.serve.host) : options.serve.host;
  fmt::print("http://{}:{}/ shows {}; press Ctrl-C to stop\n", host, server.port(), options.serve.database.string());
  std::fflush(stdout);
  std::atomic<bool> ended = false;
  std::jthread answering([&] {
    server.run();
    ended = true;
  });
  int asked = 0;
  while (!ended) {
    std::this_thread::sleep_for(kLook);
    if (interrupted()) {
      server.stop();  // again if it had not begun yet
      if (++asked * kLook > kPatience) {
        std::_Exit(kSuccess);  // a client that sends without end must not hold what only reads
      }
    }
  }
  return interrupted() ? kSuccess : kFault;
}

void add_serve_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Show a live report in a browser while a sweep runs");
  const auto options = std::make_shared<ServeCommandOptions>();
  add_database_option(*command, options->database, "Database to read");
  command
      ->add_option("--host", options->serve.host, "Address to listen on; anyone who can reach it can read the report")
      ->capture_default_str()
      ->check(not_empty());
  command->add_option("--port", options->serve.port, "Port to listen on; 0: any that is free")
      ->capture_default_str()
      ->transform(whole_number(0, 65535));
  add_report_options(*command, options->serve.report);
  command->add_flag("--no-limits", options->no_limits,
                    "Leave out what limits kernels for sm_50 to sm_62, estimated from their code in the cache");
  command->add_option("--kernels", options->kernels, "Folder of their kernel templates (default: the installed ones)")
      ->check(CLI::ExistingDirectory);
  command->add_option("--cache", options->cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
  command->footer(
      "The database is only read. The page updates every 5 seconds.\n\nExamples:\n"
      "  pascaline serve --db tuned.db\n"
      "  ssh -L 8461:127.0.0.1:8461 machine-with-the-card pascaline serve --db tuned.db");
  command->callback([&action, options] { action = [options] { return serve(*options); }; });
}

const Command kServeCommand(Heading::data, 3, add_serve_command);

}  // namespace

}  // namespace pascaline::cli
