#include "tuner/simulation/simulated_card.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/error.hpp"
#include "runtime/thermal/sensor_trace.hpp"

namespace pascaline {
namespace {

constexpr double kReadEverySeconds = 0.25;
constexpr double kCanaryUs = 1000;
constexpr double kFlicker = 1e-3;  // of the power
constexpr double kFlickerPerSecond = 1000;

}  // namespace

/// A device that runs nothing but the canary.
class SimulatedCard::Chip final : public Device {
 public:
  explicit Chip(SimulatedCard& card) : card_(card) {}

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }
  [[nodiscard]] DeviceMemory& memory() noexcept override { std::abort(); }
  [[nodiscard]] Buffer allocate(std::size_t /*bytes*/) override { refuse(); }
  void upload(const Buffer& /*to*/, std::span<const std::byte> /*from*/) override { refuse(); }
  void download(std::span<std::byte> /*to*/, const Buffer& /*from*/) override { refuse(); }
  void fill(const Buffer& /*buffer*/, std::uint8_t /*byte*/) override { refuse(); }
  [[nodiscard]] bool guards_intact(const Buffer& /*buffer*/) override { refuse(); }
  [[nodiscard]] std::uint64_t checksum(const Buffer& /*buffer*/) override { refuse(); }
  [[nodiscard]] Kernel load(const Binary& /*binary*/) override { refuse(); }
  void launch(const Kernel& /*kernel*/, const Geometry& /*geometry*/, std::span<void* const> /*arguments*/) override {
    refuse();
  }
  [[nodiscard]] Graph record(const std::function<void()>& /*work*/) override { refuse(); }
  bool update(Graph& /*graph*/, const std::function<void()>& /*work*/) override { refuse(); }
  [[nodiscard]] bool recording() const noexcept override { return false; }
  void launch(const Graph& /*graph*/) override { refuse(); }
  void synchronize() override {}
  [[nodiscard]] double time_launch_us(const Kernel& /*kernel*/, const Geometry& /*geometry*/,
                                      std::span<void* const> /*arguments*/, bool /*cold_cache*/) override {
    refuse();
  }
  [[nodiscard]] double time_launch_us(const Graph& /*graph*/, bool /*cold_cache*/) override { refuse(); }
  [[nodiscard]] double time_canary_us() override {
    card_.advance(kCanaryUs * 1e-6);
    const SensorTrace::Moment moment = card_.moment();
    return moment.canary_us.value_or(kCanaryUs) * moment.canary_scale;
  }
  [[nodiscard]] Sensors read_sensors() noexcept override { return card_.moment().sensors; }
  void reset() override {}

 protected:
  void release_buffer(void* /*base*/) noexcept override {}
  void release_kernel(void* /*module*/) noexcept override {}
  void release_graph(void* /*handle*/) noexcept override {}

 private:
  [[noreturn]] static void refuse() { throw Error("a simulated card runs no kernels"); }

  SimulatedCard& card_;
  DeviceInfo info_;
};

SimulatedCard::SimulatedCard(const MeasureClientOptions& options)
    : governor_(options.governor), chip_(std::make_unique<Chip>(*this)) {
  if (!options.sensors.empty()) {
    trace_ = SensorTrace::load(options.sensors);
  }
  governor_.passive = governor_.passive || !trace_;
}

SimulatedCard::~SimulatedCard() = default;

void SimulatedCard::open(double at_s) {
  opened_s_ = now_s_ = next_reading_s_ = at_s;
  DeviceMonitorHooks hooks;
  hooks.now_s = [this] { return now_s_; };
  hooks.sleep_s = [this](double seconds) { advance(seconds); };
  monitor_.emplace(*chip_, governor_, std::move(hooks));
}

// The last digits of a card's power are never still.
SensorTrace::Moment SimulatedCard::moment() const {
  SensorTrace::Moment moment = trace_ ? trace_->at(std::max(0.0, now_s_ - opened_s_)) : SensorTrace::Moment{};
  if (power_w_) {
    moment.sensors.power_w = *power_w_ * (1 + kFlicker * std::sin(kFlickerPerSecond * now_s_));
  }
  return moment;
}

// A duration without end has no readings.
void SimulatedCard::advance(double seconds) {
  const double until_s = now_s_ + seconds;
  while (trace_ && std::isfinite(until_s) && next_reading_s_ <= until_s) {
    now_s_ = std::max(now_s_, next_reading_s_);
    take_reading();
    next_reading_s_ += kReadEverySeconds;
  }
  now_s_ = until_s;
}

void SimulatedCard::take_reading() {
  Reading& reading = readings_.emplace_back();
  reading.at_s = now_s_;
  reading.telemetry.sensors = monitor_->read_sensors();
  reading.telemetry.state = monitor_->state();
  reading.telemetry.reason = monitor_->reason();
  reading.telemetry.canary_us = monitor_->last_canary_us();
}

std::vector<SimulatedCard::Reading> SimulatedCard::take_readings(double until_s) {
  const auto later =
      std::ranges::find_if(readings_, [until_s](const Reading& reading) { return reading.at_s > until_s; });
  std::vector<Reading> taken(std::make_move_iterator(readings_.begin()), std::make_move_iterator(later));
  readings_.erase(readings_.begin(), later);
  return taken;
}

void SimulatedCard::close(double at_s) {
  std::erase_if(readings_, [at_s](const Reading& reading) { return reading.at_s > at_s; });
}

}  // namespace pascaline
