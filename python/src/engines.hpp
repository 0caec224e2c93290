#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/device/device.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::python {

/// A device with what dispatches on it. One thread at a time uses it.
class Engine {
 public:
  Engine(const std::string& device, const DispatcherOptions& options)
      : device_(open_device(device)), dispatcher_(*device_, options) {}

  /// Calls `work` and waits for what it launched; after work that others gave the device's default stream, where there
  /// is one. In whatever thread, without the GIL.
  void run(const std::function<void(Dispatcher&)>& work);
  void reload(const std::optional<std::filesystem::path>& database);

 private:
  std::mutex mutex_;
  std::unique_ptr<Device> device_;
  Dispatcher dispatcher_;
};

/// The process's engine of that device, made when it is first asked for. Throws as `open_device` and `Dispatcher`.
[[nodiscard]] Engine& engine_of(const std::string& device);

/// Where all engines look for winners from now on; nothing: nowhere. Throws as `Dispatcher::reload`, and changes
/// nothing of the engine then.
void use_database(const std::optional<std::filesystem::path>& database);

/// Throws Error in a process that was forked from one that had threads or devices already, which it has not.
void refuse_fork();

}  // namespace pascaline::python
