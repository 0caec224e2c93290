#include "tests/tuner/sweep/sweep_faults.hpp"

#include <SQLiteCpp/Database.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

struct Stat {
  int parent = 0;
  bool ended = true;
  double processor_s = 0;  // in user mode
};

// The second field of `stat` is a name in parentheses that may hold anything.
Stat stat_of(int process) {
  const std::string text = bytes_of("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = text.rfind(')');
  Stat stat;
  if (name_end != std::string::npos) {
    std::istringstream fields(text.substr(name_end + 1));
    char state = 'X';
    fields >> state >> stat.parent;
    stat.ended = state == 'Z' || state == 'X';
    constexpr int kFieldsBeforeTime = 9;
    std::string skipped;
    for (int field = 0; field < kFieldsBeforeTime; ++field) {
      fields >> skipped;
    }
    double ticks = 0;
    fields >> ticks;
    stat.processor_s = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return stat;
}

}  // namespace

std::vector<LiveProcess> processes_below(int process) {
  std::multimap<int, int> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int id = std::atoi(entry.path().filename().c_str());
    const Stat stat = id > 0 ? stat_of(id) : Stat{};
    if (!stat.ended) {
      children.emplace(stat.parent, id);
    }
  }
  std::vector<LiveProcess> found;
  std::vector<int> parents{process};
  while (!parents.empty()) {
    const auto [begin, end] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto child = begin; child != end; ++child) {
      std::string words = bytes_of("/proc/" + std::to_string(child->second) + "/cmdline");
      std::replace(words.begin(), words.end(), '\0', ' ');
      found.push_back({child->second, std::move(words)});
      parents.push_back(child->second);
    }
  }
  return found;
}

std::vector<LiveProcess> workers_of(int process, std::string_view text) {
  std::vector<LiveProcess> found;
  std::ignore = wait_until(
      [&] {
        found = processes_below(process);
        std::erase_if(found, [&](const LiveProcess& live) { return live.words.find(text) == std::string::npos; });
        return !found.empty() || stat_of(process).ended;
      },
      std::chrono::seconds(60));
  return found;
}

bool wait_until_kernel_runs(int sweep) {
  constexpr double kLongerThanPreparation = 1;
  return wait_until([&] {
    return std::ranges::any_of(workers_of(sweep, "measure-worker"), [](const LiveProcess& worker) {
      return stat_of(worker.process).processor_s > kLongerThanPreparation;
    });
  });
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

bool all_gone(const std::vector<LiveProcess>& processes) {
  return wait_until(
      [&] {
        return std::all_of(processes.begin(), processes.end(),
                           [](const LiveProcess& live) { return stat_of(live.process).ended; });
      },
      std::chrono::seconds(10));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void SweepFaultsTest::write_space(const std::vector<Fault>& faults, const std::vector<int>& blocks) const {
  nlohmann::json json = toy_json(faults);
  json["parameters"][0]["values"] = blocks;
  write_toys(folder_.path(), {json});
}

std::vector<std::string> SweepFaultsTest::command(const std::vector<std::string>& more) const {
  const std::string folder = folder_.path().string();
  std::vector<std::string> words{"sweep",
                                 "--kernels",
                                 folder,
                                 "--spaces",
                                 folder,
                                 "--kernel",
                                 "toy",
                                 "--problem",
                                 "N=5000",
                                 "--device",
                                 "emulator",
                                 "--db",
                                 database_.string(),
                                 "--jobs",
                                 "1",
                                 "--warm-cache",
                                 "--min-samples",
                                 "100000",
                                 "--max-samples",
                                 "100000",
                                 "--sample-budget-ms",
                                 std::to_string(sample_ms_),
                                 "--race-error",
                                 "0",
                                 "--min-gain",  // all are tried, whatever a busy machine makes of their times
                                 "0",
                                 "--rounds",
                                 "2",
                                 "--finalists",
                                 "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> SweepFaultsTest::resume(const std::vector<std::string>& more) const {
  const std::string folder = folder_.path().string();
  std::vector<std::string> words{"sweep",     "--resume", "--db",     database_.string(),
                                 "--kernels", folder,     "--spaces", folder};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<StoredTrial> SweepFaultsTest::trials(TrialStage stage) const {
  try {
    std::vector<StoredTrial> trials = Store(database_, OpenMode::read_only).trials({});
    std::erase_if(trials, [&](const StoredTrial& trial) { return trial.trial.stage != stage; });
    return trials;
  } catch (const Error&) {
    return {};
  }
}

std::set<std::string> SweepFaultsTest::tried() const {
  std::set<std::string> configs;
  for (const StoredTrial& trial : trials()) {
    EXPECT_TRUE(configs.insert(trial.trial.config.text()).second) << trial.trial.config.text() << " twice";
  }
  return configs;
}

std::map<TrialStatus, int> SweepFaultsTest::statuses() const {
  std::map<TrialStatus, int> counts;
  for (const StoredTrial& trial : trials()) {
    ++counts[trial.trial.status];
  }
  return counts;
}

int SweepFaultsTest::number(const std::string& sql) const {
  return SQLite::Database(database_.string(), SQLite::OPEN_READONLY, 5000).execAndGet(sql).getInt();
}

std::string SweepFaultsTest::last_state() const { return Store(database_, OpenMode::read_only).sessions().at(0).state; }

void SweepFaultsTest::expect_sound() const {
  SQLite::Database database(database_.string(), SQLite::OPEN_READONLY, 5000);
  EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM attempts").getInt(), 0);
}

void SweepFaultsTest::expect_complete(std::size_t configurations) const {
  expect_sound();
  EXPECT_EQ(tried().size(), configurations);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_EQ(number("SELECT count(*) FROM winners"), 1);
}

}  // namespace pascaline::testing
