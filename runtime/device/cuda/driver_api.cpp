#include "runtime/device/cuda/driver_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace pascaline {
namespace {

// The codes documented to leave "the process in an inconsistent state", and lost devices.
constexpr std::array<CuResult, 13> kSticky{214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};

std::string_view advice_for(CuResult result) noexcept {
  if (is_sticky(result)) {
    return "a kernel broke the device's context; reset the device (or start a new process, if that fails) and leave "
           "this kernel "
           "out";
  }
  switch (result) {
    case kCuInvalidValue:
      return "check launch geometry, sizes and addresses against the device's limits";
    case 2:
      return "free device memory (nvidia-smi shows who holds it) or use a smaller problem";
    case 34:
      return "the library found is a stub for linking; take its folder out of LD_LIBRARY_PATH";
    case 46:
    case kCuNoDevice:
    case 101:
      return "check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, that the GPU was passed in";
    case 209:
      return "the code was built for another architecture; build for this device's, or as PTX of an older one";
    case 218:
    case 222:
      return "the driver cannot translate this PTX; update it or use an older NVRTC";
    case 221:
      return "install the complete driver: libnvidia-ptxjitcompiler.so.1 is missing";
    case 900:
    case 901:
    case 906:
      return "what is recorded may only launch kernels and fill buffers: allocate, copy and wait outside";
    case 701:
      return "the block needs more registers or shared memory than the device has; use fewer threads or registers";
    case 3:
    case 802:
    case 803:
    case 804:
    case 999:
      return "check that the driver works (nvidia-smi); after a driver update, restart the machine";
    default:
      return "see the CUDA driver API's documentation of this error";
  }
}

template <typename... Parameters>
void resolve(const DynamicLibrary& library, DriverFunction<Parameters...>& function) {
  function.address = library.function<CuResult (*)(Parameters...)>(function.symbol);
}

template <typename... Parameters>
void try_resolve(const DynamicLibrary& library, DriverFunction<Parameters...>& function) {
  function.address = reinterpret_cast<CuResult (*)(Parameters...)>(library.find(function.symbol));
}

DynamicLibrary open_driver() {
  std::string why;
  std::optional<DynamicLibrary> library = DynamicLibrary::try_open("libcuda.so.1", &why);
  if (!library) {
    throw CudaError(fmt::format("no CUDA driver: {}; install NVIDIA's driver (450 or newer)", why), kCuNotInitialized);
  }
  return std::move(*library);
}

}  // namespace

bool is_sticky(CuResult result) noexcept { return std::find(kSticky.begin(), kSticky.end(), result) != kSticky.end(); }

DriverApi::DriverApi() : library_(open_driver()) {
  const auto resolve_all = [this](auto&... functions) { (resolve(library_, functions), ...); };
  try {
    resolve_all(init, driver_version, error_name, error_string, device_count, device_get, device_name, device_uuid,
                device_memory, device_attribute, device_pci_bus_id, primary_retain, primary_release, primary_reset,
                set_current, get_current, allocate, free, upload, download, copy, fill, memory_info, host_allocate,
                host_free, range_reserve, range_free, memory_granularity, memory_create, memory_release, memory_map,
                memory_unmap, memory_access, module_load, module_unload, module_function, module_global,
                function_attribute, launch, stream_create, stream_destroy, stream_synchronize, stream_wait, synchronize,
                capture_begin, capture_end, is_capturing, graph_instantiate, graph_launch, graph_update,
                graph_exec_destroy, graph_destroy, texture_create, texture_destroy, event_create, event_destroy,
                event_record, event_query, event_synchronize, event_elapsed);
    try_resolve(library_, allocate_ordered);
    try_resolve(library_, free_ordered);
    try_resolve(library_, capture_info);
  } catch (const CudaError&) {
    throw;
  } catch (const Error& error) {
    throw CudaError(fmt::format("{}; install NVIDIA's driver 450 or newer", error.what()));
  }
  (*this)(init, 0U);
}

const DriverApi& DriverApi::get() {
  // Leaked: the driver must outlive every static that may still hold a device.
  static const DriverApi* const api = new DriverApi();
  return *api;
}

void DriverApi::check(const char* symbol, CuResult result, std::string_view detail) const {
  if (result == 0) {
    return;
  }
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name.address(result, &name) != 0 || name == nullptr) {
    name = "unknown error";
  }
  if (error_string.address(result, &text) != 0 || text == nullptr) {
    text = "no description";
  }
  throw CudaError(fmt::format("{} failed: {} ({}, {}){}{}; {}", symbol, name, result, text, detail.empty() ? "" : ": ",
                              detail, advice_for(result)),
                  result);
}

}  // namespace pascaline
