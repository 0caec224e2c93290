#include "python/src/engines.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <map>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "db/store.hpp"
#include "runtime/device/cuda/thread_context.hpp"

namespace pascaline::python {
namespace {

constexpr std::size_t kQuickPlaces = 64;  // found without a lock

struct Engines {
  std::mutex mutex;
  std::map<Place, std::unique_ptr<Engine>> by_site;
  std::array<std::atomic<Engine*>, kQuickPlaces> quick{};  // of by_site, by `place - kEmulator`
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

std::atomic<bool> g_forked{false};

}  // namespace

std::string name_of_place(Place place) {
  return place == kProcessor  ? "cpu"
         : place == kEmulator ? "emulator"
         : place == kNowhere  ? ""
                              : fmt::format("cuda:{}", place);
}

Engine::Engine(const std::string& device, const DispatcherOptions& options) {
  const ThreadContext kept;
  device_ = open_device(device);
  dispatcher_ = std::make_unique<Dispatcher>(*device_, options);
  is_gpu_ = device_->info().kind == DeviceKind::cuda;
}

Engine::~Engine() {
  const ThreadContext kept;
  try {
    run([](Dispatcher& /*unused*/) {});
  } catch (const Error&) {
    // Of a device that is lost nothing runs any more.
  }
  dispatcher_.reset();
  device_.reset();
}

void refuse_capture(const char* name, Place place, const CallStreams& streams) {
  if (place >= 0 && is_captured(streams.used)) {
    throw Error(
        fmt::format("{}: it was not called with these shapes and types before the capture of the CUDA graph began, and "
                    "its first call compiles and allocates, which a capture does not allow: call it once before",
                    name));
  }
}

const Prepared& Engine::first_call(const char* name, const CallStreams& streams,
                                   const std::function<const Prepared&(Dispatcher&)>& prepare) {
  refuse_capture(name, is_gpu_ ? 0 : kEmulator, streams);
  const StreamScope own(*device_);
  const Prepared& prepared = prepare(*dispatcher_);
  device_->synchronize();
  return prepared;
}

void Engine::start(const Prepared& prepared, std::span<void* const> buffers, const CallStreams& streams) {
  if (!is_gpu_) {
    dispatcher_->launch(prepared, buffers);
    device_->synchronize();
    return;
  }
  StreamScope scope(*device_, streams.used);
  captured_ = captured_ || scope.captured();
  for (std::size_t i = 0; i < streams.waited_count; ++i) {
    scope.wait_for(streams.waited[i]);
  }
  const bool shares = prepared.shares_memory();
  if (shares) {
    scope.begin_shared();
  }
  dispatcher_->launch(prepared, buffers);
  if (shares) {
    scope.end_shared();
  }
}

void Engine::run(const std::function<void(Dispatcher&)>& work) {
  const std::lock_guard lock(mutex_);
  StreamScope scope(*device_);
  scope.begin_shared();
  work(*dispatcher_);
  scope.end_shared();
  device_->synchronize();
}

void Engine::reload(const std::optional<std::filesystem::path>& database) {
  const std::lock_guard lock(mutex_);
  dispatcher_->reload(database);
}

bool Engine::was_captured() {
  const std::lock_guard lock(mutex_);
  return captured_;
}

Engine& engine_of(const char* name, Place place, const CallStreams& streams) {
  Engines& all = engines();
  const auto index = static_cast<std::size_t>(place - kEmulator);
  if (index < kQuickPlaces) {
    if (Engine* known = all.quick[index].load(std::memory_order_acquire)) {
      return *known;
    }
  }
  refuse_capture(name, place, streams);
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<Engine>& engine = all.by_site[place];
  if (!engine) {
    DispatcherOptions options;
    options.database = all.database_chosen ? all.database : usual_database();
    engine = std::make_unique<Engine>(name_of_place(place), options);
  }
  if (index < kQuickPlaces) {
    all.quick[index].store(engine.get(), std::memory_order_release);
  }
  return *engine;
}

void use_database(const std::optional<std::filesystem::path>& database) {
  Engines& all = engines();
  const std::lock_guard lock(all.mutex);
  if (database && !std::filesystem::exists(*database)) {
    throw StoreError("db: there is no " + database->string() + "; `pascaline.sweep` makes one");
  }
  if (database) {
    const Store read(*database, OpenMode::read_only);  // which says what is wrong with it
  }
  for (auto& [place, engine] : all.by_site) {
    if (engine) {
      engine->reload(database);
    }
  }
  all.database = database;
  all.database_chosen = true;
}

void refuse_fork() {
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] { g_forked.store(true); });
  if (watched != 0 || g_forked.load(std::memory_order_relaxed)) {
    throw Error(
        "this process was forked from one that had used Pascaline already, whose threads and devices it does not have; "
        "start it by multiprocessing's 'spawn' or 'forkserver'");
  }
}

}  // namespace pascaline::python
