#include "runtime/device/device_names.hpp"
#include "support.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/runtime/recording.hpp"

namespace pascaline::testing {
namespace {

TEST(EmulatedDevice, SaysWhatItIs) {
  const auto device = open_emulated_device();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "emulator");
  EXPECT_EQ(info.architecture, "host") << "as stored formats call it";
  EXPECT_FALSE(info.name.empty());
  EXPECT_TRUE(info.uuid.starts_with("HOST-"));
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_GE(info.limits.sm_count, 1);
  EXPECT_EQ(info.limits.max_threads_per_block, 1024);
  EXPECT_EQ(info.limits.max_shared_bytes_per_block, 48 * 1024);
  (void)device->read_sensors();
}

TEST(DeviceNames, NumberOfAGpuIsInItsName) {
  EXPECT_EQ(cuda_ordinal("cuda:0"), 0);
  EXPECT_EQ(cuda_ordinal("cuda:17"), 17);
  for (const char* name : {"", "emulator", "host", "cuda", "cuda:", "cuda:-1", "cuda:-0", "cuda:+1", "cuda: 1",
                           "cuda:1x", "CUDA:0", "cuda:99999999999"}) {
    EXPECT_FALSE(cuda_ordinal(name)) << name;
  }
}

TEST(DeviceNames, TheEmulatorIsAlsoCalledHost) {
  for (const char* name : {"emulator", "host"}) {
    EXPECT_EQ(open_device(name)->info().id, "emulator") << name;
    EXPECT_NO_THROW(check_device_name(name)) << name;
    EXPECT_EQ(device_id_of(name), "emulator") << name;
    EXPECT_EQ(stored_architecture(name), "host") << name;
    EXPECT_EQ(shown_architecture(name), "emulator") << name;
    EXPECT_EQ(Toolchain::find(name).path(), Toolchain::find("host").path()) << name;
  }
  for (const char* name : {"", "Host", "emulator:0", "hosts", "cuda:0", "sm_61"}) {
    EXPECT_FALSE(is_emulator_name(name)) << name;
    EXPECT_EQ(stored_architecture(name), name);
    EXPECT_EQ(shown_architecture(name), name);
  }
}

TEST(EmulatedDevice, RefusesLaunchesAGpuWouldRefuse) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "static_shared");
  const Buffer data = device->allocate(4096);
  const auto refusal = [&](const Geometry& geometry) {
    return message_of<EmulatorError>([&] { run(*device, kernel, geometry, data.data(), data.data()); });
  };
  EXPECT_NE(refusal({{1, 1, 1}, {0, 1, 1}, 0}).find("no threads"), std::string::npos);
  EXPECT_NE(refusal({{0, 1, 1}, {1, 1, 1}, 0}).find("grid (0,1,1)"), std::string::npos);
  EXPECT_NE(refusal({{1, 65536, 1}, {1, 1, 1}, 0}).find("grid (1,65536,1)"), std::string::npos);
  EXPECT_NE(refusal({{1, 1, 1}, {1025, 1, 1}, 0}).find("block (1025,1,1)"), std::string::npos);
  EXPECT_NE(refusal({{1, 1, 1}, {1, 1, 65}, 0}).find("block (1,1,65)"), std::string::npos);
  EXPECT_NE(refusal({{1, 1, 1}, {64, 1, 1}, 49152 - 271}).find("49153 bytes of shared memory"), std::string::npos);
  EXPECT_NE(
      message_of<EmulatorError>([&] { run(*device, kernel, {}, data.data()); }).find("takes 2 arguments, 1 were given"),
      std::string::npos);
  // A refusal is no failure of the device.
  run(*device, kernel, {{1, 1, 1}, {64, 1, 1}, 49152 - 272}, data.data(), data.data());
}

TEST(EmulatedDevice, GuardBandsTellOfWritesBeyondABuffer) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "beyond");
  const Buffer data = device->allocate(10 * 4);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.data()) % 256, 0U);
  const auto write = [&](int index) { run(*device, kernel, {}, data.data(), index); };
  write(9);
  EXPECT_TRUE(device->guards_intact(data));
  for (const int index : {10, 63, 64, 1000, -1, -1024}) {
    write(index);
    EXPECT_FALSE(device->guards_intact(data)) << index;
    EXPECT_TRUE(device->guards_intact(data)) << "they are repaired";
  }
  const Buffer empty = device->allocate(0);
  EXPECT_TRUE(device->guards_intact(empty));
}

TEST(EmulatedDevice, RefusesMoreMemoryThanThereIs) {
  const auto device = open_emulated_device();
  EXPECT_THROW((void)device->allocate(std::size_t{1} << 50), EmulatorError);
  EXPECT_THROW((void)device->allocate(~std::size_t{0}), EmulatorError);
  try {
    (void)device->allocate(std::size_t{1} << 50);
  } catch (const Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_FALSE(is_out_of_memory(EmulatorError("another"))) << "nor is what only has the same number:";
  EXPECT_FALSE(is_out_of_memory(Error("of SQLite", ENOMEM)));
  const Buffer small = device->allocate(4);
  const std::vector<std::byte> five(5);
  EXPECT_THROW(device->upload(small, five), EmulatorError);
}

TEST(EmulatedDevice, RefusesBinariesThatAreNotForIt) {
  const auto device = open_emulated_device();
  Binary binary;
  binary.function = "k";
  binary.target = "sm_61";
  EXPECT_THROW((void)device->load(binary), EmulatorError);
  binary.kind = BinaryKind::host_object;
  binary.code = "not an object";
  EXPECT_THROW((void)device->load(binary), EmulatorError);
}

TEST(EmulatedDevice, TimesALaunch) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "no_barriers");
  constexpr int kCount = 1 << 20;
  const Buffer data = device->allocate(kCount * 4);
  device->fill(data, 0);
  void* pointer = data.data();
  int count = kCount;
  void* arguments[] = {&pointer, &count};
  const Geometry geometry{{kCount / 256, 1, 1}, {256, 1, 1}, 0};
  EXPECT_GT(device->time_launch_us(kernel, geometry, arguments, true), 0.0);
  const double warm_us = device->time_launch_us(kernel, geometry, arguments, false);
  RecordProperty("ns_per_thread_without_barriers", std::to_string(warm_us * 1000 / kCount));
  EXPECT_EQ(to_host<float>(*device, data)[kCount - 1], 3.0F);
}

