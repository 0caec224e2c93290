#include "runtime/device/cuda/nvml.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/device/gpu_processes.hpp"
#include "tests/runtime/device/cuda/fake_nvml.hpp"

namespace pascaline::testing {
namespace {

// Once the fake is loaded, whoever asks for a library of its name gets it.
class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const library = ::dlopen(PASCALINE_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    set_ = reinterpret_cast<void (*)(const FakeNvmlCard*)>(::dlsym(library, "fake_nvml_set"));
    ASSERT_NE(set_, nullptr);
    device_.kind = DeviceKind::cuda;
    device_.uuid = kFakeNvmlUuid;
  }
  void card_is(const FakeNvmlCard& card) { set_(&card); }

  DeviceInfo device_;

 private:
  void (*set_)(const FakeNvmlCard*) = nullptr;
};

TEST_F(NvmlTest, ListsProcessesByWhatTheyDoWhateverTheVersionOfTheCalls) {
  card_is({1, {1234, 4242}, 2, {77, 4242, 9}, 3});
  const auto nvml = Nvml::open(kFakeNvmlUuid, "");
  ASSERT_TRUE(nvml);
  EXPECT_EQ(nvml->read().temperature_c, 61);
  const std::vector<GpuProcess> expected{{1234, true}, {4242, true}, {77, false}, {4242, false}, {9, false}};
  EXPECT_EQ(nvml->processes(), expected);
  card_is({1, {}, 0, {}, 0});
  EXPECT_EQ(nvml->processes(), std::vector<GpuProcess>());
}

TEST_F(NvmlTest, ACardThatDoesNotTellOfProcessesTellsNothing) {
  card_is({0, {}, 0, {}, 0});
  EXPECT_FALSE(gpu_processes_of(device_)());
  card_is({1, {}, 300, {}, 0});
  EXPECT_FALSE(gpu_processes_of(device_)()) << "more than anybody asks for";
}

TEST_F(NvmlTest, PowerIsWhatTheCardTakesNowIfItTellsThatAndElseWhatItTells) {
  FakeNvmlCard card{};
  card_is(card);
  const auto silent = Nvml::open(kFakeNvmlUuid, "");
  ASSERT_TRUE(silent);
  EXPECT_FALSE(silent->read().power_w);
  card.average_mw = 120'500;
  card_is(card);
  const auto average = Nvml::open(kFakeNvmlUuid, "");
  card.instant_mw = 250'250;
  card_is(card);
  EXPECT_EQ(average->read().power_w, 120.5) << "not now one and now the other";
  const auto instant = Nvml::open(kFakeNvmlUuid, "");
  EXPECT_EQ(instant->read().power_w, 250.25);
  card.instant_mw = 0;
  card_is(card);
  EXPECT_FALSE(instant->read().power_w);
}

TEST_F(NvmlTest, AListStaysWhenItIsCopiedAndOtherDevicesHaveNone) {
  card_is({1, {5}, 1, {}, 0});
  GpuProcessList copy;
  {
    const GpuProcessList list = gpu_processes_of(device_);
    copy = list;
  }
  EXPECT_EQ(copy(), (std::vector<GpuProcess>{{5, true}}));
  device_.uuid = "GPU-another";
  EXPECT_FALSE(gpu_processes_of(device_)());
  device_.uuid = kFakeNvmlUuid;
  device_.kind = DeviceKind::emulator;
  EXPECT_FALSE(gpu_processes_of(device_)());
}

}  // namespace
}  // namespace pascaline::testing
