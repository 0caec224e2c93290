#include "db/exchange/import.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "db/merge.hpp"
#include "tests/db/exchange/samples.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

/// Results of other tuners in a database.
class ImportTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path file_ = folder_ / "cache.json";
  fs::path database_ = folder_ / "others.db";

  void SetUp() override { write_bytes(file_, kernel_tuner_sample()); }
  [[nodiscard]] ImportedResults results(const fs::path& file) const {
    return read_results(file, "pascaline import").results;
  }
  [[nodiscard]] std::int64_t count(const std::string& table) const {
    return SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM " + table).getInt64();
  }
};

TEST_F(ImportTest, TrialsComeWithTheirTimesAndReasons) {
  const RecordedSpace space = read_recorded_space(file_);
  Store store(database_, OpenMode::create);
  const auto session = store.add_results(results(file_));
  ASSERT_TRUE(session);
  const auto trials = store.trials({.session_id = session, .with_samples = true});
  ASSERT_EQ(trials.size(), space.trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i].trial;
    const RecordedTrial& recorded = space.trials[i];
    EXPECT_EQ(trial.config, space.config(recorded));
    EXPECT_EQ(trial.status, recorded.status);
    EXPECT_EQ(trial.reason, recorded.reason);
    EXPECT_EQ(trial.compile_ms, recorded.compile_ms);
    EXPECT_EQ(trial.measure_ms, recorded.measure_ms + recorded.framework_ms);
    EXPECT_EQ(trial.stage, TrialStage::search);
    EXPECT_FALSE(trial.is_default);
    ASSERT_EQ(trial.time.has_value(), recorded.status == TrialStatus::ok);
    if (trial.time) {
      EXPECT_EQ(trial.samples.size(), recorded.samples_us.size());
      EXPECT_EQ(trial.time->count, static_cast<int>(recorded.samples_us.size()));
      EXPECT_LE(trial.time->low_us, trial.time->median_us);
      EXPECT_GE(trial.time->high_us, trial.time->median_us);
      EXPECT_GT(trial.time->low_us, 0);
    }
    EXPECT_EQ(trials[i].kernel.source_hash.rfind("imported:", 0), 0U);
    EXPECT_EQ(trials[i].toolkit.compiler, "kernel_tuner");
    EXPECT_EQ(trials[i].device.kind, "foreign");
  }
  EXPECT_TRUE(store.winners("", nullptr).empty());
}

TEST_F(ImportTest, SessionTellsWhereItIsFrom) {
  Store store(database_, OpenMode::create);
  const auto session = store.add_results(results(file_));
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0].id, session);
  EXPECT_EQ(sessions[0].imported_from, "cache.json");
  EXPECT_EQ(sessions[0].state, "finished");
  EXPECT_FALSE(sessions[0].alive);
  EXPECT_FALSE(sessions[0].has_plan);
  EXPECT_EQ(sessions[0].command_line, "pascaline import");
  EXPECT_EQ(sessions[0].uuid.size(), 36U);
  EXPECT_EQ(nlohmann::json::parse(sessions[0].options_json)["format"], "kernel_tuner");
  EXPECT_FALSE(store_error([&] { store.resume_session(*session); }).empty());
}

TEST_F(ImportTest, TheSameContentIsImportedOnce) {
  Store store(database_, OpenMode::create);
  ASSERT_TRUE(store.add_results(results(file_)));
  EXPECT_FALSE(store.add_results(results(file_)));
  write_bytes(folder_ / "renamed.json.gz", packed(kernel_tuner_sample()));
  EXPECT_FALSE(store.add_results(results(folder_ / "renamed.json.gz"))) << "packed or not";
  EXPECT_EQ(count("sessions"), 1);
  EXPECT_EQ(count("imports"), 1);
  write_bytes(file_, kernel_tuner_sample() + "\n");
  EXPECT_TRUE(store.add_results(results(file_)));
  EXPECT_EQ(count("kernels"), 2) << "another content is another source";
}

