#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "core/space/space.hpp"
#include "core/trial_counts.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "tests/cli/cli_fixture.hpp"
#include "tests/report/made_database.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliReportTest : public CliTest {
 protected:
  std::string other_ = (folder_ / "other.db").string();

  // Of two problems one is 20 % slower now than in the other database, one as fast.
  void make_both() const {
    MadeDatabase now(database_);
    now.win({.median_us = 120}, {.m = 1, .tile = 16});
    now.win({}, {.m = 2});
    MadeDatabase before(other_);
    before.win({.seed = 2}, {.m = 1});
    before.win({.seed = 2}, {.m = 2});
  }
  // The second session is 20 % slower.
  void make_two_sessions() const {
    MadeDatabase made(database_);
    made.win({});
    made.store.end_session(made.session, "finished");
    made.session = begin_example_session(made.store, made.context);
    made.win({.median_us = 120, .seed = 2});
  }
  [[nodiscard]] ProgramResult report(std::vector<std::string> words) const {
    words.insert(words.begin(), {"report", "--db", database_});
    return run(words);
  }
};

TEST_F(CliReportTest, TheNameOfTheFileSaysTheFormat) {
  make_both();
  const auto written = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--no-limits", "-o", (folder_ / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = report(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return read_file(folder_ / name);
  };
  EXPECT_TRUE(written("report.html").starts_with("<!"));
  EXPECT_TRUE(written("REPORT.HTM").starts_with("<!"));
  EXPECT_TRUE(written("report.md").starts_with("# "));
  EXPECT_TRUE(written("report.csv").starts_with("trial_id,"));
  EXPECT_TRUE(written("report.json").starts_with("{\"format\""));
  EXPECT_TRUE(written("report").starts_with("# "));
  EXPECT_TRUE(written("report.txt", {"-f", "csv"}).starts_with("trial_id,"));
  EXPECT_TRUE(written("again.html", {"-f", "html"}).starts_with("<!"));
  const ProgramResult contradiction = report({"-f", "md", "-o", (folder_ / "other.html").string()});
  EXPECT_EQ(contradiction.exit_code, 2);
  EXPECT_NE(contradiction.error.find("--format md contradicts --output"), std::string::npos) << contradiction.error;
  EXPECT_FALSE(fs::exists(folder_ / "other.html"));
}

TEST_F(CliReportTest, AnEndingThatNoFormatHasIsRefused) {
  make_both();
  for (const char* name : {"x.txt", "x.pdf", "x.jsonl", "report.html.gz", "x."}) {
    const ProgramResult refused = report({"--no-limits", "-o", (folder_ / name).string()});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_NE(refused.error.find("give a name that ends in .html, .htm, .md, .markdown, .csv or .json, or --format"),
              std::string::npos)
        << refused.error;
    EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  }
}

// A sweep, `show`, `status` and all kinds of reports count trials by one rule and state one mean.
TEST_F(CliReportTest, AllThatTellsOfASweepTellsTheSameNumbers) {
  write_toys(folder_.path(), {toy_json({kRight, kNotANumber})});
  const ProgramResult swept = simulate(sweep({"--trials", "6"}));
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  const auto counts = [](const nlohmann::json& from) {
    TrialCounts read;
    for_each_count(read, [&](const TrialCount& count, std::int64_t& number) { number = from[count.name]; });
    return read;
  };
  const nlohmann::json document = json_of(report({"-f", "json", "--no-limits"}));
  const TrialCounts told = counts(document["database"]);
  EXPECT_GT(told.finals, 0);
  EXPECT_GT(told.trials, told.ok);
  EXPECT_EQ(counts(document["contexts"][0]), told);
  EXPECT_EQ(counts(document["contexts"][0]["kernels"][0]["problems"][0]), told);
  EXPECT_EQ(counts(document["sessions"][0]), told);
  EXPECT_EQ(counts(json_of(run({"status", "--db", database_, "--json"}))["last"][0]), told);
  EXPECT_EQ(counts(json_of(run({"show", "sessions", "--db", database_, "--json"}))[0]), told);
  const std::string markdown = report({"--no-limits"}).out;
  for (const std::string& text : {swept.out, markdown, run({"status", "--db", database_}).out}) {
    EXPECT_NE(text.find(counts_text(told)), std::string::npos) << text;
  }
  EXPECT_TRUE(document["contexts"][0]["workload"].is_null());
  EXPECT_EQ(swept.out.find("model time"), std::string::npos) << swept.out;
  const double mean = document["contexts"][0]["mean_speedup"];
  EXPECT_NE(swept.out.find(fmt::format("mean speedup over defaults: {:.2f}x (geometric, of 1 decided problem)", mean)),
            std::string::npos)
      << swept.out;
  EXPECT_NE(markdown.find(fmt::format("| 1 of 1 | **{:.2f}×** |", mean)), std::string::npos) << markdown;
}

