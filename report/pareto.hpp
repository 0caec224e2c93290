#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/problem.hpp"
#include "db/store.hpp"

namespace pascaline {

/// A configuration of which both time and energy of a launch are known: by the trial that won where it is a winner's,
/// else by its latest such trial.
struct ParetoPoint {
  std::int64_t trial_id = 0;
  Config config;
  double median_us = 0;
  double energy_mj = 0;
  bool is_default = false;
  bool on_front = false;  ///< none is as fast and takes less energy, or takes as little and is faster
};

/// What one problem's configurations take of time and energy, on one device under one toolkit and kernel source.
struct ParetoProblem {
  DeviceRow device;
  ToolkitRow toolkit;
  KernelRow kernel;
  Problem problem;
  std::vector<ParetoPoint> points;            ///< the fastest first
  std::optional<std::int64_t> time_winner{};  ///< trials; nothing if none was decided, or it is none of the points
  std::optional<std::int64_t> energy_winner{};
  std::optional<std::int64_t> edp_winner{};
  std::string energy_outdated{};  ///< why the winner by energy is not used (`why_outdated`); empty if it may be
};

/// Identity of a device (kind, name, compute capability, SMs), a toolkit (four texts), a kernel's source and a problem.
using ParetoKey = std::vector<std::string>;
[[nodiscard]] ParetoKey pareto_key(const DeviceRow& device, const ToolkitRow& toolkit, const std::string& source_hash,
                                   const Problem& problem);

/// Of the trials of a kernel (empty: of all) that `is_wanted` (empty: every one): problems with at least two points.
/// Throws StoreError.
[[nodiscard]] std::map<ParetoKey, ParetoProblem> pareto_problems(
    const Store& store, const std::string& kernel, const std::function<bool(const StoredTrial&)>& is_wanted = {});

/// Keeps about that many points: those on the front, winners and the default, and of the others evenly.
void thin_out_points(ParetoProblem& problem, std::size_t most);

/// "winner by time, default": what a point is; empty if it is nothing of the kind.
[[nodiscard]] std::string pareto_role(const ParetoProblem& problem, const ParetoPoint& point);

/// "The winner by energy uses 12.3 % less energy at 4.5 % more time than the winner by time." Without a winner by
/// energy it is about the thriftiest point, and says so; of one that is outdated it says why.
[[nodiscard]] std::string pareto_sentence(const ParetoProblem& problem);

}  // namespace pascaline
