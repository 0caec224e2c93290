#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "report/report.hpp"

namespace pascaline {

struct ServeOptions {
  std::filesystem::path database;
  ReportOptions report;            ///< `live` is set
  std::string host = "127.0.0.1";  ///< address to listen on
  int port = 0;                    ///< 0: any that is free
};

/// Serves the HTML report of a database over HTTP, made again when the database has changed: `/` is the page,
/// `/document.json` the document (with an ETag), which the page asks for by itself. Only reads the database, and opens
/// it for each reading. Listening on loopback, it answers only requests made to a loopback name, so that no page of
/// another site can read it through a name that resolves here.
class ReportServer {
 public:
  /// Listens from now on. Throws StoreError if the database cannot be read, and Error if the report cannot be made or
  /// the address not be listened on.
  explicit ReportServer(const ServeOptions& options);
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;
  ~ReportServer();

  [[nodiscard]] int port() const noexcept;
  /// Answers until `stop`, which another thread may call.
  void run();
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pascaline
