#include "tuner/monitor/polite_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/util/shown_text.hpp"
#include "runtime/machine/machine_state.hpp"

namespace pascaline {
namespace {

// They draw whatever is on the screen, whether or not anybody looks at it. Names as the kernel cuts them.
constexpr std::array<std::string_view, 12> kDisplayServers{"X",        "Xorg",         "Xwayland", "gnome-shell",
                                                           "kwin_x11", "kwin_wayland", "sway",     "weston",
                                                           "mutter",   "Hyprland",     "gdm",      "sddm-greeter"};

// What runs on the card for other sweeps (`pascaline measure-worker`): two polite sweeps would wait for each other.
constexpr std::string_view kMeasuringProcess = "measure-worker";

constexpr int kMaxAncestors = 64;

}  // namespace

PoliteWatch::PoliteWatch(PoliteOptions options, const DeviceInfo& device)
    : options_(std::move(options)),
      device_(device.id),
      processes_(options_.processes ? options_.processes(device) : gpu_processes_of(device)) {
  const auto processes = processes_();
  for (const GpuProcess& process : processes.value_or(std::vector<GpuProcess>())) {
    if (!process.computes) {
      drew_before_.insert(process.id);
    }
  }
  if (!on_battery(options_.root)) {
    not_told_.emplace_back("whether it is on battery");
  }
  if (!lid_closed(options_.root)) {
    not_told_.emplace_back("whether its lid is closed");
  }
  if (!processes) {
    not_told_.push_back(fmt::format("which processes use {}", device_));
  }
}

bool PoliteWatch::counts(const GpuProcess& process) const {
  const auto row = process_row(process.id, options_.root);
  if (!row || row->first_argument == kMeasuringProcess) {
    return false;
  }
  if (!process.computes &&
      (drew_before_.contains(process.id) ||
       std::find(kDisplayServers.begin(), kDisplayServers.end(), row->name) != kDisplayServers.end())) {
    return false;
  }
  std::int64_t ancestor = process.id;
  for (int i = 0; i < kMaxAncestors && ancestor > 1; ++i) {
    if (ancestor == ::getpid()) {
      return false;
    }
    const auto parent = process_row(ancestor, options_.root);
    ancestor = parent ? parent->parent : 0;
  }
  return true;
}

std::string PoliteWatch::process_reason() const {
  for (const GpuProcess& process : processes_().value_or(std::vector<GpuProcess>())) {
    if (counts(process)) {
      const auto row = process_row(process.id, options_.root);
      return fmt::format("{} (process {}) {} on {}", row ? clean_line(row->name) : "another process", process.id,
                         process.computes ? "computes" : "draws", device_);
    }
  }
  return {};
}

std::string PoliteWatch::present_reason() const {
  if (on_battery(options_.root).value_or(false)) {
    return "the machine is on battery";
  }
  if (lid_closed(options_.root).value_or(false)) {
    return "the lid is closed";
  }
  return process_reason();
}

bool PoliteWatch::look(double now_s) {
  if (looked_at_s_ && now_s - *looked_at_s_ < options_.look_every_s) {
    return false;
  }
  paused_s_ += looked_at_s_ && !reason_.empty() ? now_s - *looked_at_s_ : 0;
  looked_at_s_ = now_s;
  std::string now = present_reason();
  if (!now.empty()) {
    used_at_s_ = now_s;
  } else if (used_at_s_ && now_s - *used_at_s_ < options_.calm_s) {
    now = reason_;  // it may come back at once
  }
  const bool changed = reason_.empty() != now.empty();
  reason_ = std::move(now);
  return changed;
}

}  // namespace pascaline
