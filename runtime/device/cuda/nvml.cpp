#include "runtime/device/cuda/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "core/error.hpp"
#include "runtime/device/dynamic_library.hpp"

namespace pascaline {
namespace {

using NvmlResult = int;
using NvmlDevice = void*;

constexpr int kSensorGpu = 0;
constexpr int kThresholdSlowdown = 1;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr unsigned kPowerInstant = 186;
constexpr int kUnsigned = 1;

void explain(std::string* why, const std::string& text) {
  if (why != nullptr) {
    *why = text;
  }
}

}  // namespace

struct Nvml::Functions {
  struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
  };
  DynamicLibrary library{"libnvidia-ml.so.1"};
  NvmlResult (*init)() = library.function<NvmlResult (*)()>("nvmlInit_v2");
  NvmlResult (*shutdown)() = library.function<NvmlResult (*)()>("nvmlShutdown");
  NvmlResult (*by_uuid)(const char*, NvmlDevice*) =
      library.function<NvmlResult (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
  NvmlResult (*by_pci)(const char*, NvmlDevice*) =
      library.function<NvmlResult (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
  NvmlResult (*temperature)(NvmlDevice, int, unsigned*) =
      library.function<NvmlResult (*)(NvmlDevice, int, unsigned*)>("nvmlDeviceGetTemperature");
  NvmlResult (*threshold)(NvmlDevice, int, unsigned*) =
      library.function<NvmlResult (*)(NvmlDevice, int, unsigned*)>("nvmlDeviceGetTemperatureThreshold");
  NvmlResult (*clock)(NvmlDevice, int, unsigned*) =
      library.function<NvmlResult (*)(NvmlDevice, int, unsigned*)>("nvmlDeviceGetClockInfo");
  NvmlResult (*power)(NvmlDevice,
                      unsigned*) = library.function<NvmlResult (*)(NvmlDevice, unsigned*)>("nvmlDeviceGetPowerUsage");
  // An entry of a list of values to be asked for.
  struct FieldValue {
    unsigned field;
    unsigned scope;
    long long timestamp;
    long long latency_us;
    int type;
    NvmlResult result;
    union {
      unsigned as_unsigned;
      unsigned long long whole;
    } value;
  };
  static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32, "as NVML has it");
  NvmlResult (*field_values)(NvmlDevice, int, FieldValue*) =
      reinterpret_cast<NvmlResult (*)(NvmlDevice, int, FieldValue*)>(library.find("nvmlDeviceGetFieldValues"));
  NvmlResult (*memory)(NvmlDevice, Memory*) =
      reinterpret_cast<NvmlResult (*)(NvmlDevice, Memory*)>(library.find("nvmlDeviceGetMemoryInfo"));
  // As it lies in memory since version 2 of the calls, and before.
  struct Process {
    unsigned id;
    unsigned long long used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
  };
  struct FirstProcess {
    unsigned id;
    unsigned long long used_memory;
  };
  using ListProcesses = NvmlResult (*)(NvmlDevice, unsigned* count, void* processes);
  struct ProcessCall {
    ListProcesses call = nullptr;
    std::size_t bytes = 0;  // of an entry
  };
  // Of a driver's versions of a call the newest.
  [[nodiscard]] ProcessCall newest(const char* name) const {
    for (const char* version : {"_v3", "_v2"}) {
      if (void* const found = library.find((std::string(name) + version).c_str())) {
        return {reinterpret_cast<ListProcesses>(found), sizeof(Process)};
      }
    }
    return {reinterpret_cast<ListProcesses>(library.find(name)), sizeof(FirstProcess)};
  }
  ProcessCall computing = newest("nvmlDeviceGetComputeRunningProcesses");
  ProcessCall drawing = newest("nvmlDeviceGetGraphicsRunningProcesses");
  NvmlResult (*max_clock)(NvmlDevice, int, unsigned*) =
      reinterpret_cast<NvmlResult (*)(NvmlDevice, int, unsigned*)>(library.find("nvmlDeviceGetMaxClockInfo"));
  // Newer libraries promise only the second name.
  NvmlResult (*throttle)(NvmlDevice, unsigned long long*) =
      reinterpret_cast<NvmlResult (*)(NvmlDevice, unsigned long long*)>(
          library.find("nvmlDeviceGetCurrentClocksThrottleReasons") != nullptr
              ? library.find("nvmlDeviceGetCurrentClocksThrottleReasons")
              : library.find("nvmlDeviceGetCurrentClocksEventReasons"));
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (initialised_) {
    functions_->shutdown();
  }
}

std::unique_ptr<Nvml> Nvml::open(const std::string& uuid, const std::string& pci_bus_id, std::string* why) {
  std::unique_ptr<Nvml> nvml;
  try {
    nvml.reset(new Nvml());
  } catch (const Error& error) {
    explain(why, fmt::format("no NVML: {}", error.what()));
    return nullptr;
  }
  if (const NvmlResult result = nvml->functions_->init(); result != 0) {
    explain(why, fmt::format("nvmlInit_v2 failed with {}; check that nvidia-smi works", result));
    return nullptr;
  }
  nvml->initialised_ = true;
  if (nvml->functions_->by_uuid(uuid.c_str(), &nvml->device_) != 0 &&
      nvml->functions_->by_pci(pci_bus_id.c_str(), &nvml->device_) != 0) {
    explain(why, fmt::format("NVML does not know the card {} ({})", uuid, pci_bus_id));
    return nullptr;
  }
  nvml->tells_instant_ = nvml->instant_power_w().has_value();
  return nvml;
}

std::optional<std::uint64_t> Nvml::used_memory() const noexcept {
  Functions::Memory memory{};
  if (functions_->memory == nullptr || functions_->memory(device_, &memory) != 0) {
    return std::nullopt;
  }
  return memory.used;
}

std::optional<std::vector<GpuProcess>> Nvml::processes() const {
  constexpr std::size_t kMost = 256;
  std::vector<GpuProcess> processes;
  bool told = false;
  for (const bool computes : {true, false}) {
    const Functions::ProcessCall& list = computes ? functions_->computing : functions_->drawing;
    alignas(Functions::Process) std::array<std::byte, kMost * sizeof(Functions::Process)> entries{};
    unsigned count = kMost;
    if (list.call == nullptr || list.call(device_, &count, entries.data()) != 0) {
      continue;
    }
    told = told || computes;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, kMost); ++i) {
      unsigned id = 0;  // which an entry begins with
      std::memcpy(&id, entries.data() + i * list.bytes, sizeof id);
      processes.push_back({id, computes});
    }
  }
  return told ? std::optional(std::move(processes)) : std::nullopt;
}

