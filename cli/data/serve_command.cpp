#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cli/command.hpp"
#include "report/server/report_server.hpp"

namespace pascaline::cli {
namespace {

constexpr int kServePort = 8461;
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kPatience{5};  // with clients, after it was asked to end

struct ServeCommandOptions {
  std::string database;
  ServeOptions serve{.database = {}, .report = {}, .host = "127.0.0.1", .port = kServePort};
};

int serve(ServeCommandOptions options) {
  options.serve.database = database_path(options.database);
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

}  // namespace

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
  command->footer(
      "The database is only read. The page updates every 5 seconds.\n\nExamples:\n"
      "  pascaline serve --db tuned.db\n"
      "  ssh -L 8461:127.0.0.1:8461 machine-with-the-card pascaline serve --db tuned.db");
  command->callback([&action, options] { action = [options] { return serve(*options); }; });
}

}  // namespace pascaline::cli
