#include "report/server/report_server.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

class ReportServerTest : public ReportFixture {
 protected:
  std::unique_ptr<ReportServer> server_;
  std::jthread answering_;

  void SetUp() override {
    store_.add_trial(session_, context_, timed(1, 100));
    server_ = std::make_unique<ReportServer>(options());
    answering_ = std::jthread([this] { server_->run(); });
    while (!get("/")) {  // until it answers
    }
  }
  void TearDown() override {
    server_->stop();
    answering_.join();
  }
  [[nodiscard]] ServeOptions options() const {
    ServeOptions options;
    options.database = folder_ / "tuned.db";
    options.report.workload = "none";
    return options;
  }
  [[nodiscard]] httplib::Result get(const std::string& path, const httplib::Headers& headers = {}) const {
    httplib::Client client("127.0.0.1", server_->port());
    client.set_read_timeout(20, 0);
    return client.Get(path, headers);
  }
  // Asks until a newer document than the one of that tag comes.
  [[nodiscard]] json newer_than(const std::string& tag) const {
    for (int attempt = 0; attempt < 2400; ++attempt) {
      const auto answer = get("/document.json", {{"If-None-Match", tag}});
      if (answer && answer->status == 200) {
        return json::parse(answer->body);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ADD_FAILURE() << "nothing newer came";
    return {};
  }
};

TEST_F(ReportServerTest, PageAndDocument) {
  const auto page = get("/");
  ASSERT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_HOLDS(page->get_header_value("Content-Security-Policy"), "connect-src 'self'");
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_TRUE(page->body.starts_with("<!doctype html>"));
  const auto answer = get("/document.json");
  ASSERT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
  const json document = json::parse(answer->body);
  EXPECT_EQ(document["live"], true);
  EXPECT_EQ(document["database"]["trials"], 1);
  for (const char* path : {"/other", "/../tuned.db", "/tuned.db", "/document.json/", "//"}) {
    const auto missing = get(path);
    EXPECT_EQ(missing->status, 404) << path;
    EXPECT_EQ(missing->body, "There is nothing here; the report is at /.\n");
  }
}

TEST_F(ReportServerTest, WhatIsKnownIsNotSentAgainAndWhatIsNewIs) {
  const std::string tag = get("/document.json")->get_header_value("ETag");
  EXPECT_GT(tag.size(), 10U);
  const auto same = get("/document.json", {{"If-None-Match", tag}});
  EXPECT_EQ(same->status, 304);
  EXPECT_EQ(same->body, "");
  store_.add_trial(session_, context_, timed(2, 50));
  const json document = newer_than(tag);
  EXPECT_EQ(document["database"]["trials"], 2);
  EXPECT_EQ(document["contexts"][0]["kernels"][0]["problems"][0]["best"]["median_us"], 50);
  EXPECT_NE(get("/document.json")->get_header_value("ETag"), tag);
  EXPECT_EQ(get("/document.json", {{"If-None-Match", tag}})->status, 200);
}

TEST_F(ReportServerTest, OtherSitesCannotReadItThroughANameOfTheirOwn) {
  for (const char* name : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil.example",
                           "[::1].evil.example", "[::1", "[", "::1"}) {
    const auto answer = get("/document.json", {{"Host", name}});
    EXPECT_EQ(answer->status, 403) << name;
    EXPECT_LACKS(answer->body, "contexts");
  }
  for (const char* name : {"127.0.0.1", "127.0.0.2:80", "localhost:8461", "LocalHost.", "[::1]:8461", "[::1]"}) {
    EXPECT_EQ(get("/document.json", {{"Host", name}})->status, 200) << name;
  }
}

TEST_F(ReportServerTest, LoopbackIsKnownHoweverItIsWritten) {
  for (const char* host : {"127.1", "2130706433", "localhost"}) {
    ServeOptions written = options();
    written.host = host;
    written.port = 0;
    ReportServer server(written);
    std::jthread answering([&] { server.run(); });
    httplib::Client client("localhost", server.port());
    const auto status = [&](const std::string& name) {
      const auto answer = client.Get("/document.json", {{"Host", name}});
      return answer ? answer->status : 0;
    };
    while (status("localhost") == 0) {  // until it answers
    }
    EXPECT_EQ(status("evil.example"), 403) << host;
    EXPECT_EQ(status(host), 200);
    EXPECT_EQ(status("127.0.0.1:80"), 200) << host;
    server.stop();
  }
}

TEST_F(ReportServerTest, PartsOfItAreNotSentHoweverManyAreAskedFor) {
  const std::size_t whole = get("/")->body.size();
  std::string many = "bytes=0-";
  for (int i = 0; i < 200; ++i) {
    many += ",0-";
  }
  for (const std::string& ranges : {many, std::string("bytes=0-9"), std::string("bytes=5-9,20-")}) {
    for (const char* path : {"/", "/document.json"}) {
      const auto answer = get(path, {{"Range", ranges}});
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 200) << ranges;
      EXPECT_FALSE(answer->has_header("Content-Range")) << ranges;
      EXPECT_EQ(answer->get_header_value("Accept-Ranges"), "none");
      EXPECT_LT(answer->body.size(), 2 * whole) << ranges;
    }
    EXPECT_TRUE(get("/", {{"Range", ranges}})->body.starts_with("<!doctype html>"));
    EXPECT_EQ(get("/none", {{"Range", ranges}})->status, 404);
  }
}

TEST_F(ReportServerTest, ManyAskAtOnce) {
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([this, &good, i] {
      const auto answer = get(i % 2 == 0 ? "/" : "/document.json");
      good += answer && answer->status == 200 ? 1 : 0;
    });
  }
  for (int i = 0; i < 10; ++i) {
    store_.add_trial(session_, context_, timed(3 + i, 40));
  }
  threads.clear();
  EXPECT_EQ(good, 12);
}

TEST_F(ReportServerTest, DatabaseThatIsGoneIsSaidAndItsReturnSeen) {
  const auto file = folder_ / "tuned.db";
  std::filesystem::rename(file, folder_ / "away.db");
  // It rests for a while after a report was made.
  for (int attempt = 0; attempt < 2400 && get("/document.json")->status == 200; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  const auto gone = get("/document.json");
  EXPECT_EQ(gone->status, 503);
  EXPECT_HOLDS(gone->body, "tuned.db");
  EXPECT_EQ(get("/")->status, 503);
  std::filesystem::rename(folder_ / "away.db", file);
  EXPECT_EQ(get("/document.json")->status, 200);
}

std::string refusal(const ServeOptions& options) {
  return message_of([&] { const ReportServer server(options); });
}

TEST_F(ReportServerTest, WhatCannotBeServedIsRefusedAtOnce) {
  ServeOptions taken = options();
  taken.port = server_->port();
  EXPECT_HOLDS(refusal(taken), fmt::format("port {}", taken.port));
  ServeOptions elsewhere = options();
  elsewhere.host = "203.0.113.7";
  EXPECT_HOLDS(refusal(elsewhere), "203.0.113.7");
  ServeOptions missing = options();
  missing.database = folder_ / "none.db";
  EXPECT_HOLDS(refusal(missing), "none.db");
  write_bytes(folder_ / "text.db", "dear diary");
  missing.database = folder_ / "text.db";
  EXPECT_HOLDS(refusal(missing), "text.db");
}

}  // namespace
}  // namespace pascaline::testing
