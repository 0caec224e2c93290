#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

namespace pascaline {

/// Which thread, if any, records a graph on a device. Any thread may ask.
class RecordingThread {
 public:
  /// Sets it to the calling thread for as long as it lives.
  class Mark {
   public:
    explicit Mark(RecordingThread& thread) noexcept : thread_(thread) { thread_.id_.store(std::this_thread::get_id()); }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark() { thread_.id_.store(std::thread::id()); }

   private:
    RecordingThread& thread_;
  };

  [[nodiscard]] bool any() const noexcept { return id_.load() != std::thread::id(); }
  [[nodiscard]] bool is_this_one() const noexcept { return id_.load() == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> id_{};
};

/// The message for what cannot be done while launches are recorded.
[[nodiscard]] std::string refused_in_recording(std::string_view doing);

}  // namespace pascaline