TEST_F(ImportTest, MergedDatabasesHoldAFileOnce) {
  const fs::path other = folder_ / "other.db";
  { ASSERT_TRUE(Store(other, OpenMode::create).add_results(results(file_))); }
  Store store(database_, OpenMode::create);
  EXPECT_EQ(merge_database(other, store).sessions, 1);
  EXPECT_FALSE(store.add_results(results(file_))) << "it came by merging";
  EXPECT_EQ(store.sessions().at(0).imported_from, "cache.json");
  const fs::path third = folder_ / "third.db";
  Store own(third, OpenMode::create);
  ASSERT_TRUE(own.add_results(results(file_)));
  EXPECT_FALSE(merge_database(other, own).changed()) << "imported here by itself";
}

TEST_F(ImportTest, OneContentUnderTwoNamesIsTwoSessionsWhenMerged) {
  const fs::path one = folder_ / "one.csv";
  const fs::path two = folder_ / "two.csv";
  write_bytes(one, csv_sample());
  write_bytes(two, csv_sample());
  EXPECT_NE(results(one).session.uuid, results(two).session.uuid) << "a table is named by its file";
  const fs::path other = folder_ / "other.db";
  { ASSERT_TRUE(Store(other, OpenMode::create).add_results(results(two))); }
  Store store(database_, OpenMode::create);
  ASSERT_TRUE(store.add_results(results(one)));
  EXPECT_FALSE(store.add_results(results(two))) << "imported before";
  EXPECT_EQ(merge_database(other, store).sessions, 1);
  EXPECT_FALSE(merge_database(other, store).changed());
  const std::size_t whole = results(one).trials.size();
  for (const SessionRow& session : store.sessions()) {
    const auto trials = store.trials({.session_id = session.id});
    ASSERT_EQ(trials.size(), whole) << session.uuid;
    for (const StoredTrial& trial : trials) {
      EXPECT_EQ(trial.kernel.name, trials.front().kernel.name);
    }
  }
}

TEST_F(ImportTest, NothingOfItIsKnownOfADeviceHere) {
  Store store(database_, OpenMode::create);
  const ImportedResults imported = results(file_);
  store.add_results(imported);
  ContextIds context = example_context(store);
  context.problem = store.problem_id(imported.problem, 0, 0);
  for (const char* kind : {"cuda", "host"}) {
    DeviceRow device = imported.device;
    device.kind = kind;
    context.device = store.device_id(device);
    EXPECT_TRUE(store.known_trials(context).empty());
    EXPECT_EQ(store.trial_costs(context.device, imported.kernel.name).compiled, 0);
    EXPECT_TRUE(store.winners("", &device).empty());
  }
}

TEST_F(ImportTest, ResultsMustBeOfAForeignDevice) {
  Store store(database_, OpenMode::create);
  ImportedResults imported = results(file_);
  imported.device = example_device();
  EXPECT_NE(store_error([&] { store.add_results(imported); }).find("fault of the program"), std::string::npos);
  EXPECT_EQ(count("imports") + count("sessions") + count("devices"), 0);
}

TEST_F(ImportTest, FailureInTheMiddleLeavesNothing) {
  Store store(database_, OpenMode::create);
  ImportedResults broken = results(file_);
  ASSERT_FALSE(broken.trials.at(2).time);
  broken.trials[2].status = TrialStatus::ok;  // which no trial without a time may be
  EXPECT_NE(store_error([&] { store.add_results(broken); }).find("breaks the schema's rules"), std::string::npos);
  for (const char* table : {"imports", "sessions", "devices", "toolkits", "kernels", "spaces", "problems", "trials"}) {
    EXPECT_EQ(count(table), 0) << table;
  }
  EXPECT_TRUE(store.add_results(results(file_)));
}

