#include "tests/tuner/simulation/simulated_fixture.hpp"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

void SimulatedSweepTest::use_space(const std::vector<Fault>& faults, const std::vector<int>& blocks) {
  nlohmann::json json = toy_json(faults);
  json["parameters"][0]["values"] = blocks;
  write_toys(folder_.path(), {json});
  space_ = Space::load(folder_ / "toy.json");
}

std::map<TrialStatus, int> SimulatedSweepTest::statuses() const {
  std::map<TrialStatus, int> counts;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    ++counts[trial.trial.status];
  }
  return counts;
}

int SimulatedSweepTest::usable() const {
  std::map<TrialStatus, int> counts = statuses();
  return counts[TrialStatus::ok] + counts[TrialStatus::dropped];
}

bool SimulatedSweepTest::noted(const std::string& text) const {
  return std::ranges::any_of(notes_, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::optional<TrialStage> SimulatedSweepTest::stage_of_winner(const std::string& n) const {
  for (const Winner& winner : Store(database_, OpenMode::read_only).winners("toy", nullptr)) {
    if (std::to_string(winner.trial.problem.dimension("N")) == n) {
      return winner.trial.stage;
    }
  }
  return std::nullopt;
}

void SimulatedSweepTest::expect_complete(std::size_t configurations) const {
  expect_sound();
  EXPECT_EQ(tried().size(), configurations);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_EQ(Store(database_, OpenMode::read_only).winners("toy", nullptr).size(), 1U);
}

void SimulatedSweepTest::kill() const {
  for (const char* const end : {"", "-wal"}) {
    if (std::filesystem::exists(database_.string() + end)) {
      std::filesystem::copy_file(database_.string() + end, (folder_ / "killed.db").string() + end);
    }
  }
  throw KilledSweep();
}

bool SimulatedSweepTest::ends_unkilled(const std::function<void()>& sweep) const {
  try {
    sweep();
    return true;
  } catch (const KilledSweep&) {
    // Its exception has it store that it failed; a process that is killed stores nothing more.
    for (const char* const end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(database_.string() + end);
      if (std::filesystem::exists((folder_ / "killed.db").string() + end)) {
        std::filesystem::rename((folder_ / "killed.db").string() + end, database_.string() + end);
      }
    }
    SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
        .exec("UPDATE sessions SET process_start = process_start - 1");  // of another process with the same number
    return false;
  }
}

}  // namespace pascaline::testing
