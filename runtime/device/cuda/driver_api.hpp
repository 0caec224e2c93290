#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "runtime/device/dynamic_library.hpp"

namespace pascaline {

// The driver's ABI, declared here so that building needs no CUDA toolkit.
using CuResult = int;
using CuOrdinal = int;
using CuAddress = unsigned long long;
using CuContext = struct CuContextTag*;
using CuModule = struct CuModuleTag*;
using CuFunction = struct CuFunctionTag*;
using CuStream = struct CuStreamTag*;
using CuEvent = struct CuEventTag*;
using CuGraph = struct CuGraphTag*;
using CuGraphNode = struct CuGraphNodeTag*;
using CuGraphExec = struct CuGraphExecTag*;

using CuMemory = unsigned long long;  // CUmemGenericAllocationHandle

/// CUmemLocation: of a device.
struct CuLocation {
  int type = 1;
  CuOrdinal device = 0;
};

/// CUmemAllocationProp: memory of a device, shared with no other process.
struct CuMemoryKind {
  int type = 1;
  int shared_handles = 0;
  CuLocation location;
  void* windows_only = nullptr;
  unsigned char compression = 0;
  unsigned char rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

/// CUmemAccessDesc: the device may read and write.
struct CuAccess {
  CuLocation location;
  int flags = 3;
};

struct CuUuid {
  unsigned char bytes[16];
};

/// CUdevice_attribute values used.
enum CuDeviceAttribute : int {
  kCuMaxThreadsPerBlock = 1,
  kCuMaxGridX = 5,
  kCuMaxGridY = 6,
  kCuMaxGridZ = 7,
  kCuMaxSharedBytesPerBlock = 8,
  kCuWarpSize = 10,
  kCuMaxRegistersPerBlock = 12,
  kCuSmCount = 16,
  kCuL2Bytes = 38,
  kCuMaxThreadsPerSm = 39,
  kCuComputeMajor = 75,
  kCuComputeMinor = 76,
  kCuMaxSharedBytesPerSm = 81,
  kCuMaxRegistersPerSm = 82,
  kCuMapsMemory = 102,
  kCuMaxBlocksPerSm = 106,
};

/// CUfunction_attribute values used.
enum CuFunctionAttribute : int {
  kCuFunctionSharedBytes = 1,
  kCuFunctionConstBytes = 2,
  kCuFunctionLocalBytes = 3,
  kCuFunctionRegisters = 4,
};

/// CUjit_option values used.
enum CuJitOption : int {
  kCuJitMaxRegisters = 0,
  kCuJitErrorLog = 5,
  kCuJitErrorLogBytes = 6,
};

/// CUDA_RESOURCE_DESC of linear (kind 2) or pitched 2D (kind 3) memory that a texture reads.
struct CuTextureMemory {
  int kind = 2;
  CuAddress address = 0;
  int format = 0;  ///< CUarray_format
  unsigned channels = 0;
  std::size_t bytes_or_width = 0;
  std::size_t height = 0;
  std::size_t row_bytes = 0;
  std::array<int, 22> reserved{};
  unsigned flags = 0;
};
static_assert(sizeof(CuTextureMemory) == 144);

/// CUDA_TEXTURE_DESC.
struct CuTextureReading {
  std::array<int, 3> address_modes{};
  int filter_mode = 0;
  unsigned flags = 0;
  unsigned anisotropy = 0;
  int mipmap_filter = 0;
  std::array<float, 3> mipmap_levels{};
  std::array<float, 4> border{};
  std::array<int, 12> reserved{};
};
static_assert(sizeof(CuTextureReading) == 104);

inline constexpr CuResult kCuInvalidValue = 1;
inline constexpr CuResult kCuOutOfMemory = 2;
inline constexpr CuResult kCuNotInitialized = 3;
inline constexpr CuResult kCuNoDevice = 100;
inline constexpr CuResult kCuInvalidHandle = 400;
inline constexpr CuResult kCuNotReady = 600;
inline constexpr CuResult kCuNotSupported = 801;
inline constexpr CuResult kCuStreamCaptureUnsupported = 900;
inline constexpr CuResult kCuGraphUpdateFailure = 910;
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventWithoutTime = 2;
/// Of cuMemHostAlloc: page-locked for every context of the process.
inline constexpr unsigned kCuHostPortable = 1;
inline constexpr unsigned kCuHostMapped = 2;  ///< with one space of addresses kernels have it at the same address
/// Of CUstreamCaptureMode: the capturing thread alone may make no call that would wait or synchronise.
inline constexpr int kCuCaptureThreadLocal = 1;

/// One function of the driver: the versioned symbol and its address.
template <typename... Parameters>
struct DriverFunction {
  const char* symbol;
  CuResult (*address)(Parameters...) = nullptr;
};

/// The CUDA driver library, loaded at run time. But for three that may be missing, only
/// symbols that every driver since 450 exports are used.
class DriverApi {
 public:
  /// The process's driver, loaded and initialised by the first call; throws CudaError if there is none that works.
  static const DriverApi& get();

