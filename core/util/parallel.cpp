#include "core/util/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pascaline {

void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t slices = (count + grain - 1) / grain;
  const std::size_t workers = std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), slices);
  if (workers <= 1) {
    if (count > 0) {
      body(0, count);
    }
    return;
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    for (std::size_t slice = next++; slice < slices; slice = next++) {
      try {
        body(slice * grain, std::min(count, (slice + 1) * grain));
      } catch (...) {
        const std::scoped_lock lock(failure_mutex);
        failure = failure ? failure : std::current_exception();
        next = slices;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < workers; ++i) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace pascaline
