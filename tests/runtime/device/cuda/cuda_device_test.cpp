#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/error_bound.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/formats/draw.hpp"
#include "tests/core/space/small_space.hpp"
#include "tests/runtime/device/cuda/gpu_fixture.hpp"
#include "tests/runtime/device/texture_cases.hpp"
#include "tests/runtime/recording.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kPoke = R"(
extern "C" __global__ void poke(char* p, long long offset, char value) { p[offset] = value; })";

class CudaDeviceTest : public GpuTest {};

TEST_F(CudaDeviceTest, InfoIsPlausible) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.id, "cuda:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_TRUE(info.uuid.starts_with("GPU-")) << info.uuid;
  EXPECT_EQ(info.uuid.size(), 40U);
  EXPECT_GE(std::stod(info.driver_version), 11.0);
  EXPECT_GT(info.memory_bytes, 500U << 20U);
  EXPECT_EQ(info.limits.max_shared_bytes_per_block, 48 * 1024);
  EXPECT_EQ(info.limits.max_threads_per_block, 1024);
  EXPECT_EQ(info.limits.warp_size, 32);
  EXPECT_GT(info.limits.sm_count, 0);
  EXPECT_GT(info.limits.l2_bytes, 0);
}

TEST_F(CudaDeviceTest, BytesComeBackAsSent) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{9000001}}) {
    const Buffer buffer = device_->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    std::vector<std::byte> sent(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      sent[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    device_->upload(buffer, sent);
    std::vector<std::byte> back(bytes);
    device_->download(back, buffer);
    EXPECT_EQ(sent, back);
    device_->fill(buffer, 0x5C);
    device_->download(back, buffer);
    EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](std::byte b) { return b == std::byte{0x5C}; }));
    EXPECT_TRUE(device_->guards_intact(buffer));
    std::vector<std::byte> more(bytes + 1);
    EXPECT_THROW(device_->upload(buffer, more), CudaError);
    EXPECT_THROW(device_->download(more, buffer), CudaError);
  }
}

TEST_F(CudaDeviceTest, TexturesReadBuffers) {
  expect_textures(*device_, [&](const std::string& function) { return load(kTextureKernels, function); });
}

TEST_F(CudaDeviceTest, GuardsTellOfWritesOnEitherSideAndAreRepaired) {
  const Kernel poke = load(kPoke, "poke");
  for (const long long bytes : {0LL, 1LL, 1001LL, 4096LL}) {
    const Buffer buffer = device_->allocate(static_cast<std::size_t>(bytes));
    for (const long long offset : {-1LL, -4096LL, bytes, bytes + 4095}) {
      EXPECT_TRUE(device_->guards_intact(buffer));
      launch(poke, {}, buffer.data(), offset, char{0});
      EXPECT_FALSE(device_->guards_intact(buffer)) << bytes << " bytes, written at " << offset;
      EXPECT_TRUE(device_->guards_intact(buffer));
    }
    if (bytes > 0) {
      launch(poke, {}, buffer.data(), bytes - 1, char{0});
      EXPECT_TRUE(device_->guards_intact(buffer));
    }
  }
}

TEST_F(CudaDeviceTest, AGraphDoesWhatWasRecordedEachTimeItIsLaunched) {
  const Kernel kernel = load(kPoke, "poke");
  const Buffer buffer = device_->allocate(3);
  const auto bytes = [&] {
    std::vector<std::byte> back(3);
    device_->download(back, buffer);
    return back;
  };
  device_->fill(buffer, 1);
  const Graph graph = device_->record([&] {
    device_->fill(buffer, 2);
    launch(kernel, {}, buffer.data(), 1LL, char{7});
  });
  EXPECT_EQ(bytes(), std::vector<std::byte>(3, std::byte{1})) << "recording runs nothing";
  for (int i = 0; i < 2; ++i) {
    device_->fill(buffer, 3);
    device_->launch(graph);
    EXPECT_EQ(bytes(), (std::vector<std::byte>{std::byte{2}, std::byte{7}, std::byte{2}}));
  }
}

