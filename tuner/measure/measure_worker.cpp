#include "tuner/measure/measure_worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "core/argument_error.hpp"
#include "core/error.hpp"
#include "core/util/process.hpp"
#include "core/util/worker_pool.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/dispatch/planner.hpp"
#include "runtime/thermal/sensor_trace.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"
#include "tuner/measure/measure_messages.hpp"
#include "tuner/measure/run_finals.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

GivenFiles given_files(const json& message) {
  const auto named = [&](const char* key) {
    GivenFiles::Named files;
    for (const json& entry : message.at(key)) {
      files.emplace_back(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
    }
    return files;
  };
  return {named("inputs"), named("answers")};
}

class MeasureServer {
 public:
  explicit MeasureServer(MessageWriter& writer) : writer_(writer) {}

  /// Does what a message asks for; false if this process is of no use any more.
  bool handle(const json& message) {
    const std::string what = message.at("do").get<std::string>();
    if (what == "setup") {
      setup(message);
    } else if (what == "problem") {
      problem(message);
    } else if (!runner_) {
      throw Error("the measurement worker was given no valid problem");
    } else if (what != "trial" && what != "finals") {
      throw Error("the measurement worker was asked to do '" + what + "', which it does not know");
    } else {
      try {
        what == "trial" ? trial(message) : finals(message);
      } catch (const ArgumentError& error) {  // contents that were given have changed
        writer_.send({{"is", "refused"}, {"reason", error.what()}});
        return false;
      }
    }
    return !lost_;
  }

 private:
  void setup(const json& message);
  void problem(const json& message);
  void trial(const json& message);
  void finals(const json& message);
  void phase(const json& id, std::string_view name) {
    writer_.send({{"is", "phase"}, {"id", id}, {"phase", std::string(name)}});
  }
  // Says so if the device is gone; the parent starts another process.
  void look_at_device() {
    if (runner_ && runner_->device_lost()) {
      lost_ = true;
      writer_.send({{"is", "lost"}, {"reason", "a fault in a kernel made its process lose the device"}});
    }
  }

  // By the clock that both processes read.
  void set_end(const json& message) {
    const json& at_s = message.at("ends_at_s");
    monitor_->set_end_s(at_s.is_null() ? std::nullopt : std::optional(at_s.get<double>()));
  }

  // Since it was last asked.
  double waited_ms() {
    const double now_s = monitor_->waited_s();
    return 1000 * (now_s - std::exchange(told_waited_s_, now_s));
  }

  MessageWriter& writer_;
  double told_waited_s_ = 0;
  std::unique_ptr<Device> device_;
  CompileTarget plan_;
  MeasureOptions measure_;
  DispatcherOptions kernels_;
  std::optional<Binary> drawing_;  ///< of a GPU; the processor writes the emulated device's memory itself
  std::optional<DeviceMonitor> monitor_;
  std::optional<Space> space_;
  std::optional<BoundSpace> bound_;
  std::optional<TrialRunner> runner_;
  json job_id_ = 0;
  bool lost_ = false;
};

void MeasureServer::setup(const json& message) {
  const auto start = Clock::now();
  device_ = open_device(message.at("device").get<std::string>());
  plan_ = compile_target(device_->info(), message.at("target").get<std::string>());
  if (!message.at("database").is_null()) {
    kernels_.database = message.at("database").get<std::string>();
  }
  kernels_.thermal.enabled = false;  // what is compared must be launched in the same way each time
  kernels_.kernels = message.at("kernels").get<std::string>();
  kernels_.spaces = message.at("spaces").get<std::string>();
  kernels_.nvrtc = message.at("nvrtc").get<std::string>();
  kernels_.cache = message.at("cache").get<std::string>();
  kernels_.target = message.at("target").get<std::string>();
  std::future<Binary> drawing;  // it is compiled while the card warms up
  if (device_->info().kind == DeviceKind::cuda) {
    drawing = std::async(std::launch::async, drawing_code, device_->info(), kernels_);
  }
  message.at("measure").get_to(measure_);
  const auto governor = message.at("governor").get<GovernorOptions>();
  const auto trace = message.at("sensors").get<std::string>();
  DeviceMonitorHooks hooks;
  hooks.telemetry = [this](const MonitorReading& reading) {
    writer_.send({{"is", "telemetry"},
                  {"sensors", reading.sensors},
                  {"state", static_cast<int>(reading.state)},
                  {"reason", reading.reason},
                  {"canary_us", reading.canary_us ? json(*reading.canary_us) : json(nullptr)},
                  {"unix_ms", reading.unix_ms}});
  };
  if (!trace.empty()) {
    hooks.trace = SensorTrace::load(trace);
  }
  monitor_.emplace(*device_, governor, std::move(hooks));
  set_end(message);
  phase(job_id_, "preheat");
  monitor_->preheat();
  if (drawing.valid()) {
    drawing_ = drawing.get();
  }
  writer_.send({{"is", "ready"}, {"busy_ms", ms_since(start)}, {"waited_ms", waited_ms()}});
}

void MeasureServer::problem(const json& message) {
  const auto start = Clock::now();
  runner_.reset();
  bound_.reset();
  space_ = Space::parse(message.at("space").get<std::string>(), message.at("name").get<std::string>());
  const auto values = message.at("values").get<std::vector<std::pair<std::string, std::string>>>();
  bound_.emplace(*space_, space_->problem(values), plan_.limits);
  std::optional<ReferenceRun> reference;
  if (!message.at("reference").is_null()) {
    reference = {message.at("reference").get<Binary>(), Config::from_json(message.at("reference_config"))};
  }
  const auto refuse = [this](const Error& error) {
    writer_.send({{"is", "refused"}, {"reason", error.what()}});
    runner_.reset();
  };
  try {
    const auto seed = message.at("seed").get<std::uint64_t>();
    if (is_site(space_->kernel)) {
      runner_.emplace(*monitor_, *bound_, kernels_, measure_, seed);
    } else {
      runner_.emplace(*monitor_, *bound_, std::move(reference), measure_, seed);
    }
    if (drawing_) {
      runner_->draw_by(*drawing_);
    }
    if (GivenData data(given_files(message.at("given")), *bound_); data.hash() != bound_->problem().data) {
      throw ArgumentError(
          fmt::format("{}: the contents given for it have changed since the sweep began", bound_->problem().text()));
    } else if (!bound_->problem().data.empty()) {
      runner_->give(std::move(data));
    }
    runner_->prepare();
  } catch (const DeviceLostError&) {
    throw;
  } catch (const CudaError& error) {
    return refuse(error);
  } catch (const EmulatorError& error) {
    return refuse(error);
  } catch (const ReferenceError& error) {
    return refuse(error);
  } catch (const ArgumentError& error) {
    return refuse(error);
  } catch (const NoConfigError& error) {
    return refuse(error);
  } catch (const OutOfMemoryError& error) {
    return refuse(error);
  }
  runner_->on_phase([this](std::string_view name) { phase(job_id_, name); });
  writer_.send({{"is", "prepared"}, {"busy_ms", ms_since(start)}, {"weak", runner_->weak_checks()}});
}

void MeasureServer::trial(const json& message) {
  const auto start = Clock::now();
  job_id_ = message.at("id");
  set_end(message);
  phase(job_id_, "load");
  Compiled compiled;
  compiled.result.ok = true;
  message.at("binary").get_to(compiled.result.binary);
  const Trial trial =
      runner_->run(Config::from_json(message.at("config")), compiled, message.at("best_us").get<double>());
  if (runner_->cut_short()) {
    writer_.send({{"is", "cut"}, {"id", job_id_}, {"busy_ms", ms_since(start)}, {"waited_ms", waited_ms()}});
  } else if (runner_->gave_up()) {
    writer_.send({{"is", "gave_up"}, {"reason", monitor_->reason()}, {"remedy", monitor_->remedy()}});
  } else {
    const std::optional<Config>& alike = runner_->agrees_with();
    writer_.send({{"is", "trial"},
                  {"id", job_id_},
                  {"trial", trial},
                  {"agrees_with", alike ? alike->text() : ""},
                  {"busy_ms", ms_since(start)},
                  {"waited_ms", waited_ms()}});
  }
  look_at_device();
}

void MeasureServer::finals(const json& message) {
  const auto start = Clock::now();
  job_id_ = message.at("id");
  set_end(message);
  phase(job_id_, "0");
  std::vector<std::pair<Config, Binary>> finalists;
  for (const json& finalist : message.at("finalists")) {
    finalists.emplace_back(Config::from_json(finalist.at("config")), finalist.at("binary").get<Binary>());
  }
  const auto result = run_finals(*runner_, finalists, message.at("options").get<FinalsOptions>(),
                                 [this](std::size_t finalist) { phase(job_id_, std::to_string(finalist)); });
  if (!result && runner_->device_lost()) {
    look_at_device();  // the parent knows whose turn it was, and has the others compared in a new process
    return;
  }
  if (result && result->gave_up) {
    writer_.send({{"is", "gave_up"}, {"reason", monitor_->reason()}, {"remedy", monitor_->remedy()}});
  } else {
    writer_.send({{"is", "finals"},
                  {"id", job_id_},
                  {"result", result ? json(*result) : json(nullptr)},
                  {"busy_ms", ms_since(start)},
                  {"waited_ms", waited_ms()}});
  }
  look_at_device();
}

}  // namespace

int run_measure_worker() {
  end_with_parent();
  MessageWriter writer;
  MeasureServer server(writer);
  FrameReader reader;
  try {
    while (const auto message = read_message(STDIN_FILENO, reader)) {
      if (!server.handle(*message)) {
        break;
      }
    }
    end_at_once();
  } catch (const DeviceLostError& error) {
    writer.send({{"is", "lost"}, {"reason", error.what()}});
  } catch (const std::exception& error) {
    writer.send({{"is", "fault"}, {"reason", error.what()}});
  }
  return 1;
}

}  // namespace pascaline
