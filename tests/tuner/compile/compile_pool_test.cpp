#include "tuner/compile/compile_pool.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/sanitizer.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

KernelSource source_of(const std::string& text) { return {"pool.cu", text, {}, hash_hex(text)}; }

// A constant that takes the compiler minutes: a loop at compile time whose trips GCC counts one by one.
constexpr const char* kEndless = R"(
#if SLOW
constexpr long spin(long n) { long x = n; for (long i = 0; i < n; ++i) { x = x * 7 % 1000003 + i; } return x; }
template <int N> struct Spin { static constexpr long value = spin(200000 + N) + Spin<N - 1>::value; };
template <> struct Spin<0> { static constexpr long value = 0; };
constexpr long kSpin = Spin<800>::value;
#else
constexpr long kSpin = 1;
#endif
static_assert(VALUE != 13, "unlucky");
extern "C" __global__ void pool(int* out) { out[0] = VALUE + static_cast<int>(kSpin); }
)";

class CompilePoolTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  KernelSource source_ = source_of(kEndless);

  [[nodiscard]] CompilePoolOptions options(std::size_t workers = 2) const {
    CompilePoolOptions options;
    options.workers = workers;
    options.program = PASCALINE_TEST_PROGRAM;
    options.cache_folder = folder_ / "cache";
    options.architecture = "host";
    return options;
  }
  [[nodiscard]] CompileRequest request(const std::string& value, bool slow = false) const {
    CompileRequest request;
    request.source = &source_;
    request.function = "pool";
    request.defines = {"VALUE=" + value, slow ? "SLOW=1" : "SLOW=0"};
    request.kind = BinaryKind::host_object;
    request.architecture = "host";
    return request;
  }
  static std::map<std::uint64_t, Compiled> collect(CompilePool& pool, std::size_t count) {
    std::map<std::uint64_t, Compiled> out;
    const auto end = std::chrono::steady_clock::now() + seconds(240);
    while (out.size() < count && std::chrono::steady_clock::now() < end) {
      if (auto compiled = pool.wait(milliseconds(200))) {
        const std::uint64_t id = compiled->id;
        EXPECT_TRUE(out.emplace(id, std::move(*compiled)).second) << "each is handed out once";
      }
    }
    EXPECT_EQ(out.size(), count);
    EXPECT_EQ(pool.pending(), 0U);
    return out;
  }
  // A value of this process's own, so that a test's compilers are not taken for those of another run beside it.
  static std::string own_value(int number) { return std::to_string(::getpid()) + "0" + std::to_string(number); }
  // Whether processes whose command line holds `text` become that few, or that many, within ten seconds.
  static bool become(const std::string& text, const std::function<bool(int)>& wanted) {
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    while (!wanted(processes_with(text))) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    return true;
  }
  static bool vanish(const std::string& text) {
    return become(text, [](int count) { return count == 0; });
  }
  static int processes_with(const std::string& text) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream words(entry.path() / "cmdline", std::ios::binary);
      for (std::string word; std::getline(words, word, '\0');) {
        std::ifstream unit(word.ends_with("/pascaline_unit.cpp") ? word : "");
        std::ostringstream code;
        code << unit.rdbuf();
        count += code.str().find(text) != std::string::npos ? 1 : 0;
      }
    }
    return count;
  }
};

TEST_F(CompilePoolTest, ResultsAreThoseOfThisProcessAndCameFromTheCacheTheSecondTime) {
  CompilePool pool(options());
  for (int id = 1; id <= 5; ++id) {
    pool.submit(static_cast<std::uint64_t>(id), request(std::to_string(id)));
  }
  EXPECT_EQ(pool.pending(), 5U);
  const auto first = collect(pool, 5);
  const Toolchain toolchain = Toolchain::find("host");
  for (const auto& [id, compiled] : first) {
    ASSERT_EQ(compiled.status, TrialStatus::ok) << compiled.result.log;
    EXPECT_FALSE(compiled.result.binary.from_cache);
    EXPECT_GT(compiled.result.binary.compile_ms, 0);
    EXPECT_EQ(compiled.result.binary.function, "pool");
  }
  const CompileResult here = toolchain.compile(request("3"));
  EXPECT_EQ(first.at(3).result.binary.code, here.binary.code);
  EXPECT_EQ(first.at(3).result.binary.target, here.binary.target);

  CompilePool again(options(1));
  again.submit(3, request("3"));
  const auto second = collect(again, 1);
  EXPECT_TRUE(second.at(3).result.binary.from_cache);
  EXPECT_EQ(second.at(3).result.binary.compile_ms, 0);
  EXPECT_EQ(second.at(3).result.binary.code, here.binary.code);
}

