#include "runtime/device/stream_scope.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/cuda/driver_api.hpp"
#include "runtime/device/cuda/thread_context.hpp"
#include "tests/runtime/device/cuda/gpu_fixture.hpp"

namespace pascaline::testing {
namespace {

// Adds to a number, after so many cycles of the clock.
constexpr const char* kAddLate = R"(
extern "C" __global__ void add_late(int* to, int value, long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  *to += value;
})";

// *to = 10 * *to + value: tells in which order launches ran.
constexpr const char* kAppend = R"(
extern "C" __global__ void append(int* to, int value) { *to = 10 * *to + value; })";

constexpr long long kLong = 300'000'000;  // 0.15 s at 2 GHz

/// Streams of somebody else's, in the device's context.
class StreamScopeTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    driver_ = &DriverApi::get();
    for (CuStream& stream : streams_) {
      (*driver_)(driver_->stream_create, &stream, kCuStreamNonBlocking);
    }
    number_ = device_->allocate(sizeof(int));
    device_->fill(number_, 0);
    device_->synchronize();
  }
  void TearDown() override {
    for (CuStream stream : streams_) {
      if (stream != nullptr) {
        driver_->stream_destroy.address(stream);
      }
    }
  }

  [[nodiscard]] static ForeignStream foreign(CuStream stream) { return {reinterpret_cast<std::uintptr_t>(stream)}; }
  void wait(CuStream stream) const { (*driver_)(driver_->stream_synchronize, stream); }
  [[nodiscard]] int number() {
    int value = 0;
    device_->download(std::as_writable_bytes(std::span(&value, 1)), number_);
    return value;
  }
  [[nodiscard]] CuContext current() const {
    CuContext context = nullptr;
    (*driver_)(driver_->get_current, &context);
    return context;
  }

  const DriverApi* driver_ = nullptr;
  std::array<CuStream, 2> streams_{};
  Buffer number_;
};

TEST_F(StreamScopeTest, WorkGoesToTheStreamThatIsNamed) {
  const Kernel add = load(kAddLate, "add_late");
  CuEvent behind = nullptr;
  (*driver_)(driver_->event_create, &behind, kCuEventWithoutTime);
  {
    const StreamScope scope(*device_, foreign(streams_[0]));
    EXPECT_FALSE(scope.captured());
    launch(add, {}, number_.data(), 5, kLong);
  }
  (*driver_)(driver_->event_record, behind, streams_[0]);
  device_->synchronize();  // the device's own stream has nothing to wait for
  EXPECT_EQ(driver_->event_query.address(behind), kCuNotReady);
  wait(streams_[0]);
  EXPECT_EQ(driver_->event_query.address(behind), 0);
  EXPECT_EQ(number(), 5);
  driver_->event_destroy.address(behind);
}

TEST_F(StreamScopeTest, TheThreadsContextStaysWhatItWas) {
  const Kernel add = load(kAddLate, "add_late");
  const CuContext own = current();
  ASSERT_NE(own, nullptr);
  for (CuContext context : {CuContext{}, own}) {
    (*driver_)(driver_->set_current, context);
    {
      const StreamScope scope(*device_, foreign(streams_[1]));
      EXPECT_EQ(current(), own);
      launch(add, {}, number_.data(), 1, 0LL);
    }
    EXPECT_EQ(current(), context);
    {
      const ThreadContext kept;
      device_->synchronize();  // sets the context, whatever the thread was left with
      EXPECT_EQ(current(), own);
    }
    EXPECT_EQ(current(), context);
  }
  (*driver_)(driver_->set_current, own);
  wait(streams_[1]);
  EXPECT_EQ(number(), 2);
}

TEST_F(StreamScopeTest, ACaptureOfTheCallersTakesLaunches) {
  const Kernel append = load(kAppend, "append");
  CuGraph graph = nullptr;
  (*driver_)(driver_->capture_begin, streams_[0], kCuCaptureThreadLocal);
  for (const int value : {1, 2}) {
    StreamScope scope(*device_, foreign(streams_[0]));
    EXPECT_TRUE(scope.captured());
    scope.wait_for(foreign(streams_[1]));  // nothing: what is outside cannot be waited for
    scope.begin_shared();
    launch(append, {}, number_.data(), value);
    scope.end_shared();
  }
  EXPECT_FALSE(StreamScope(*device_, foreign(streams_[1])).captured());
  (*driver_)(driver_->capture_end, streams_[0], &graph);
  EXPECT_EQ(number(), 0);
  CuGraphExec ready = nullptr;
  (*driver_)(driver_->graph_instantiate, &ready, graph, nullptr, nullptr, std::size_t{0});
  (*driver_)(driver_->graph_launch, ready, streams_[1]);
  (*driver_)(driver_->graph_launch, ready, streams_[1]);
  wait(streams_[1]);
  EXPECT_EQ(number(), 1212);
  driver_->graph_exec_destroy.address(ready);
  driver_->graph_destroy.address(graph);
}

TEST_F(StreamScopeTest, LaunchesThatShareMemoryRunOneAfterTheOther) {
  const Kernel append = load(kAppend, "append");
  const Kernel add = load(kAddLate, "add_late");
  const auto shared = [&](ForeignStream stream, const auto& work) {
    StreamScope scope(*device_, stream);
    scope.begin_shared();
    work();
    scope.end_shared();
  };
  shared(foreign(streams_[0]), [&] { launch(add, {}, number_.data(), 1, kLong); });
  shared(foreign(streams_[1]), [&] { launch(append, {}, number_.data(), 2); });
  shared({}, [&] { launch(append, {}, number_.data(), 3); });  // the legacy default stream
  shared(foreign(streams_[0]), [&] { launch(append, {}, number_.data(), 4); });
  wait(streams_[0]);
  EXPECT_EQ(number(), 1234);
}

TEST_F(StreamScopeTest, WorkOfAnotherStreamCanBeWaitedFor) {
  const Kernel append = load(kAppend, "append");
  const Kernel add = load(kAddLate, "add_late");
  {
    const StreamScope scope(*device_, foreign(streams_[0]));
    launch(add, {}, number_.data(), 7, kLong);
  }
  StreamScope scope(*device_, foreign(streams_[1]));
  scope.wait_for(foreign(streams_[0]));
  launch(append, {}, number_.data(), 8);
  wait(streams_[1]);
  int value = 0;
  device_->download(std::as_writable_bytes(std::span(&value, 1)), number_);
  EXPECT_EQ(value, 78);
}

}  // namespace
}  // namespace pascaline::testing
