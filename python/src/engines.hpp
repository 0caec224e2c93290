#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "runtime/device/device.hpp"
#include "runtime/device/stream_scope.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::python {

/// Where a call computes: of a GPU, its ordinal.
using Place = int;
inline constexpr Place kProcessor = -1;
inline constexpr Place kEmulator = -2;
inline constexpr Place kNowhere = -3;  ///< of a call without arrays

/// "cpu", "emulator", "cuda:N".
[[nodiscard]] std::string name_of_place(Place place);

/// The streams of a call on a GPU.
struct CallStreams {
  static constexpr std::size_t kMost = Dispatcher::kMaxArguments;

  ForeignStream used;                         ///< that the call's work goes to
  std::array<ForeignStream, kMost> waited{};  ///< others that its arrays may still be written on
  std::size_t waited_count = 0;
};

/// A device with what dispatches on it. One thread at a time uses it. In whatever thread, without the GIL; the
/// thread's current CUDA context stays what it was.
class Engine {
 public:
  Engine(const std::string& device, const DispatcherOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Waits for what was launched.
  ~Engine();

  /// Launches what `find` gives, on the call's stream, and does not wait, but on the emulated device. Where it gives
  /// null, `prepare` is asked before, and the device waited for. Throws Error if that would have to be done while the
  /// stream is being captured into a graph. `find(dispatcher)` returns `const Prepared*`, `prepare(dispatcher)`
  /// `const Prepared&`; `buffers` as for `Dispatcher::launch`; `name` is for messages.
  template <typename Find, typename Prepare>
  void launch(const char* name, const CallStreams& streams, std::span<void* const> buffers, const Find& find,
              const Prepare& prepare) {
    const std::lock_guard lock(mutex_);
    const Prepared* prepared = find(*dispatcher_);
    if (prepared == nullptr) {
      prepared = &first_call(name, streams, prepare);
    }
    start(*prepared, buffers, streams);
  }
  /// Calls `work` on the device's own stream, after launches that share memory with its own, and waits for it.
  void run(const std::function<void(Dispatcher&)>& work);
  void reload(const std::optional<std::filesystem::path>& database);
  /// Whether a graph of somebody's has launches of it, so that it must never go.
  [[nodiscard]] bool was_captured();

 private:
  [[nodiscard]] const Prepared& first_call(const char* name, const CallStreams& streams,
                                           const std::function<const Prepared&(Dispatcher&)>& prepare);
  void start(const Prepared& prepared, std::span<void* const> buffers, const CallStreams& streams);

  std::mutex mutex_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Dispatcher> dispatcher_;
  bool is_gpu_ = false;
  bool captured_ = false;
};

/// Throws Error, which names what is called, where a first call may not be: while its stream is being captured.
void refuse_capture(const char* name, Place place, const CallStreams& streams);

/// The process's engine there, made when it is first asked for. Throws as `open_device`, `Dispatcher` and
/// `refuse_capture`.
[[nodiscard]] Engine& engine_of(const char* name, Place place, const CallStreams& streams);

/// Where all engines look for winners from now on; nothing: nowhere. Throws as `Dispatcher::reload`, and changes
/// nothing of the engine then.
void use_database(const std::optional<std::filesystem::path>& database);

/// Throws Error in a process that was forked from one that had threads or devices already, which it has not.
void refuse_fork();

}  // namespace pascaline::python