TEST_F(CompilePoolTest, WhereTheCacheKeepsNothingTheAnswerHoldsTheResult) {
  CompilePoolOptions uncached = options(1);
  uncached.cache_folder = "/proc/sys";  // where nobody can make a file
  CompilePool pool(uncached);
  pool.submit(1, request("1"));
  pool.submit(13, request("13"));
  const auto compiled = collect(pool, 2);
  const Toolchain toolchain = Toolchain::find("host");
  const CompileResult good = toolchain.compile(request("1"));
  const CompileResult bad = toolchain.compile(request("13"));
  ASSERT_EQ(compiled.at(1).status, TrialStatus::ok) << compiled.at(1).result.reason;
  EXPECT_EQ(compiled.at(1).result.binary.code, good.binary.code);
  EXPECT_EQ(compiled.at(1).result.binary.function, "pool");
  EXPECT_EQ(compiled.at(1).result.binary.target, good.binary.target);
  EXPECT_GT(compiled.at(1).result.binary.compile_ms, 0);
  EXPECT_EQ(compiled.at(13).status, TrialStatus::compile_failed);
  EXPECT_EQ(compiled.at(13).result.reason, bad.reason);
  EXPECT_NE(compiled.at(13).result.log.find("unlucky"), std::string::npos) << compiled.at(13).result.log;
}

