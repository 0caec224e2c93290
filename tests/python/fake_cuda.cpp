// A library of the CUDA driver's name and calls, of a card on which nothing runs: it notes what is queued where, keeps
// the rules of contexts and captures, and answers what breaks them as the driver does. For tests of what a call from
// Python asks of the driver on machines without a GPU.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kCaptureUnsupported = 900;
constexpr int kCaptureIsolation = 905;

struct Card {
  std::mutex mutex;
  std::string log;
  std::map<std::uintptr_t, unsigned long long> captures;        // number of the capture that a stream is in
  std::map<std::uintptr_t, unsigned long long> event_captures;  // that an event was recorded in; 0: none
  std::uintptr_t last_handle = 0x1000;
};

Card& card() {
  static Card& one = *new Card;
  return one;
}

char context_of_card = 0;
thread_local void* current = nullptr;

std::uintptr_t number(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

void note(const char* what, std::uintptr_t stream) {
  char line[96];
  std::snprintf(line, sizeof line, "%s %lu\n", what, static_cast<unsigned long>(stream));
  card().log += line;
}

unsigned long long capture_of(std::uintptr_t stream) {
  const auto found = card().captures.find(stream);
  return found == card().captures.end() ? 0 : found->second;
}

// What waits or allocates is refused while anything is captured, and noted.
int unsafe(const char* what, const void* stream = nullptr) {
  const std::lock_guard lock(card().mutex);
  note(what, number(stream));
  if (!card().captures.empty()) {
    note("refused", number(stream));
    return kCaptureUnsupported;
  }
  return current == &context_of_card ? kOk : kInvalidContext;
}

int queued(const char* what, const void* stream) {
  const std::lock_guard lock(card().mutex);
  note(what, number(stream));
  return current == &context_of_card ? kOk : kInvalidContext;
}

template <typename Handle>
int make(Handle* to) {
  const std::lock_guard lock(card().mutex);
  card().last_handle += 16;
  std::memcpy(static_cast<void*>(to), &card().last_handle, sizeof card().last_handle);
  return kOk;
}

}  // namespace

