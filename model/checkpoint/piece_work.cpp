#include "model/checkpoint/piece_work.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace pascaline {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{200};

class PieceWork {
 public:
  PieceWork(std::size_t pieces, const std::function<void(std::size_t)>& piece) : pieces_(pieces), piece_(&piece) {}

  [[nodiscard]] bool run(const PieceWorkSettings& settings) {
    const auto wanted =
        static_cast<std::size_t>(settings.threads > 0 ? static_cast<unsigned>(settings.threads)
                                                      : std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::thread> workers = started(std::min(wanted, pieces_));
    const bool goes_on = watch(settings);
    for (std::thread& worker : workers) {
      worker.join();
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    return goes_on;
  }

 private:
  // As many as can be started; the first error is of none.
  std::vector<std::thread> started(std::size_t wanted) {
    std::vector<std::thread> workers;
    const std::lock_guard lock(mutex_);
    try {
      for (; workers.size() < wanted; ++working_) {
        workers.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
      if (workers.empty()) {
        throw;
      }
    }
    return workers;
  }

  void work() {
    try {
      for (std::size_t i = next_++; i < pieces_; i = next_++) {
        (*piece_)(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = failure_ ? failure_ : std::current_exception();
      next_ = pieces_;
    }
    const std::lock_guard lock(mutex_);
    working_ -= 1;
    finished_.notify_all();
  }

  // Asks until the workers are done; false if it was told to stop.
  bool watch(const PieceWorkSettings& settings) {
    bool goes_on = true;
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      finished_.wait_for(lock, kBetweenQuestions, [this] { return working_ == 0; });
      if (goes_on && settings.goes_on) {
        lock.unlock();
        goes_on = settings.goes_on();
        lock.lock();
        if (!goes_on) {
          next_ = pieces_;
        }
      }
    }
    return goes_on;
  }

  std::size_t pieces_;
  const std::function<void(std::size_t)>* piece_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::size_t working_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

bool work_through(std::size_t pieces, const std::function<void(std::size_t)>& piece,
                  const PieceWorkSettings& settings) {
  return PieceWork(pieces, piece).run(settings);
}

}  // namespace pascaline