TEST_F(ImportTest, ProblemIsMadeOfTheSizes) {
  RecordedSpace space;
  space.name = "stem";
  space.format = "t4";
  const std::vector<std::pair<std::string, std::string>> sizes{
      {"[4096, 4096]", "stem X=4096 Y=4096"},
      {"(256,)", "stem X=256"},
      {"1024x768x3", "stem X=1024 Y=768 Z=3"},
      {"4096", "stem X=4096"},
      {"", "stem"},
      {"[1,2,3,4]", "stem"},
      {"[\"n/2\", 4]", "stem"},
      {"[4.5]", "stem"},
      {"[-4]", "stem"},
      {"99999999999999999999", "stem"},
      {"ROWS=64 WIDTH=256 STORAGE=float32", "stem ROWS=64 WIDTH=256 STORAGE=float32"},
      {"STORAGE=float16", "stem STORAGE=float16"},
      {"ROWS=64 STORAGE=float16 DATA=00ff", "stem ROWS=64 STORAGE=float16 DATA=00ff"},
      {"ROWS=64 DATA=xyz", "stem"},
      {"ROWS=64 DATA=1 DATA=2", "stem"},
      {"N=99999999999999999999", "stem"},
      {"N=64 N=32", "stem"},
      {"N=64 T=complex", "stem"},
      {"1N=64", "stem"},
  };
  for (const auto& [size, text] : sizes) {
    space.problem_size = size;
    EXPECT_EQ(imported_results(space, "x", std::string(32, 'a'), "").problem.text(), text) << size;
  }
  EXPECT_EQ(imported_results(space, "x", std::string(32, 'a'), "").device.name, "unknown device");
}

TEST_F(ImportTest, TimeOfTheFileStandsInWhereThereAreNoUsableSamples) {
  RecordedSpace space;
  space.name = "stem";
  space.format = "csv";
  space.parameters = {{"A", {std::int64_t{1}, std::int64_t{2}}}};
  space.trials.resize(2);
  space.trials[0].indices = {0};
  space.trials[0].time_us = 12.5;
  space.trials[1].indices = {1};
  space.trials[1].time_us = 13.5;
  space.trials[1].samples_us = {13.5, 0};
  const ImportedResults imported = imported_results(space, "x", std::string(32, 'a'), "");
  expect_equal(imported.trials[0].time, TimeSummary{12.5, 12.5, 12.5, 0});
  expect_equal(imported.trials[1].time, TimeSummary{13.5, 13.5, 13.5, 0});
  EXPECT_TRUE(imported.trials[1].samples.empty());
  EXPECT_EQ(imported.session.started_unix_ms, 0) << "unknown";
  EXPECT_TRUE(Store(database_, OpenMode::create).add_results(imported));
}

TEST_F(ImportTest, FaultsOfTheFileNameIt) {
  const auto fault = [&](const std::string& bytes) -> std::string {
    write_bytes(file_, bytes);
    try {
      std::ignore = read_results(file_, "");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(fault("dear diary").find(file_.string()), std::string::npos);
  EXPECT_NE(fault("{").find(file_.string()), std::string::npos);
  EXPECT_NE(fault("").find(file_.string()), std::string::npos);
  std::ignore = Store(database_, OpenMode::create);
  EXPECT_NE(fault(bytes_of(database_)).find("pascaline merge"), std::string::npos);
  fs::remove(file_);
  EXPECT_THROW(std::ignore = read_results(file_, ""), Error);
}

TEST_F(ImportTest, RecordedSpacesOfRealTunersAreImported) {
  const auto folder = shared_fixture("search/kernel_tuner_cache");
  if (!folder) {
    GTEST_SKIP() << "the larger fixtures are not here (PASCALINE_SHARED_FIXTURES)";
  }
  Store store(database_, OpenMode::create);
  for (const char* name : {"convolution_milo_A4000.json.gz", "convolution_milo_A4000_T4.json.gz"}) {
    const ImportedResults imported = results(*folder / name);
    const auto session = store.add_results(imported);
    ASSERT_TRUE(session) << name;
    EXPECT_GT(imported.trials.size(), 1000U) << name;
    EXPECT_EQ(store.trials({.session_id = session}).size(), imported.trials.size()) << name;
    EXPECT_GT(store.sessions().at(0).spent_ms, 0) << name;
  }
}

}  // namespace
}  // namespace pascaline::testing