// For the tests.
extern "C" {
void fake_take_log(char* to, std::size_t bytes) {
  const std::lock_guard lock(card().mutex);
  std::snprintf(to, bytes, "%s", card().log.c_str());
  card().log.clear();
}
void fake_capture(std::uintptr_t stream, unsigned long long capture) {  // 0 ends it
  const std::lock_guard lock(card().mutex);
  if (capture == 0) {
    card().captures.erase(stream);
  } else {
    card().captures[stream] = capture;
  }
}
void* fake_current() { return current; }
void fake_set_current(void* context) { current = context; }

// The driver's.
int cuInit(unsigned) { return kOk; }
int cuDriverGetVersion(int* version) { return *version = 12090, kOk; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_THE_FAKE", kOk; }
int cuGetErrorString(int, const char** text) { return *text = "the fake driver refuses it", kOk; }
int cuDeviceGetCount(int* count) { return *count = 1, kOk; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? kOk : 101; }
int cuDeviceGetName(char* name, int bytes, int) {
  return std::snprintf(name, static_cast<std::size_t>(bytes), "Fake"), kOk;
}
int cuDeviceGetUuid(char* uuid, int) { return std::memset(uuid, 7, 16), kOk; }
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{1} << 30, kOk; }
int cuDeviceGetAttribute(int* value, int which, int) {
  static const std::map<int, int> kValues = {
      {1, 1024},     {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},  {10, 32},    {12, 65536}, {16, 20},
      {38, 2097152}, {39, 2048},      {75, 6},    {76, 1},    {81, 98304}, {82, 65536}, {102, 0},    {106, 32}};
  const auto found = kValues.find(which);
  return found == kValues.end() ? kInvalidValue : (*value = found->second, kOk);
}
int cuDeviceGetPCIBusId(char* text, int bytes, int) {
  return std::snprintf(text, static_cast<std::size_t>(bytes), "0000:00:00.0"), kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &context_of_card, kOk; }
int cuDevicePrimaryCtxRelease_v2(int) { return kOk; }
int cuDevicePrimaryCtxReset_v2(int) { return kOk; }
int cuCtxSetCurrent(void* context) { return current = context, kOk; }
int cuCtxGetCurrent(void** context) { return *context = current, kOk; }
int cuCtxSynchronize() { return unsafe("synchronize"); }
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  const int result = unsafe("allocate");
  if (result == kOk) {
    *address = number(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  }
  return result;
}
int cuMemFree_v2(unsigned long long address) {
  std::free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));  // NOLINT(performance-no-int-to-ptr)
  return kOk;
}
int cuMemcpyHtoDAsync_v2(unsigned long long, const void*, std::size_t, void* stream) {
  return queued("upload", stream);
}
int cuMemcpyDtoHAsync_v2(void*, unsigned long long, std::size_t, void* stream) { return queued("download", stream); }
int cuMemsetD8Async(unsigned long long, unsigned char, std::size_t, void* stream) { return queued("fill", stream); }
int cuMemcpyDtoDAsync_v2(unsigned long long, unsigned long long, std::size_t, void* stream) {
  return queued("copy", stream);
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) { return *free = *total = std::size_t{1} << 30, kOk; }
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) { return *memory = std::malloc(bytes), kOk; }
int cuMemFreeHost(void* memory) { return std::free(memory), kOk; }
int cuMemAddressReserve() { return 801; }
int cuMemAddressFree() { return 801; }
int cuMemGetAllocationGranularity() { return 801; }
int cuMemCreate() { return 801; }
int cuMemRelease() { return 801; }
int cuMemMap() { return 801; }
int cuMemUnmap() { return 801; }
int cuMemSetAccess() { return 801; }
int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  const int result = unsafe("load");
  return result == kOk ? make(module) : result;
}
int cuModuleUnload(void*) { return kOk; }
int cuModuleGetGlobal_v2(unsigned long long*, std::size_t*, void*, const char*) { return 500; }  // not found
int cuModuleGetFunction(void** function, void*, const char*) { return make(function); }
int cuFuncGetAttribute(int* value, int, void*) { return *value = 16, kOk; }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream, void**,
                   void**) {
  return queued("launch", stream);
}
int cuStreamCreate(void** stream, unsigned) { return make(stream); }
int cuStreamDestroy_v2(void*) { return kOk; }
int cuStreamSynchronize(void* stream) { return unsafe("wait", stream); }
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::lock_guard lock(card().mutex);
  note("wait_event", number(stream));
  const auto recorded = card().event_captures.find(number(event));
  if (recorded == card().event_captures.end()) {
    return kOk;  // never recorded
  }
  return recorded->second == capture_of(number(stream)) ? kOk : (note("refused", number(stream)), kCaptureIsolation);
}
int cuStreamBeginCapture_v2(void*, int) { return 801; }
int cuStreamEndCapture(void*, void**) { return 801; }
int cuStreamIsCapturing(void* stream, int* status) {
  const std::lock_guard lock(card().mutex);
  return *status = capture_of(number(stream)) != 0 ? 1 : 0, kOk;
}
int cuStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  const std::lock_guard lock(card().mutex);
  *id = capture_of(number(stream));
  return *status = *id != 0 ? 1 : 0, kOk;
}
int cuGraphInstantiate_v2() { return 801; }
int cuGraphLaunch() { return 801; }
int cuGraphExecUpdate() { return 801; }
int cuGraphExecDestroy() { return 801; }
int cuGraphDestroy() { return 801; }
int cuTexObjectCreate() { return 801; }
int cuTexObjectDestroy() { return 801; }
int cuEventCreate(void** event, unsigned) { return make(event); }
int cuEventDestroy_v2(void*) { return kOk; }
int cuEventRecord(void* event, void* stream) {
  const std::lock_guard lock(card().mutex);
  note("record", number(stream));
  card().event_captures[number(event)] = capture_of(number(stream));
  return kOk;
}
int cuEventQuery(void*) { return kOk; }
int cuEventSynchronize(void*) { return unsafe("synchronize"); }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 0, kOk; }
}
