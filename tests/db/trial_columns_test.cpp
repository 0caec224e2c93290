#include "db/trial_columns.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "db/merge.hpp"
#include "db/migrations.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

std::set<std::string> listed_columns() {
  std::set<std::string> names;
  std::istringstream list(trial_columns());
  for (std::string name; std::getline(list, name, ',');) {
    names.insert(name.substr(name.find_first_not_of(' ')));
  }
  return names;
}

TEST(TrialColumnsTest, TableHasAColumnForEveryFieldAndNoOther) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  prepare_schema(database, current_schema());
  std::set<std::string> columns;
  SQLite::Statement row(database,
                        "SELECT name FROM pragma_table_info('trials') WHERE name <> 'id' AND name NOT LIKE "
                        "'%/_id' ESCAPE '/'");
  while (row.executeStep()) {
    columns.insert(row.getColumn(0).getString());
  }
  EXPECT_EQ(listed_columns(), columns);
  EXPECT_EQ(trial_column_count(), static_cast<int>(columns.size()));
}

TEST(TrialColumnsTest, ParametersAreAsManyAsAskedFor) {
  EXPECT_EQ(parameter_list(0), "");
  EXPECT_EQ(parameter_list(1), "?");
  EXPECT_EQ(parameter_list(3), "?,?,?");
}

TEST(TrialColumnsTest, TheTrialToCheckWithHasNoTwoValuesAlike) {
  const std::vector<std::string> fields = fields_of(distinct_trial());
  const std::vector<std::string> usual = fields_of(Trial());
  ASSERT_EQ(fields.size(), usual.size());
  std::set<std::string> values;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    values.insert(fields[i].substr(fields[i].find(": ")));
    // What succeeds is what succeeded by default.
    EXPECT_TRUE(fields[i] != usual[i] || fields[i] == "status: ok") << fields[i];
  }
  EXPECT_EQ(values.size(), fields.size());
}

TEST(TrialColumnsTest, EveryFieldIsStoredReadAndMerged) {
  const TemporaryFolder folder;
  const Trial trial = distinct_trial();
  Store other(folder / "other.db", OpenMode::create);
  const ContextIds context = example_context(other);
  other.add_trial(begin_example_session(other, context), context, trial);
  expect_equal(other.trials({}).at(0).trial, trial);
  Store mine(folder / "mine.db", OpenMode::create);
  (void)merge_database(folder / "other.db", mine);
  expect_equal(mine.trials({}).at(0).trial, trial);
}

TEST(TrialColumnsTest, WhatIsAbsentStaysAbsentAndNotANumberDoesNot) {
  const TemporaryFolder folder;
  Store store(folder / "a.db", OpenMode::create);
  const ContextIds context = example_context(store);
  const std::int64_t session = begin_example_session(store, context);
  Trial trial = failed_trial(1, TrialStatus::wrong_result, "why");
  store.add_trial(session, context, trial);
  trial.max_error = std::numeric_limits<double>::quiet_NaN();
  store.add_trial(session, context, trial);
  const auto stored = store.trials({});
  EXPECT_FALSE(stored.at(0).trial.max_error);
  EXPECT_FALSE(stored.at(0).trial.time);
  EXPECT_FALSE(stored.at(0).trial.energy_mj);
  EXPECT_EQ(stored.at(1).trial.max_error, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace pascaline::testing