bool has_nvrtc_for_sm_61() {
  const std::vector<NvrtcInfo> found = find_nvrtc();
  return std::any_of(found.begin(), found.end(), [](const NvrtcInfo& nvrtc) {
    return std::find(nvrtc.architectures.begin(), nvrtc.architectures.end(), "sm_61") != nvrtc.architectures.end();
  });
}

// Two measured configurations of transpose, by code for sm_61 on the example card, of that version of the kernel.
void store_transposes(const std::string& database, const std::string& source_hash, const std::string& nvrtc = "12.9") {
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  Store store(database, OpenMode::create);
  ContextIds ids = example_context(store);
  ids.kernel = store.kernel_id({"transpose", source_hash});
  ids.toolkit = store.toolkit_id({"nvrtc", nvrtc, "sm_61", "12.9"});
  ids.space = store.space_id("transpose", space.hash, space.json);
  const Problem problem = space.problem({{"ROWS", "4096"}, {"COLUMNS", "2048"}});
  ids.problem = store.problem_id(problem, 0, 1);
  const std::int64_t session = begin_example_session(store, ids);
  std::vector<std::pair<std::string, Value>> values;
  for (const Parameter& parameter : space.parameters) {
    values.emplace_back(parameter.name, parameter.name == "VECTOR" ? Value(std::int64_t{2})
                                                                   : parameter.values[parameter.default_index]);
  }
  for (const Config& config : {space.general_default(), Config(values)}) {
    Trial trial = example_trial(1);
    trial.problem = problem;
    trial.config = config;
    trial.is_default = config == space.general_default();
    trial.time = TimeSummary{trial.is_default ? 100.0 : 90.0, 80, 110, 30};
    store.add_trial(session, ids, trial);
  }
}