TEST_F(CudaDeviceTest, WhatCannotBeRecordedIsRefusedAndLeavesTheDeviceUsable) {
  expect_records_only_launches_and_fills(*device_, load(kPoke, "poke"));
  EXPECT_THROW((void)device_->record([&] { device_->synchronize(); }), CudaError);
  EXPECT_THROW((void)device_->record([&] { (void)device_->record([] {}); }), CudaError);
  EXPECT_THROW((void)device_->record([] { throw Error("stop"); }), Error);
  EXPECT_FALSE(device_->recording());
  EXPECT_THROW(device_->launch(Graph()), CudaError);
  EXPECT_TRUE(device_works());
}

TEST_F(CudaDeviceTest, TooMuchMemoryIsRefused) {
  EXPECT_THROW((void)device_->allocate(std::size_t{1} << 60U), CudaError);
  try {
    (void)device_->allocate(device_->info().memory_bytes);
    ADD_FAILURE() << "the driver itself takes some of it";
  } catch (const CudaError& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_TRUE(device_works());
}

TEST_F(CudaDeviceTest, NativeCodeAndOlderPtxGiveTheSame) {
  const std::vector<float> input{1.0F, 2.5F, -3.0F, 0.0F};
  for (const char* target : {"", "sm_61"}) {
    if (nvrtc_for("sm_61").empty() && *target != '\0') {
      GTEST_SKIP() << "no NVRTC compiles for sm_61";
    }
    const Kernel kernel = load(kDouble, "twice", target);
    EXPECT_GT(kernel.resources().registers, 0);
    const Buffer buffer = device_->allocate(input.size() * sizeof(float));
    device_->upload(buffer, std::as_bytes(std::span(input)));
    launch(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, buffer.data(), static_cast<int>(input.size()));
    device_->synchronize();
    std::vector<float> back(input.size());
    device_->download(std::as_writable_bytes(std::span(back)), buffer);
    EXPECT_EQ(back, (std::vector<float>{2.0F, 5.0F, -6.0F, 0.0F})) << target;
  }
}

TEST_F(CudaDeviceTest, LoadedResourcesAgreeWithTheCubin) {
  const Binary binary = compile(R"(
extern "C" __global__ void k(const int* a, float* out) {
  __shared__ float row[256];
  float held[32];
  for (int i = 0; i < 32; ++i) held[i] = a[i];
  held[a[threadIdx.x] & 31] += 1.0f;
  row[threadIdx.x] = held[a[threadIdx.x + 1] & 31];
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x ^ 1];
})",
                                "k");
  const Kernel kernel = device_->load(binary);
  EXPECT_EQ(kernel.resources().registers, binary.resources.registers);
  EXPECT_EQ(kernel.resources().static_shared_bytes, binary.resources.static_shared_bytes);
  EXPECT_EQ(kernel.resources().static_shared_bytes, 1024);
  EXPECT_EQ(kernel.resources().local_bytes, binary.resources.local_bytes);
  EXPECT_EQ(kernel.resources().local_loads, binary.resources.local_loads);
}

TEST_F(CudaDeviceTest, RegisterCapHoldsWhenTheDriverTranslatesPtx) {
  if (nvrtc_for("sm_61").empty()) {
    GTEST_SKIP() << "no NVRTC compiles for sm_61";
  }
  const std::string text = R"(
extern "C" __global__ void k(const float* a, float* out, int n) {
  float held[64];
  for (int i = 0; i < 64; ++i) held[i] = a[threadIdx.x * 64 + i];
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int i = 0; i < 64; ++i) held[i] = held[i] * held[(i + 1) % 64] + held[(i * 5 + 2) % 64];
  for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = held[i];
})";
  EXPECT_GT(load(text, "k", "sm_61").resources().registers, 64);
  const Binary capped = compile(text, "k", "sm_61", {"--maxrregcount=40"});
  EXPECT_EQ(capped.max_registers, 40);
  const Kernel kernel = device_->load(capped);
  EXPECT_LE(kernel.resources().registers, 40);
  EXPECT_GT(kernel.resources().local_bytes, 0);
}

