#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

namespace pascaline::python {

/// Long work for a Python caller: the work runs in a thread of its own, the caller's thread waits without the GIL,
/// looks for signals a few times a second and hands events to the caller's function.
class Interruptible {
 public:
  /// `listener` is called with a kind and a JSON text, both strings, in the caller's thread, or is None. With `looks`
  /// it is also called with "look" and "null" a few times a second while there is nothing to tell, so that it can throw
  /// then.
  explicit Interruptible(nanobind::object listener, bool looks = false)
      : listener_(std::move(listener)), looks_(looks) {}

  /// Runs `work` to its end. A signal's exception (Ctrl-C) and one that the listener throws set `stop`; it is thrown
  /// when the work has ended, before what the work itself throws. Call it with the GIL.
  void run(const std::function<void()>& work);

  /// For `work`, in whatever thread.
  [[nodiscard]] const std::atomic<bool>& stop() const noexcept { return stop_; }
  void tell(std::string kind, std::string json);
  /// Whether anybody listens; without a listener nothing may be told.
  [[nodiscard]] bool heard() const noexcept { return !listener_.is_none(); }

 private:
  struct Event {
    std::string kind;
    std::string json;
  };

  void serve();

  nanobind::object listener_;
  bool looks_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  bool ended_ = false;
  std::exception_ptr interruption_;
};

}  // namespace pascaline::python