TEST_F(CompilePoolTest, AResultRemovedFromTheCacheBeforeItIsReadIsCompiledAgain) {
  CompilePool pool(options(1));
  pool.submit(1, request("1"));
  pollfd answer = pool.wakeups()[0];
  ASSERT_EQ(::poll(&answer, 1, 60'000), 1);
  const CubinCache cache(options().cache_folder);
  const std::vector<CubinCacheEntry> entries = cache.entries();  // GCC's parsed headers come last
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(entries[0].kind, "shared object");
  EXPECT_TRUE(cache.remove(entries[0]));
  const Compiled compiled = collect(pool, 1).at(1);
  EXPECT_EQ(compiled.status, TrialStatus::ok) << compiled.result.reason;
  EXPECT_FALSE(compiled.result.binary.from_cache);
  EXPECT_EQ(compiled.result.binary.function, "pool");
}

TEST_F(CompilePoolTest, CompileErrorsAreResultsAndCachedToo) {
  for (const bool cached : {false, true}) {
    CompilePool pool(options(1));
    pool.submit(9, request("13"));
    const Compiled failed = collect(pool, 1).at(9);
    EXPECT_EQ(failed.status, TrialStatus::compile_failed);
    EXPECT_NE(failed.result.reason.find("pool.cu:10:"), std::string::npos) << failed.result.reason;
    EXPECT_NE(failed.result.reason.find("unlucky"), std::string::npos);
    EXPECT_EQ(failed.result.binary.from_cache, cached);
  }
}

TEST_F(CompilePoolTest, KilledWorkerCostsItsVariantOnly) {
  CompilePool pool(options(2));
  pool.submit(1, request("1", true));
  const std::vector<int> processes = pool.worker_processes();
  ASSERT_EQ(processes.size(), 1U);
  pool.submit(2, request("2"));
  pool.submit(3, request("3"));
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(processes[0], SIGKILL);
  const auto results = collect(pool, 3);
  EXPECT_EQ(results.at(1).status, TrialStatus::crashed);
  EXPECT_NE(results.at(1).result.reason.find("signal 9"), std::string::npos) << results.at(1).result.reason;
  EXPECT_EQ(results.at(2).status, TrialStatus::ok);
  EXPECT_EQ(results.at(3).status, TrialStatus::ok);
  pool.submit(4, request("4"));
  pool.submit(5, request("5"));
  EXPECT_EQ(collect(pool, 2).at(5).status, TrialStatus::ok) << "the pool goes on";
}

TEST_F(CompilePoolTest, WorkerKilledWhileIdleCostsNothing) {
  CompilePool pool(options(1));
  pool.submit(1, request("1"));
  EXPECT_EQ(collect(pool, 1).at(1).status, TrialStatus::ok);
  ASSERT_EQ(pool.worker_processes().size(), 1U);
  const auto worker = static_cast<id_t>(pool.worker_processes()[0]);
  ::kill(static_cast<pid_t>(worker), SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, worker, &ended, WEXITED | WNOWAIT), 0) << "the pool finds it dead";
  pool.submit(2, request("2"));
  EXPECT_EQ(collect(pool, 1).at(2).status, TrialStatus::ok);
}

TEST_F(CompilePoolTest, PastTheDeadlineTheCompilerIsKilledToo) {
  {
    CompilePool before(options(1));  // so that the other one comes from the cache, however busy the machine is
    before.submit(2, request("2"));
    std::ignore = collect(before, 1);
  }
  CompilePoolOptions quick = options(2);
  quick.deadline = seconds(3);
  CompilePool pool(quick);
  pool.submit(1, request(own_value(1), true));
  pool.submit(2, request("2"));
  const auto results = collect(pool, 2);
  EXPECT_EQ(results.at(1).status, TrialStatus::timed_out);
  EXPECT_EQ(results.at(1).result.reason, "the compiler did not finish within 3 s");
  EXPECT_EQ(results.at(2).status, TrialStatus::ok);
  EXPECT_TRUE(vanish("#define VALUE " + own_value(1)));
}

TEST_F(CompilePoolTest, DescriptorsTellWhenThereIsSomethingToDo) {
  CompilePool pool(options(2));
  EXPECT_TRUE(pool.wakeups().empty());
  pool.submit(1, request("1"));
  EXPECT_EQ(pool.busy(), 1U);
  ASSERT_EQ(pool.wakeups().size(), 1U);
  EXPECT_FALSE(pool.wait(milliseconds(0))) << "looking does not wait";
  pollfd entry = pool.wakeups()[0];
  ASSERT_EQ(::poll(&entry, 1, 60'000), 1);
  EXPECT_TRUE(pool.wait(milliseconds(0)));
  EXPECT_EQ(pool.busy(), 0U);
  EXPECT_TRUE(pool.wakeups().empty()) << "an idle worker says nothing";
}

// The compiler's memory grows with the array: more than the cap for the second, less for the first.
TEST_F(CompilePoolTest, VariantThatNeedsTooMuchMemoryFailsAloneAndIsTriedAgainWithMore) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer reserves more address space than any cap leaves";
  }
  source_ = source_of(R"(
template <int N> struct Block { int of[4096]; constexpr Block() : of() { for (int i = 0; i < 4096; ++i) of[i] = i + N; } };
template <int N> constexpr Block<N> kBlock{};
template <int N> struct Sum { static constexpr int value = kBlock<N>.of[N] + Sum<N - 1>::value; };
template <> struct Sum<0> { static constexpr int value = 0; };
extern "C" __global__ void pool(int* out) { out[0] = Sum<VALUE>::value; }
)");
  CompilePoolOptions capped = options(1);
  capped.memory_bytes = std::uint64_t{250} << 20U;
  CompilePool pool(capped);
  pool.submit(1, request("16"));
  pool.submit(2, request("800"));
  pool.submit(3, request("17"));
  const auto results = collect(pool, 3);
  EXPECT_EQ(results.at(1).status, TrialStatus::ok) << results.at(1).result.log;
  EXPECT_EQ(results.at(2).status, TrialStatus::crashed) << "what more memory may change is not the source's failure";
  EXPECT_NE(results.at(2).result.reason.find("ran out of memory on pool.cu (it may use 250 MiB of memory)"),
            std::string::npos)
      << results.at(2).result.reason;
  EXPECT_EQ(results.at(3).status, TrialStatus::ok) << results.at(3).result.log;

  CompilePool roomy(options(1));
  roomy.submit(2, request("800"));
  EXPECT_EQ(collect(roomy, 1).at(2).status, TrialStatus::ok) << "and is not in the cache";
}

TEST_F(CompilePoolTest, DestructionEndsWorkersAndTheirCompilers) {
  std::vector<int> processes;
  {
    CompilePool pool(options(2));
    pool.submit(1, request(own_value(1), true));
    pool.submit(2, request(own_value(2), true));
    processes = pool.worker_processes();
    ASSERT_EQ(processes.size(), 2U);
    EXPECT_TRUE(become("#define VALUE " + own_value(1), [](int count) { return count > 0; }));
    EXPECT_TRUE(become("#define VALUE " + own_value(2), [](int count) { return count > 0; }));
  }
  for (const int process : processes) {
    EXPECT_NE(::kill(process, 0), 0);
  }
  EXPECT_TRUE(vanish("#define VALUE " + own_value(1)));
  EXPECT_TRUE(vanish("#define VALUE " + own_value(2)));
}

TEST_F(CompilePoolTest, NothingToWaitForReturnsAtOnce) {
  CompilePool pool(options(1));
  EXPECT_TRUE(pool.worker_processes().empty()) << "workers start when there is work";
  EXPECT_FALSE(pool.wait(seconds(30)));
}

TEST_F(CompilePoolTest, BrokenCompilerIsAFault) {
  CompilePoolOptions broken = options(1);
  broken.architecture = "sm_61";
  broken.nvrtc = "/nonexistent/libnvrtc.so";
  CompilePool pool(broken);
  CompileRequest wanted = request("1");
  wanted.kind = BinaryKind::cubin;
  wanted.architecture = "sm_61";
  pool.submit(1, wanted);
  try {
    for (int i = 0; i < 100 && !pool.wait(milliseconds(200)); ++i) {
    }
    FAIL() << "no compiler, no result";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/libnvrtc.so"), std::string::npos) << error.what();
  }
}

TEST_F(CompilePoolTest, ProgramThatIsNoWorkerIsAFaultOrACrash) {
  CompilePoolOptions wrong = options(1);
  wrong.program = "/nonexistent/pascaline";
  CompilePool pool(wrong);
  EXPECT_THROW(pool.submit(1, request("1")), Error);
  wrong.program = "/bin/false";
  CompilePool ends(wrong);
  ends.submit(1, request("1"));
  EXPECT_EQ(collect(ends, 1).at(1).status, TrialStatus::crashed);
  wrong.program = "/bin/echo";
  CompilePool babbles(wrong);
  babbles.submit(1, request("1"));
  EXPECT_EQ(collect(babbles, 1).at(1).status, TrialStatus::crashed);
}

}  // namespace
}  // namespace pascaline::testing
