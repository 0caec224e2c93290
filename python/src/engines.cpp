#include "python/src/engines.hpp"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <map>
#include <thread>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/cuda/default_stream.hpp"

namespace pascaline::python {
namespace {

struct Engines {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Engine>> by_device;
  std::optional<std::filesystem::path> database;
  bool database_chosen = false;
};

// Never destroyed: a driver may have ended before this process's last objects.
Engines& engines() {
  static Engines& all = *new Engines;
  return all;
}

// The user's, if there is one.
std::optional<std::filesystem::path> usual_database() {
  std::filesystem::path file = default_database();
  return std::filesystem::exists(file) ? std::optional(std::move(file)) : std::nullopt;
}

}  // namespace

void Engine::run(const std::function<void(Dispatcher&)>& work) {
  const std::lock_guard lock(mutex_);
  if (device_->info().kind != DeviceKind::cuda) {
    work(dispatcher_);
    device_->synchronize();
    return;
  }
  // In a thread of its own: which context is current in the caller's is the caller's business.
  std::exception_ptr failure;
  std::thread([&] {
    try {
      device_->synchronize();
      synchronize_default_stream();
      work(dispatcher_);
      device_->synchronize();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void Engine::reload(const std::optional<std::filesystem::path>& database) {
  const std::lock_guard lock(mutex_);
  dispatcher_.reload(database);
}

Engine& engine_of(const std::string& device) {
  Engines& all = engines();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<Engine>& engine = all.by_device[device];
  if (!engine) {
    DispatcherOptions options;
    options.database = all.database_chosen ? all.database : usual_database();
    engine = std::make_unique<Engine>(device, options);
  }
  return *engine;
}

void use_database(const std::optional<std::filesystem::path>& database) {
  Engines& all = engines();
  const std::lock_guard lock(all.mutex);
  if (database && !std::filesystem::exists(*database)) {
    throw Error("db: there is no " + database->string() + "; `pascaline.sweep` makes one");
  }
  for (auto& [device, engine] : all.by_device) {
    if (engine) {
      engine->reload(database);
    }
  }
  all.database = database;
  all.database_chosen = true;
}

void refuse_fork() {
  static const pid_t first = ::getpid();
  if (::getpid() != first) {
    throw Error(
        "this process was forked from one that had used Pascaline already, whose threads and devices it does not have; "
        "start it by multiprocessing's 'spawn' or 'forkserver'");
  }
}

}  // namespace pascaline::python
