#include "python/src/without_gil.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

std::atomic<int> g_busy{0};
std::atomic<bool> g_ending{false};
std::atomic<std::thread::id> g_ending_thread{};

bool is_other_thread() noexcept { return std::this_thread::get_id() != g_ending_thread.load(); }

// With the GIL, before Python itself takes anything down. Work that cannot be stopped is left to its fate after a
// while, or at Ctrl-C.
void end() {
  constexpr std::chrono::seconds kMost{60};
  constexpr std::chrono::milliseconds kLook{2};
  g_ending_thread = std::this_thread::get_id();
  g_ending = true;
  const auto begun = std::chrono::steady_clock::now();
  while (g_busy > 0 && std::chrono::steady_clock::now() - begun < kMost) {
    if (PyErr_CheckSignals() != 0) {
      throw nb::python_error();
    }
    const nb::gil_scoped_release released;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

Busy::Busy() {
  if (is_to_end()) {
    throw Error("the Python interpreter is ending, so that nothing new is begun");
  }
  ++g_busy;
}

Busy::~Busy() { --g_busy; }

bool is_to_end() noexcept { return g_ending && is_other_thread(); }

void add_end(nb::module_& module) {
  ::pthread_atfork(nullptr, nullptr, [] { g_busy = 0; });  // of threads that the new process does not have
  module.def("end", end, "Waits for work of other threads, before the interpreter ends.");
  nb::module_::import_("atexit").attr("register")(module.attr("end"));
}

}  // namespace pascaline::python
