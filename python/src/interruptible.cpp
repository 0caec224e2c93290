#include "python/src/interruptible.hpp"

#include <chrono>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "python/src/without_gil.hpp"

namespace pascaline::python {

namespace nb = nanobind;

void Interruptible::tell(std::string kind, std::string json) {
  const std::lock_guard lock(mutex_);
  events_.push_back({std::move(kind), std::move(json)});
  changed_.notify_one();
}

void Interruptible::serve() {
  constexpr std::chrono::milliseconds kLook{50};
  for (;;) {
    std::deque<Event> events;
    bool ended = false;
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLook, [this] { return ended_ || !events_.empty(); });
      events.swap(events_);
      ended = ended_;
    }
    try {
      if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
      }
      if (is_to_end() && !interruption_) {
        throw Error("ended, as the Python interpreter is ending");
      }
      if (looks_ && events.empty() && !ended && !interruption_ && heard()) {
        listener_("look", "null");
      }
      for (const Event& event : events) {
        if (!interruption_) {
          listener_(event.kind, event.json);
        }
      }
    } catch (...) {
      if (!interruption_) {
        interruption_ = std::current_exception();
      }
      stop_ = true;
    }
    if (ended) {
      return;
    }
  }
}

void Interruptible::run(const std::function<void()>& work) {
  const Busy busy;
  std::exception_ptr failure;
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  });
  serve();
  {
    const nb::gil_scoped_release released;
    worker.join();
  }
  if (interruption_) {
    std::rethrow_exception(interruption_);
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace pascaline::python