TEST_F(CliReportTest, WhatLimitsKernelsComesFromTheirCode) {
  if (!has_nvrtc_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  store_transposes(database_, KernelSource::load(data_folder("kernel_templates") / "transpose.cu").hash);
  const std::string cache = (folder_ / "cache").string();
  const ProgramResult without = report({"--cache", cache, "--no-compile"});
  EXPECT_NE(without.out.find("2 configurations: No estimate: its code is not in the cache"), std::string::npos)
      << without.out << without.error;
  const nlohmann::json json = json_of(report({"--cache", cache, "--format", "json"}));
  const nlohmann::json& limits = json["contexts"][0]["kernels"][0]["problems"][0]["limits"];
  ASSERT_EQ(limits.size(), 2U) << limits;
  EXPECT_EQ(limits[0]["role"], "winner");
  EXPECT_EQ(limits[0]["config"]["VECTOR"], 2);
  for (const nlohmann::json& limit : limits) {
    EXPECT_EQ(limit["missing"], false) << limit;
    EXPECT_GT(limit["registers"], 0);
    // 64 MiB at 484 GB/s take 138 microseconds.
    EXPECT_GT(limit["least"]["time_us"], 138);
    EXPECT_LT(limit["most"]["time_us"], 300);
    EXPECT_EQ(limit["most"]["limit"], "device memory");
  }
  EXPECT_NE(report({"--cache", cache, "--no-compile"}).out.find("Limited by device memory."), std::string::npos);
  EXPECT_EQ(report({"--cache", cache, "--no-limits"}).out.find("What limits"), std::string::npos);
  const ProgramResult page = report({"--cache", cache, "--format", "html"});
  EXPECT_NE(page.out.find("Limited by device memory."), std::string::npos);
  {
    Store store(database_, OpenMode::read_write);
    const ContextIds ids = example_context(store);
    Probe probe;
    probe.started_unix_ms = 1000;
    probe.values = {{ProbeQuantity::copy_gbps, 242, 241, 243, 0.01, 9, true},
                    {ProbeQuantity::conflict_slots, 0.9, 0.8, 1.0, 0, 9, true}};
    store.add_probe(probe, ids.device, ids.toolkit);
  }
  const nlohmann::json probed = json_of(report({"--cache", cache, "--format", "json"}));
  const nlohmann::json& measured = probed["contexts"][0]["kernels"][0]["problems"][0]["limits"][0];
  EXPECT_EQ(measured["measured_conflict"], 0.9);
  EXPECT_GT(measured["least"]["time_us"], 277) << "at half the bandwidth";
}

TEST_F(CliReportTest, WithoutACompilerItSaysWhatIsMissing) {
  store_transposes(database_, KernelSource::load(data_folder("kernel_templates") / "transpose.cu").hash, "1.0");
  const ProgramResult none = run({"report", "--db", database_, "--cache", (folder_ / "cache").string()},
                                 {{{"PASCALINE_NVRTC", "/nonexistent/libnvrtc.so"}}});
  EXPECT_EQ(none.exit_code, 0) << none.error;
  EXPECT_NE(none.out.find("its code cannot be compiled here"), std::string::npos) << none.out;
  EXPECT_NE(none.out.find("/nonexistent/libnvrtc.so"), std::string::npos) << none.out;
}

TEST_F(CliReportTest, TheVariableChoosesTheCompilerOfTheEstimates) {
  // Of the version that measured, if it is here; the variable is above that.
  std::string measured = "12.9";
  for (const NvrtcInfo& nvrtc : find_nvrtc()) {
    measured = compiles_for(nvrtc, "sm_61") ? nvrtc.version : measured;
  }
  store_transposes(database_, KernelSource::load(data_folder("kernel_templates") / "transpose.cu").hash, measured);
  const ProgramResult none = run({"report", "--db", database_, "--cache", (folder_ / "cache").string()},
                                 {{{"PASCALINE_NVRTC", "/nonexistent/libnvrtc.so"}}});
  EXPECT_NE(none.out.find("2 configurations: No estimate: its code cannot be compiled here"), std::string::npos)
      << none.out;
}

TEST_F(CliReportTest, AnotherCompilerThanTheOneThatMeasuredIsSaid) {
  if (!has_nvrtc_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  store_transposes(database_, KernelSource::load(data_folder("kernel_templates") / "transpose.cu").hash, "1.0");
  const ProgramResult text = report({"--cache", test_cache().string()});
  EXPECT_NE(text.out.find(" What was measured was built by nvrtc 1.0, not by this compiler."), std::string::npos)
      << text.out << text.error;
  const nlohmann::json json = json_of(report({"--cache", test_cache().string(), "--format", "json"}));
  EXPECT_EQ(json["contexts"][0]["kernels"][0]["problems"][0]["limits"][0]["measured_compiler"], "nvrtc 1.0");
}

TEST_F(CliReportTest, KernelsMayLieInAFolderOfTheirOwn) {
  const fs::path kernels = folder_ / "kernels";
  fs::copy(data_folder("kernel_templates"), kernels, fs::copy_options::recursive);
  std::ofstream(kernels / "transpose.cu", std::ios::app) << "// changed\n";
  store_transposes(database_, KernelSource::load(kernels / "transpose.cu").hash);
  const std::vector<std::string> words{"--cache", (folder_ / "cache").string(), "--no-compile"};
  EXPECT_NE(report(words).out.find("source has changed since it was measured"), std::string::npos);
  std::vector<std::string> there = words;
  there.insert(there.end(), {"--kernels", kernels.string()});
  EXPECT_EQ(report(there).out.find("source has changed"), std::string::npos) << report(there).out;
  expect_fault(report({"--kernels", (folder_ / "none").string()}), 2, {"--kernels", "none"});
}

TEST_F(CliReportTest, CodeComesFromABundleFirst) {
  if (!has_nvrtc_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  const Toolchain toolchain = Toolchain::find("sm_61");
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / "transpose.cu");
  store_transposes(database_, source.hash, toolchain.version());
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const DeviceLimits limits = *limits_of_architecture("sm_61");
  const BoundSpace bound(space, space.problem({{"ROWS", "4096"}, {"COLUMNS", "2048"}}), limits);
  const CompileRequest request = compile_request(bound, space.general_default(), source, BinaryKind::cubin, "sm_61");
  const CompileResult made = toolchain.compile(request);
  ASSERT_TRUE(made.ok) << made.reason;
  Bundle bundle;
  bundle.program_version = "0.1.0";
  bundle.architecture = "sm_61";
  bundle.toolkits = {{"nvrtc", toolchain.version(), "sm_61", ""}};
  bundle.limits = limits;
  bundle.kernels = {{"transpose",
                     source.hash,
                     space.hash,
                     request.function,
                     {},
                     {{request.defines, request.options, made.binary.resources, 0, 0, made.binary.code}}}};
  const std::string file = (folder_ / "x.pasc").string();
  write_bytes(file, encode_bundle(bundle));
  const ProgramResult text = report({"--bundle", file, "--no-compile", "--cache", (folder_ / "cache").string()});
  EXPECT_NE(text.out.find("| default |"), std::string::npos) << text.out << text.error;
  EXPECT_NE(text.out.find("1 configuration: No estimate: its code is not in the cache"), std::string::npos) << text.out;
  write_bytes(file, "no bundle");
  expect_fault(report({"--bundle", file}), 1, {"x.pasc"});
}

// What a server on loopback answers to a GET, or nothing while it does not listen.
std::string got_from(int port, const std::string& path) {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    (void)!::write(connection, request.data(), request.size());
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::read(connection, part.data(), part.size())) > 0;) {
      answer.append(part.data(), static_cast<std::size_t>(size));
    }
  }
  ::close(connection);
  return answer;
}

