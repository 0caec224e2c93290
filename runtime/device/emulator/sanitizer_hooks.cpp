#include "runtime/device/emulator/sanitizer_hooks.hpp"

#include <dlfcn.h>

namespace pascaline {
namespace {

template <typename Function>
void resolve(Function*& function, const char* name) noexcept {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

SanitizerHooks find_hooks() noexcept {
  SanitizerHooks hooks;
  resolve(hooks.poison, "__asan_poison_memory_region");
  resolve(hooks.unpoison, "__asan_unpoison_memory_region");
  resolve(hooks.start_switch, "__sanitizer_start_switch_fiber");
  resolve(hooks.finish_switch, "__sanitizer_finish_switch_fiber");
  const bool complete = hooks.poison != nullptr && hooks.unpoison != nullptr && hooks.start_switch != nullptr &&
                        hooks.finish_switch != nullptr;
  return complete ? hooks : SanitizerHooks{};
}

}  // namespace

const SanitizerHooks& sanitizer_hooks() noexcept {
  static const SanitizerHooks hooks = find_hooks();
  return hooks;
}

}  // namespace pascaline