  /// Calls a driver function; throws CudaError with its name, the error and what to do if it fails.
  template <typename... Parameters, typename... Arguments>
  void operator()(const DriverFunction<Parameters...>& function, Arguments... arguments) const {
    check(function.symbol, function.address(arguments...));
  }
  /// Throws CudaError if `result` is not success; `detail` is put behind the error.
  void check(const char* symbol, CuResult result, std::string_view detail = {}) const;

  DriverFunction<unsigned> init{"cuInit"};
  DriverFunction<int*> driver_version{"cuDriverGetVersion"};
  DriverFunction<CuResult, const char**> error_name{"cuGetErrorName"};
  DriverFunction<CuResult, const char**> error_string{"cuGetErrorString"};
  DriverFunction<int*> device_count{"cuDeviceGetCount"};
  DriverFunction<CuOrdinal*, int> device_get{"cuDeviceGet"};
  DriverFunction<char*, int, CuOrdinal> device_name{"cuDeviceGetName"};
  DriverFunction<CuUuid*, CuOrdinal> device_uuid{"cuDeviceGetUuid"};
  DriverFunction<std::size_t*, CuOrdinal> device_memory{"cuDeviceTotalMem_v2"};
  DriverFunction<int*, int, CuOrdinal> device_attribute{"cuDeviceGetAttribute"};
  DriverFunction<char*, int, CuOrdinal> device_pci_bus_id{"cuDeviceGetPCIBusId"};
  DriverFunction<CuContext*, CuOrdinal> primary_retain{"cuDevicePrimaryCtxRetain"};
  DriverFunction<CuOrdinal> primary_release{"cuDevicePrimaryCtxRelease_v2"};
  DriverFunction<CuOrdinal> primary_reset{"cuDevicePrimaryCtxReset_v2"};
  DriverFunction<CuContext> set_current{"cuCtxSetCurrent"};
  DriverFunction<CuContext*> get_current{"cuCtxGetCurrent"};
  DriverFunction<CuAddress*, std::size_t> allocate{"cuMemAlloc_v2"};
  DriverFunction<CuAddress> free{"cuMemFree_v2"};
  DriverFunction<CuAddress, const void*, std::size_t, CuStream> upload{"cuMemcpyHtoDAsync_v2"};
  DriverFunction<void*, CuAddress, std::size_t, CuStream> download{"cuMemcpyDtoHAsync_v2"};
  DriverFunction<CuAddress, unsigned char, std::size_t, CuStream> fill{"cuMemsetD8Async"};
  DriverFunction<CuAddress, CuAddress, std::size_t, CuStream> copy{"cuMemcpyDtoDAsync_v2"};
  DriverFunction<std::size_t*, std::size_t*> memory_info{"cuMemGetInfo_v2"};
  DriverFunction<void**, std::size_t, unsigned> host_allocate{"cuMemHostAlloc"};
  DriverFunction<void*> host_free{"cuMemFreeHost"};
  DriverFunction<CuAddress*, std::size_t, std::size_t, CuAddress, unsigned long long> range_reserve{
      "cuMemAddressReserve"};
  DriverFunction<CuAddress, std::size_t> range_free{"cuMemAddressFree"};
  DriverFunction<std::size_t*, const CuMemoryKind*, int> memory_granularity{"cuMemGetAllocationGranularity"};
  DriverFunction<CuMemory*, std::size_t, const CuMemoryKind*, unsigned long long> memory_create{"cuMemCreate"};
  DriverFunction<CuMemory> memory_release{"cuMemRelease"};
  DriverFunction<CuAddress, std::size_t, std::size_t, CuMemory, unsigned long long> memory_map{"cuMemMap"};
  DriverFunction<CuAddress, std::size_t> memory_unmap{"cuMemUnmap"};
  DriverFunction<CuAddress, std::size_t, const CuAccess*, std::size_t> memory_access{"cuMemSetAccess"};
  DriverFunction<CuModule*, const void*, unsigned, int*, void**> module_load{"cuModuleLoadDataEx"};
  DriverFunction<CuModule> module_unload{"cuModuleUnload"};
  DriverFunction<CuFunction*, CuModule, const char*> module_function{"cuModuleGetFunction"};
  DriverFunction<CuAddress*, std::size_t*, CuModule, const char*> module_global{"cuModuleGetGlobal_v2"};
  DriverFunction<int*, int, CuFunction> function_attribute{"cuFuncGetAttribute"};
  DriverFunction<CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void**,
                 void**>
      launch{"cuLaunchKernel"};
  DriverFunction<CuStream*, unsigned> stream_create{"cuStreamCreate"};
  DriverFunction<CuStream> stream_destroy{"cuStreamDestroy_v2"};
  DriverFunction<CuStream> stream_synchronize{"cuStreamSynchronize"};
  DriverFunction<CuStream, CuEvent, unsigned> stream_wait{"cuStreamWaitEvent"};
  DriverFunction<> synchronize{"cuCtxSynchronize"};
  DriverFunction<CuStream, int> capture_begin{"cuStreamBeginCapture_v2"};
  DriverFunction<CuStream, CuGraph*> capture_end{"cuStreamEndCapture"};
  DriverFunction<CuStream, int*> is_capturing{"cuStreamIsCapturing"};
  DriverFunction<CuGraphExec*, CuGraph, CuGraphNode*, char*, std::size_t> graph_instantiate{"cuGraphInstantiate_v2"};
  DriverFunction<CuGraphExec, CuStream> graph_launch{"cuGraphLaunch"};
  DriverFunction<CuGraphExec, CuGraph, CuGraphNode*, int*> graph_update{"cuGraphExecUpdate"};
  DriverFunction<CuGraphExec> graph_exec_destroy{"cuGraphExecDestroy"};
  DriverFunction<CuGraph> graph_destroy{"cuGraphDestroy"};
  DriverFunction<std::uint64_t*, const CuTextureMemory*, const CuTextureReading*, const void*> texture_create{
      "cuTexObjectCreate"};
  DriverFunction<std::uint64_t> texture_destroy{"cuTexObjectDestroy"};
  DriverFunction<CuEvent*, unsigned> event_create{"cuEventCreate"};
  DriverFunction<CuEvent> event_destroy{"cuEventDestroy_v2"};
  DriverFunction<CuEvent, CuStream> event_record{"cuEventRecord"};
  DriverFunction<CuEvent> event_query{"cuEventQuery"};
  DriverFunction<CuEvent> event_synchronize{"cuEventSynchronize"};
  DriverFunction<float*, CuEvent, CuEvent> event_elapsed{"cuEventElapsedTime"};
  // Since 11.2 and where the driver keeps pools; the addresses are null elsewhere.
  DriverFunction<CuAddress*, std::size_t, CuStream> allocate_ordered{"cuMemAllocAsync"};
  DriverFunction<CuAddress, CuStream> free_ordered{"cuMemFreeAsync"};
  // With the number of the capture, which no other has; null in a driver that gave up this version of it.
  DriverFunction<CuStream, int*, unsigned long long*> capture_info{"cuStreamGetCaptureInfo"};

 private:
  DriverApi();

  DynamicLibrary library_;
};

/// Whether the error is one that a running kernel leaves behind: every later call of the context fails with it
/// until the device is reset.
[[nodiscard]] bool is_sticky(CuResult result) noexcept;

}  // namespace pascaline