TEST_F(CliReportTest, ServeTellsLimitsOfCodeInTheCache) {
  if (!has_nvrtc_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  store_transposes(database_, KernelSource::load(data_folder("kernel_templates") / "transpose.cu").hash);
  const std::string cache = (folder_ / "cache").string();
  ASSERT_EQ(report({"--cache", cache}).exit_code, 0) << "fills the cache";
  const int port = 20'000 + ::getpid() % 20'000;
  const int server =
      start_program(folder_.path(), {"serve", "--db", database_, "--port", std::to_string(port), "--cache", cache});
  std::string answer;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (answer.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    answer = got_from(port, "/document.json");
  }
  ::kill(server, SIGTERM);
  EXPECT_EQ(wait_child(server), 0);
  EXPECT_NE(answer.find("Limited by device memory."), std::string::npos) << answer.substr(0, 2000);
}

TEST_F(CliReportTest, OfAnotherVersionOfAKernelThereIsNoEstimate) {
  store_transposes(database_, "another");
  EXPECT_NE(report({}).out.find("2 configurations: No estimate: the kernel's source has changed"), std::string::npos);
}

TEST_F(CliReportTest, AgainstAnotherDatabase) {
  make_both();
  const ProgramResult result = report({"--against", other_});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_NE(result.out.find("Now is tuned.db, before is other.db. **1 slower, 0 faster**, 1 the same"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("winner: TILE 8 → 16"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("| Device | Built by |"), std::string::npos) << result.out;
  const ProgramResult narrowed = report({"--against", other_, "--kernel", "softmax"});
  EXPECT_NE(narrowed.out.find("**0 slower, 0 faster**"), std::string::npos) << narrowed.out;
}

TEST_F(CliReportTest, SessionsOfOneDatabase) {
  make_two_sessions();
  const ProgramResult slower = report({"--session", "2", "--against-session", "1"});
  EXPECT_EQ(slower.exit_code, 0) << slower.error;
  EXPECT_NE(slower.out.find("Now is session 2 of tuned.db, before is session 1 of tuned.db. **1 slower, 0 faster**"),
            std::string::npos)
      << slower.out;
  const ProgramResult faster = report({"--session", "1", "--against-session", "2"});
  EXPECT_NE(faster.out.find("**0 slower, 1 faster**"), std::string::npos) << faster.out;
  const ProgramResult alone = report({"--session", "2"});
  EXPECT_EQ(alone.exit_code, 0) << alone.error;
  EXPECT_NE(alone.out.find("1 measurement in finals"), std::string::npos) << alone.out;
  EXPECT_EQ(alone.out.find("Comparison"), std::string::npos) << alone.out;
  const std::string uuid = Store(database_, OpenMode::read_only).sessions().back().uuid;
  const ProgramResult of_other =
      report({"--session", "2", "--against", database_, "--against-session", uuid.substr(0, 8)});
  EXPECT_NE(of_other.out.find("before is session 1 of tuned.db. **1 slower"), std::string::npos) << of_other.out;
}

TEST_F(CliReportTest, RegressionFailsOnlyBeyondThePercentage) {
  make_both();
  const ProgramResult failed = report({"--against", other_, "--fail-on-regression", "5"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.error, "1 problem is slower by more than 5 %\n");
  EXPECT_NE(failed.out.find("### Slower: 1"), std::string::npos) << "it is written all the same";
  const ProgramResult passed = report({"--against", other_, "--fail-on-regression", "30"});
  EXPECT_EQ(passed.exit_code, 0);
  EXPECT_EQ(passed.error, "");
  const std::string file = (folder_ / "comparison.md").string();
  EXPECT_EQ(report({"--against", other_, "--fail-on-regression", "5", "-o", file}).exit_code, 3);
  EXPECT_NE(bytes_of(file).find("### Slower: 1"), std::string::npos);
}

TEST_F(CliReportTest, RegressionsOfNothingAreNoPass) {
  make_both();
  expect_fault(report({"--against", other_, "--fail-on-regression", "5", "--kernel", "matmull"}), 1,
               {"--fail-on-regression", "nothing to judge"});
}

TEST_F(CliReportTest, DatabasesAreNeverWrittenOver) {
  make_both();
  fs::create_hard_link(database_, folder_ / "same.md");
  const std::string before = bytes_of(database_);
  const std::string other_before = bytes_of(other_);
  expect_fault(report({"--format", "md", "-o", database_}), 1, {database_, "is the database in use"});
  expect_fault(report({"-o", (folder_ / "same.md").string()}), 1, {"same.md", "is the database"});
  expect_fault(report({"--against", other_, "--format", "md", "-o", other_}), 1, {other_, "is the database in use"});
  EXPECT_EQ(bytes_of(database_), before);
  EXPECT_EQ(bytes_of(other_), other_before);
}

TEST_F(CliReportTest, WhatIsGivenIsNotNothing) {
  make_two_sessions();
  expect_fault(report({"--session", ""}), 2, {"--session", "empty"});
  expect_fault(report({"--session", "1", "--against-session", ""}), 2, {"--against-session", "empty"});
  expect_fault(report({"--against", ""}), 2, {"--against", "empty"});
  expect_fault(report({"--format", "html", "--spaces", (folder_ / "none").string()}), 2, {"--spaces", "none"});
  expect_fault(report({"--title", ""}), 2, {"--title", "empty"});
  expect_fault(run({"serve", "--db", database_, "--host", ""}), 2, {"--host", "empty"});
  expect_fault(run({"serve", "--db", database_, "--port", "65536"}), 2, {"--port"});
  expect_fault(run({"serve", "--db", other_, "--port", "0"}), 1, {other_, "no such file"});
}

TEST_F(CliReportTest, NamesThatNothingHasAreFaults) {
  make_both();
  expect_fault(report({"--kernel", "matmal"}), 1,
               {"has nothing of a kernel 'matmal' (did you mean 'matmul'?)", "matmul"});
  expect_fault(report({"--device-name", "GTX"}), 1, {"has nothing of a device 'GTX'", "it has "});
  for (const char* what : {"winners", "trials"}) {
    expect_fault(run({"show", what, "--db", database_, "--kernel", "softmax", "--json"}), 1,
                 {"has nothing of a kernel 'softmax'; it has matmul"});
  }
}

TEST_F(CliReportTest, PageAndDocumentHoldTheComparison) {
  make_both();
  const nlohmann::json document = json_of(report({"--against", other_, "--format", "json"}));
  EXPECT_EQ(document["comparison"]["summary"]["slower"], 1);
  EXPECT_EQ(document["comparison"]["b"]["label"], "other.db");
  const ProgramResult page = report({"--against", other_, "--format", "html"});
  EXPECT_EQ(page.exit_code, 0) << page.error;
  EXPECT_TRUE(page.out.starts_with("<!doctype html>"));
  EXPECT_NE(page.out.find(R"("verdict":"slower")"), std::string::npos);
  make_two_sessions();
  const nlohmann::json one = json_of(report({"--session", "2", "--format", "json"}));
  ASSERT_EQ(one["sessions"].size(), 1U);
  EXPECT_EQ(one["sessions"][0]["id"], 2);
  EXPECT_EQ(one["contexts"][0]["trials"], one["sessions"][0]["trials"]);
}

TEST_F(CliReportTest, SessionThatDoesNotExistNamesThoseThatDo) {
  make_two_sessions();
  expect_fault(report({"--session", "7"}), 1, {database_, "no session '7'", "it has 2 (begun ", ", 1 (begun "});
  expect_fault(report({"--session", "2", "--against-session", "ffff"}), 1, {"no session 'ffff'", "it has 2"});
  { const Store empty(other_, OpenMode::create); }
  expect_fault(report({"--against", other_, "--against-session", "1"}), 1, {other_, "no session '1'", "it has none"});
}

TEST_F(CliReportTest, ComparisonsThatAreNoneAreRefused) {
  make_two_sessions();
  expect_fault(report({"--against", database_}), 1, {"tuned.db would be compared with itself"});
  fs::create_symlink(database_, folder_ / "link.db");
  expect_fault(report({"--against", (folder_ / "link.db").string()}), 1, {"would be compared with itself"});
  expect_fault(report({"--session", "1", "--against-session", "1"}), 1, {"session 1 of tuned.db", "with itself"});
  expect_fault(report({"--against-session", "1"}), 2, {"--against-session", "--session", "--against"});
  expect_fault(report({"--fail-on-regression", "5"}), 2, {"--fail-on-regression", "--against"});
  expect_fault(report({"--session", "1", "--fail-on-regression", "5"}), 2, {"--fail-on-regression", "comparison"});
  expect_fault(report({"--session", "1", "--against-session", "2", "--format", "csv"}), 2, {"CSV", "md, html or json"});
  for (const char* percent : {"-1", "many", "nan", "1e9", ""}) {
    expect_fault(report({std::string("--fail-on-regression=") + percent}), 2, {"--fail-on-regression"});
  }
}

TEST_F(CliReportTest, OtherDatabaseThatIsMissingOrNone) {
  make_two_sessions();
  expect_fault(report({"--against", other_}), 1, {other_, "no such file"});
  EXPECT_FALSE(fs::exists(other_));
  write_bytes(other_, "dear diary\n");
  expect_fault(report({"--against", other_}), 1, {other_, "not an SQLite database"});
  expect_fault(report({"--against", kernels_}), 1, {kernels_, "folder"});
  const std::string file = (folder_ / "never.md").string();
  expect_fault(report({"--against", other_, "-o", file}), 1, {other_});
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace pascaline::testing
