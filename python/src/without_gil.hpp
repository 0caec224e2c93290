#pragma once

#include <nanobind/nanobind.h>

namespace pascaline::python {

/// Work that goes on while other Python threads run. Python ends threads that ask for the GIL after its own end has
/// begun in ways that no destructor survives, so that the end of the interpreter waits for such work first, and stops
/// what can be stopped.
class Busy {
 public:
  /// With the GIL. Throws Error if the interpreter is ending, but in the thread that ends it.
  Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy();
};

/// Releases the GIL as long as it lives; such work.
class WithoutGil {
 public:
  WithoutGil() = default;

 private:
  Busy busy_;  // until the GIL is taken again
  nanobind::gil_scoped_release released_;
};

/// Whether the interpreter waits for this thread's work.
[[nodiscard]] bool is_to_end() noexcept;

/// Has the end of the interpreter wait.
void add_end(nanobind::module_& module);

}  // namespace pascaline::python