TEST(EmulatedDevice, AGraphDoesWhatWasRecordedEachTimeItIsLaunched) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "no_barriers");
  const Buffer data = to_device(*device, std::vector<float>(64, 1.0F));
  const std::vector<float> before = to_host<float>(*device, data);
  const Graph graph = device->record([&] {
    device->fill(data, 0);
    void* pointer = data.data();  // gone when the graph is launched
    int count = 32;
    void* arguments[] = {&pointer, &count};
    device->launch(kernel, {{1, 1, 1}, {64, 1, 1}, 0}, arguments);
  });
  EXPECT_EQ(to_host<float>(*device, data), before) << "recording runs nothing";
  std::vector<float> expected(64, 0.0F);
  std::fill(expected.begin(), expected.begin() + 32, 1.0F);
  for (int i = 0; i < 2; ++i) {
    device->fill(data, 0x55);
    device->launch(graph);
    EXPECT_EQ(to_host<float>(*device, data), expected);
  }
}

TEST(EmulatedDevice, WhatAGpuCouldNotRecordIsRefused) {
  const auto device = open_emulated_device();
  expect_records_only_launches_and_fills(*device, load(*device, "block.cu", "no_barriers"));
  const std::string wait = message_of<EmulatorError>([&] { (void)device->record([&] { device->synchronize(); }); });
  EXPECT_NE(wait.find("cannot wait"), std::string::npos) << "what `work` throws comes through";
  EXPECT_FALSE(device->recording());
  EXPECT_NE(message_of<EmulatorError>([&] { device->launch(Graph()); }).find("empty graph"), std::string::npos);
  device->synchronize();  // none of that broke the device
}

TEST(EmulatedDevice, ChecksumTellsOfEveryChangedWordAndOfTheRest) {
  const auto device = open_device("emulator");
  std::vector<std::uint8_t> bytes(4099, 0xFF);
  const Buffer buffer = device->allocate(bytes.size());
  const auto sum = [&] {
    device->upload(buffer, std::as_bytes(std::span(bytes)));
    return device->checksum(buffer);
  };
  const std::uint64_t before = sum();
  EXPECT_EQ(before, checksum_of(std::as_bytes(std::span(bytes))));
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{5}, std::size_t{4095}, std::size_t{4096}, std::size_t{4098}}) {
    bytes[at] = 0x7F;
    EXPECT_NE(sum(), before) << at;
    bytes[at] = 0xFF;
  }
  EXPECT_EQ(sum(), before);
}

// In slices by several threads, the sum is that of the words one after the other.
TEST(Checksum, IsTheSumOfAllWordsWhateverTheirNumber) {
  std::vector<std::uint32_t> words(600'001);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint32_t>(i * 2654435761U);
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{4'000}, bytes.size() - 3, bytes.size()}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 33U}) {
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < size; at += sizeof(std::uint32_t)) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min(sizeof word, size - at));
        sum += word * (2 * (first + at / sizeof word) + 1);
      }
      EXPECT_EQ(checksum_of(bytes.first(size), first), sum) << size;
    }
  }
}

TEST(EmulatedDevice, LeavesComparingElementsToTheHost) {
  const auto device = open_device("emulator");
  const Buffer buffer = device->allocate(64);
  EXPECT_FALSE(device->compares(ElementType::float32));
  EXPECT_THROW((void)device->largest_error(buffer, ElementType::float32, buffer, ElementLimits()), Error);
}

TEST(EmulatedDevice, TheCanaryTakesAboutAsLongEachTime) {
  const auto device = open_device("emulator");
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    times.push_back(device->time_canary_us());
  }
  std::sort(times.begin(), times.end());
  EXPECT_GT(times[0], 20);
  EXPECT_LT(times[10], 1.5 * times[0]) << "the better half is alike";
}

TEST(EmulatedDevice, KernelsLoadAgainAfterTheyWereUnloaded) {
  const auto device = open_emulated_device();
  const Buffer data = to_device(*device, std::vector<float>(64, 1.0F));
  const CompileResult first = compile(kernel_source("block.cu"), "no_barriers");
  const CompileResult second = compile(kernel_source("block.cu"), "many_barriers");
  for (int i = 0; i < 3; ++i) {
    run(*device, device->load(first.binary), {{1, 1, 1}, {64, 1, 1}, 0}, data.data(), 64);
    run(*device, device->load(second.binary), {{1, 1, 1}, {64, 1, 1}, 0}, data.data(), i);
    EXPECT_EQ(to_host<int>(*device, data), std::vector<int>(64, i));
  }
}

}  // namespace
}  // namespace pascaline::testing
