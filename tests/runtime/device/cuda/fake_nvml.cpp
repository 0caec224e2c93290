// A library of NVML's name and calls, of a card whose processes the test chooses. It has the calls as a driver of some
// years ago has them: the second version of one, and only the first of the other.
#include "tests/runtime/device/cuda/fake_nvml.hpp"

#include <array>
#include <cstring>

namespace {

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

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int result;
  alignas(8) std::array<unsigned char, 8> value;
};

FakeNvmlCard card{};
char handle = 0;

constexpr unsigned kPowerInstant = 186;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

template <typename Entry>
int list(const unsigned* ids, unsigned known, unsigned* count, Entry* entries) {
  if (card.tells_processes == 0) {
    return kNotSupported;
  }
  if (known > *count) {
    *count = known;
    return kInsufficientSize;
  }
  *count = known;
  for (unsigned i = 0; i < known; ++i) {
    entries[i] = {};
    entries[i].id = ids[i];
    entries[i].used_memory = 1ULL << 40;
  }
  return 0;
}

}  // namespace

extern "C" {

void fake_nvml_set(const FakeNvmlCard* now) { card = *now; }

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = &handle;
  return std::strcmp(uuid, kFakeNvmlUuid) == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* /*id*/, void** /*device*/) { return kNotFound; }
int nvmlDeviceGetTemperature(void* /*device*/, int /*sensor*/, unsigned* value) {
  *value = 61;
  return 0;
}
int nvmlDeviceGetTemperatureThreshold(void* /*device*/, int /*kind*/, unsigned* /*value*/) { return kNotSupported; }
int nvmlDeviceGetClockInfo(void* /*device*/, int /*kind*/, unsigned* /*value*/) { return kNotSupported; }
int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* value) {
  *value = card.average_mw;
  return card.average_mw > 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetFieldValues(void* /*device*/, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].result = values[i].field == kPowerInstant && card.instant_mw > 0 ? 0 : kNotSupported;
    values[i].type = 1;
    values[i].value = {};
    std::memcpy(values[i].value.data(), &card.instant_mw, sizeof card.instant_mw);
  }
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* /*device*/, unsigned* count, Process* processes) {
  return list(card.computing, card.computing_count, count, processes);
}
int nvmlDeviceGetGraphicsRunningProcesses(void* /*device*/, unsigned* count, FirstProcess* processes) {
  return list(card.drawing, card.drawing_count, count, processes);
}
}