TEST_F(CudaDeviceTest, WhatCannotBeLoadedIsRefusedWithTheReason) {
  Binary binary = compile(kDouble, "twice");
  Binary garbage = binary;
  garbage.code = "not code at all";
  EXPECT_THROW((void)device_->load(garbage), CudaError);
  Binary empty = binary;
  empty.code.clear();
  EXPECT_THROW((void)device_->load(empty), CudaError);
  Binary renamed = binary;
  renamed.function = "nosuch";
  EXPECT_THROW((void)device_->load(renamed), CudaError);
  Binary ptx = binary;
  ptx.kind = BinaryKind::ptx;
  ptx.code = ".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry twice() { nonsense; }\n";
  try {
    (void)device_->load(ptx);
    FAIL() << "no error";
  } catch (const CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("nonsense"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(device_works());
}

TEST_F(CudaDeviceTest, RefusedLaunchesLeaveTheDeviceUsable) {
  const Kernel kernel = load(kDouble, "twice");
  const Buffer buffer = device_->allocate(4096);
  const std::vector<Geometry> refused{{{1, 1, 1}, {2048, 1, 1}, 0},
                                      {{0, 1, 1}, {32, 1, 1}, 0},
                                      {{1, 70000, 1}, {32, 1, 1}, 0},
                                      {{1, 1, 1}, {32, 0, 1}, 0},
                                      {{1, 1, 1}, {32, 1, 1}, 48 * 1024 + 1}};
  for (const Geometry& geometry : refused) {
    EXPECT_THROW(launch(kernel, geometry, buffer.data(), 4), CudaError) << geometry.threads();
    EXPECT_THROW((void)median_us(1, false, kernel, geometry, buffer.data(), 4), CudaError);
    EXPECT_NO_THROW(device_->synchronize());
  }
  EXPECT_NO_THROW(launch(kernel, {{1, 1, 1}, {32, 1, 1}, 48 * 1024}, buffer.data(), 4));
  EXPECT_TRUE(device_works());
}

TEST_F(CudaDeviceTest, AnotherThreadMayTakeOver) {
  bool worked = false;
  std::thread other([&] { worked = device_works(); });
  other.join();
  EXPECT_TRUE(worked);
  EXPECT_TRUE(device_works());
}

TEST_F(CudaDeviceTest, SensorsAreRead) {
  const Sensors sensors = device_->read_sensors();
  ASSERT_TRUE(sensors.temperature_c);
  EXPECT_GT(*sensors.temperature_c, 5);
  EXPECT_LT(*sensors.temperature_c, 110);
  ASSERT_TRUE(sensors.sm_clock_mhz);
  EXPECT_GT(*sensors.sm_clock_mhz, 50);
  const auto is_named = [&](const char* part) { return device_->info().name.find(part) != std::string::npos; };
  if (is_named("Tesla") || is_named("A100") || is_named("H100") || is_named("H200")) {
    EXPECT_TRUE(sensors.power_w && *sensors.power_w > 1);
    EXPECT_TRUE(sensors.memory_clock_mhz);
    EXPECT_TRUE(sensors.temperature_limit_c);
    EXPECT_TRUE(sensors.throttle_reasons);
  }
}

/// Elements in a device's memory, what they must be, and the bound of both.
struct ComparedElements {
  ComparedElements(Device& device, const BoundSpace& bound, std::vector<std::byte> of, std::vector<double> right)
      : bytes(std::move(of)),
        expected(std::move(right)),
        type(bound.problem().type("STORAGE")),
        errors(bound, type, expected),
        values(device.allocate(bytes.size())),
        numbers(device.allocate(expected.size() * sizeof(double))) {
    device.upload(values, bytes);
    device.upload(numbers, std::as_bytes(std::span(expected)));
  }
  [[nodiscard]] double on(Device& device) const {
    return device.largest_error(values, type, numbers, *errors.limits());
  }
  /// What the device must find.
  [[nodiscard]] double on_host() const {
    const ErrorBound::Verdict found = errors.compare(type, bytes, expected);
    return found.within ? found.error : std::numeric_limits<double>::infinity();
  }
  std::vector<std::byte> bytes;
  std::vector<double> expected;
  ElementType type;
  ErrorBound errors;
  Buffer values;
  Buffer numbers;
};

/// y = x for elements of every type that the device compares, with a rule for sums.
Space compared_space() {
  nlohmann::json json = small_space();
  json["types"][0]["values"] = {"float32", "float16", "bfloat16", "int32", "int8", "float64"};
  json["tolerance"] = {{"float32", 1e-6}, {"float16", 1e-3}, {"bfloat16", 1e-2},       {"int32", 1e-5},
                       {"int8", 1e-5},    {"float64", 1e-9}, {"sum", {{"terms", "N"}}}};
  return Space::parse(json.dump(), "scale.json");
}

TEST_F(CudaDeviceTest, ElementsAreComparedAsOnTheHost) {
  const Space space = compared_space();
  for (const char* const name : {"float32", "float16", "bfloat16", "int32", "int8"}) {
    const BoundSpace bound(space, space.problem({{"N", "64"}, {"WIDTH", "2"}, {"STORAGE", name}}), DeviceLimits());
    const ElementType type = bound.problem().type("STORAGE");
    ASSERT_TRUE(device_->compares(type));
    const double high = type == ElementType::int8 ? 100 : 1000;
    for (const std::size_t count : {std::size_t{1}, std::size_t{31}, std::size_t{4099}, std::size_t{3'000'001}}) {
      const std::vector<std::byte> bytes = draw_elements(type, count, Fill::uniform, -high, high, count);
      const std::vector<double> near = [&] {
        std::vector<double> numbers = widen(type, bytes);
        for (std::size_t i = 0; i < count; ++i) {
          numbers[i] += (static_cast<double>(splitmix(i) % 2000) - 1000) * 1e-7;
        }
        return numbers;
      }();
      const auto expect_as_on_the_host = [&](const std::vector<double>& expected, bool within) {
        const ComparedElements elements(*device_, bound, bytes, expected);
        EXPECT_EQ(elements.on(*device_), elements.on_host()) << name << " " << count;
        EXPECT_EQ(std::isfinite(elements.on_host()), within) << name << " " << count;
      };
      expect_as_on_the_host(near, true);
      expect_as_on_the_host(widen(type, bytes), true);
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        for (const double wrong : {near[at] + 2 * high, -std::numeric_limits<double>::infinity(), std::nan("")}) {
          std::vector<double> expected = near;
          expected[at] = wrong;
          expect_as_on_the_host(expected, false);
        }
      }
    }
  }
}

TEST_F(CudaDeviceTest, InfinitiesAndNumbersThatAreNoneAreComparedAsOnTheHost) {
  const Space space = compared_space();
  const BoundSpace bound(space, space.problem({{"N", "64"}, {"WIDTH", "2"}, {"STORAGE", "float32"}}), DeviceLimits());
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double none = std::nan("");
  const double numbers[] = {0.0, -0.0, 1.0, 1.0000001, -1.0, 0x1p-140, -0x1p-140, 3e38, kInfinite, -kInfinite, none};
  for (const double value : numbers) {
    for (const double right : numbers) {
      const std::vector<float> values{1, static_cast<float>(value), 2};
      const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
      const ComparedElements elements(*device_, bound, {bytes.begin(), bytes.end()}, {1, right, 2});
      EXPECT_EQ(elements.on(*device_), elements.on_host()) << value << " " << right;
    }
  }
}

TEST_F(CudaDeviceTest, ComparesOnlyWhatItCan) {
  const ElementLimits limits;
  EXPECT_FALSE(device_->compares(ElementType::float64));
  const Buffer values = device_->allocate(64);
  EXPECT_THROW((void)device_->largest_error(values, ElementType::float64, device_->allocate(64), limits), Error);
  EXPECT_THROW((void)device_->largest_error(values, ElementType::float32, device_->allocate(15 * 8), limits),
               CudaError);
  EXPECT_EQ(device_->largest_error(device_->allocate(0), ElementType::float32, device_->allocate(0), limits), 0);
}

TEST_F(CudaDeviceTest, ChecksumIsTheHosts) {
  for (const std::size_t size : {0U, 3U, 4U, 4099U, 5'000'002U}) {
    std::vector<std::uint8_t> bytes(size);
    std::uint32_t state = 1;
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24U);
    }
    const Buffer buffer = device_->allocate(bytes.size());
    device_->upload(buffer, std::as_bytes(std::span(bytes)));
    EXPECT_EQ(device_->checksum(buffer), checksum_of(std::as_bytes(std::span(bytes)))) << size;
  }
}

}  // namespace
}  // namespace pascaline::testing