std::optional<double> Nvml::instant_power_w() const noexcept {
  Functions::FieldValue instant{};
  instant.field = kPowerInstant;
  const bool told = functions_->field_values != nullptr && functions_->field_values(device_, 1, &instant) == 0 &&
                    instant.result == 0 && instant.type == kUnsigned && instant.value.as_unsigned > 0;
  return told ? std::optional(static_cast<double>(instant.value.as_unsigned) / 1000.0) : std::nullopt;
}

// Newer cards tell an average of a second as their power, and beside it what they take now; older ones tell that as
// their power. One reading must not be of one kind and the next of the other.
std::optional<double> Nvml::power_w() const noexcept {
  if (tells_instant_) {
    return instant_power_w();
  }
  unsigned value = 0;
  return functions_->power(device_, &value) == 0 ? std::optional(static_cast<double>(value) / 1000.0) : std::nullopt;
}

Sensors Nvml::read() const noexcept {
  Sensors sensors;
  unsigned value = 0;
  if (functions_->temperature(device_, kSensorGpu, &value) == 0) {
    sensors.temperature_c = value;
  }
  if (functions_->threshold(device_, kThresholdSlowdown, &value) == 0) {
    sensors.temperature_limit_c = value;
  }
  if (functions_->clock(device_, kClockSm, &value) == 0) {
    sensors.sm_clock_mhz = value;
  }
  if (functions_->max_clock != nullptr && functions_->max_clock(device_, kClockSm, &value) == 0) {
    sensors.sm_clock_limit_mhz = value;
  }
  if (functions_->clock(device_, kClockMemory, &value) == 0) {
    sensors.memory_clock_mhz = value;
  }
  sensors.power_w = power_w();
  unsigned long long reasons = 0;
  if (functions_->throttle != nullptr && functions_->throttle(device_, &reasons) == 0) {
    sensors.throttle_reasons = reasons;
  }
  return sensors;
}

}  // namespace pascaline
