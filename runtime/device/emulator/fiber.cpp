#include "runtime/device/emulator/fiber.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kPageBytes = 4096;
// Only the touched pages cost memory. AddressSanitizer's frames are several times as large.
constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::size_t kSanitizedStackBytes = 512 * 1024;
// Stacks lie a power of two apart; without an offset the hot ends of all would share one set of each cache.
constexpr std::size_t kColourBytes = 1088;
constexpr std::size_t kColours = 29;

std::size_t stack_bytes() noexcept { return sanitizer_hooks().present() ? kSanitizedStackBytes : kStackBytes; }

}  // namespace

Fiber::Fiber(Entry entry, int number) : entry_(entry) {
  const std::size_t bytes = stack_bytes();
  void* mapping =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) {
    throw EmulatorError(
        fmt::format("no memory for the stack of CUDA thread {} of a block: {}", number, std::strerror(errno)), errno);
  }
  mapping_ = mapping;
  // A guard page. Kernels may run out of mappings on machines with very many hardware threads; then there is none.
  ::mprotect(mapping, kPageBytes, PROT_NONE);
  bottom_ = static_cast<char*>(mapping) + kPageBytes;
  bytes_ = bytes - kPageBytes - static_cast<std::size_t>(number) % kColours * kColourBytes / 64 * 64;
  rewind();
}

Fiber::~Fiber() {
  if (mapping_ != nullptr) {
    // What is mapped here next must not inherit the marks of frames that were abandoned on this stack.
    if (sanitizer_hooks().present()) {
      sanitizer_hooks().unpoison(bottom_, bytes_);
    }
    ::munmap(mapping_, stack_bytes());
  }
}

void Fiber::rewind() noexcept {
  char* top = static_cast<char*>(const_cast<void*>(bottom_)) + bytes_;
  if (sanitizer_hooks().present()) {
    sanitizer_hooks().unpoison(bottom_, bytes_);
  }
  fake_stack_ = nullptr;
  context_ = boost::context::detail::make_fcontext(top, bytes_, entry_);
}

}  // namespace pascaline
