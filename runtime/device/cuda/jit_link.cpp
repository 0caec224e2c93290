#include "runtime/device/cuda/jit_link.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/cuda/nvrtc.hpp"

namespace pascaline {
namespace {

constexpr int kInputPtx = 2;

// It keeps threads and tables of its own.
DynamicLibrary open_jit_link(const std::string& path) {
  std::string why;
  std::optional<DynamicLibrary> library = DynamicLibrary::try_open(path, &why, true);
  if (!library) {
    throw Error(fmt::format("cannot load nvJitLink {}: {}", path, why));
  }
  return std::move(*library);
}

}  // namespace

JitLink::JitLink(const std::string& path) : library_(open_jit_link(path)) {
  unsigned major = 0;
  unsigned minor = 0;
  if (library_.function<int (*)(unsigned*, unsigned*)>("nvJitLinkVersion")(&major, &minor) != 0) {
    throw Error(fmt::format("nvJitLink {} does not tell its version", path));
  }
  version_ = fmt::format("{}.{}", major, minor);
}

std::string JitLink::cubin(const std::string& ptx, const std::string& architecture, int max_registers) const {
  using Handle = void*;
  std::vector<std::string> options{"-arch=" + architecture};
  if (max_registers > 0) {
    options.push_back(fmt::format("-maxrregcount={}", max_registers));
  }
  std::vector<const char*> words;
  for (const std::string& option : options) {
    words.push_back(option.c_str());
  }
  Handle created = nullptr;
  if (library_.function<int (*)(Handle*, unsigned, const char**)>("nvJitLinkCreate")(
          &created, static_cast<unsigned>(words.size()), words.data()) != 0) {
    return {};
  }
  const auto destroy = library_.function<int (*)(Handle*)>("nvJitLinkDestroy");
  const auto destroy_handle = [destroy](Handle handle) { destroy(&handle); };
  const std::unique_ptr<void, decltype(destroy_handle)> handle(created, destroy_handle);
  // The terminating zero counts as a part of PTX.
  std::size_t bytes = 0;
  const bool done =
      library_.function<int (*)(Handle, int, const void*, std::size_t, const char*)>("nvJitLinkAddData")(
          created, kInputPtx, ptx.c_str(), ptx.size() + 1, "kernel.ptx") == 0 &&
      library_.function<int (*)(Handle)>("nvJitLinkComplete")(created) == 0 &&
      library_.function<int (*)(Handle, std::size_t*)>("nvJitLinkGetLinkedCubinSize")(created, &bytes) == 0;
  std::string code(done ? bytes : 0, '\0');
  if (code.empty() || library_.function<int (*)(Handle, void*)>("nvJitLinkGetLinkedCubin")(created, code.data()) != 0) {
    return {};
  }
  return code;
}

std::string find_jit_link(const std::string& cuda_version) {
  static std::mutex mutex;
  static std::map<std::string, std::string> found;
  const std::lock_guard lock(mutex);
  const auto known = found.find(cuda_version);
  if (known != found.end()) {
    return known->second;
  }
  std::string path;
  for (const std::string& candidate : jit_link_candidates()) {
    try {
      if (JitLink(candidate).version() == cuda_version) {
        path = candidate;
        break;
      }
    } catch (const Error&) {
      continue;  // a broken one is none
    }
  }
  return found.emplace(cuda_version, path).first->second;
}

}  // namespace pascaline
