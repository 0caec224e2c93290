#include "tuner/static_model/rank_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/static_model/code_estimate.hpp"
#include "tuner/static_model/rank_correlation.hpp"
#include "tuner/static_model/static_model.hpp"

namespace pascaline {
namespace {

struct Measured {
  Config config;
  Resources resources;
  double time_us = 0;
};

// The trials of one problem on one device, of one version of the kernel and by one compiler.
struct Group {
  DeviceRow device;
  ToolkitRow toolkit;
  Problem problem;
  std::map<std::string, Measured> by_config;
};

using GroupKey =
    std::tuple<std::string, std::string, std::int64_t, std::string, std::string, std::string, std::string, std::string>;

std::map<GroupKey, Group> read_groups(const Store& store, const RankCheckOptions& options) {
  std::map<GroupKey, Group> groups;
  TrialFilter filter;
  filter.kernel = options.kernel;
  filter.problem = options.problem;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    const Trial& trial = stored.trial;
    if (trial.stage != TrialStage::search || stored.device.kind != "cuda" || !trial.time) {
      return;
    }
    Group& group =
        groups[{stored.device.name, stored.device.compute_capability, stored.device.sm_count, stored.toolkit.target,
                stored.toolkit.compiler, stored.toolkit.version, trial.problem.text(), stored.kernel.source_hash}];
    group.device = stored.device;
    group.toolkit = stored.toolkit;
    group.problem = trial.problem;
    group.by_config[trial.config.text()] = {trial.config, trial.resources, trial.time->median_us};
  });
  return groups;
}

// Limits the configurations were bound to: those of the card, and of the architecture their code was made for.
DeviceLimits bound_limits(const Group& group, const DeviceLimits& card) {
  const auto target = limits_of_architecture(architecture_of_target(group.toolkit.target));
  return target ? tighter(card, *target) : card;
}

/// A trial with the time that the static model gives it.
struct Compared {
  Config config;
  double measured = 0;
  double compiled = 0;
};

std::vector<Compared> spread(const std::vector<Compared>& all, std::size_t most) {
  std::vector<Compared> out;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    out.push_back(all[i * all.size() / std::min(most, all.size())]);
  }
  return out;
}

std::optional<CodeCheck> check_code(const Group& group, const BoundSpace& bound, const DeviceRates& rates,
                                    const sm61::SmRates& sm_rates, const std::vector<Compared>& all,
                                    const RankCheckOptions& options) {
  std::map<std::string, CodeEstimate> estimates;
  const std::vector<Compared> chosen = spread(all, options.compile);
  std::vector<Config> configs;
  for (const Compared& each : chosen) {
    configs.push_back(each.config);
  }
  options.compiler(bound, group.toolkit, configs, [&](const Config& config, const Binary& binary) {
    if (const auto estimate = estimate_from_code(binary, bound, config, rates, sm_rates)) {
      estimates.emplace(config.text(), *estimate);
    }
  });
  std::array<std::vector<double>, 5> columns;  // measured, the model's, and three of the code's
  for (const Compared& each : chosen) {
    if (const auto found = estimates.find(each.config.text()); found != estimates.end()) {
      const CodeEstimate& code = found->second;
      const std::array<double, 5> row{each.measured, each.compiled, code.time_us(), code.least.time_us,
                                      code.most.time_us};
      for (std::size_t i = 0; i < row.size(); ++i) {
        columns[i].push_back(row[i]);
      }
    }
  }
  const std::vector<double>& measured = columns[0];
  if (measured.size() < 2) {
    return std::nullopt;
  }
  CodeCheck check{measured.size(),
                  rank_correlation(measured, columns[2]),
                  rank_correlation(measured, columns[3]),
                  rank_correlation(measured, columns[4]),
                  rank_correlation(measured, columns[1]),
                  std::nullopt};
  if (sm_rates.measured_conflict) {
    check.measured_conflict = sm_rates.conflict;
  }
  return check;
}

std::optional<RankCheck> check_group(const Group& group, const Space& space, const MeasuredRates& known,
                                     const RankCheckOptions& options) {
  RankCheck out;
  out.device = group.device;
  out.toolkit = group.toolkit;
  out.kernel = group.problem.kernel;
  out.problem = group.problem.text();
  const DeviceLimits card = stored_limits(group.device, DeviceLimits{});
  auto rates = typical_rates(group.device.compute_capability, card);
  if (!rates) {
    return std::nullopt;
  }
  use_measured(*rates, known);
  if (options.adjust) {
    options.adjust(*rates);
  }
  std::optional<BoundSpace> bound;
  try {
    bound.emplace(space, group.problem, bound_limits(group, card));
  } catch (const Error&) {
    return std::nullopt;  // a problem that the space no longer has
  }
  const StaticModel model(*bound, *rates);
  std::vector<double> measured;
  std::vector<double> predicted;
  std::vector<double> compiled;
  std::vector<Compared> compared;
  for (const auto& [text, trial] : group.by_config) {
    std::vector<std::uint16_t> indices;
    try {
      indices = space.indices_of(trial.config);
    } catch (const Error&) {
      ++out.skipped;
      continue;
    }
    const auto without = model.estimate(indices);
    const auto with = model.estimate(indices, &trial.resources);
    if (!without || !with) {
      throw Error(fmt::format("cannot estimate {} of {}: an expression of the section 'model' has no value there", text,
                              out.problem));
    }
    measured.push_back(trial.time_us);
    predicted.push_back(without->time_us);
    compiled.push_back(with->time_us);
    compared.push_back({trial.config, trial.time_us, with->time_us});
  }
  if (measured.size() < std::max<std::size_t>(2, options.min_trials)) {
    return std::nullopt;
  }
  constexpr double kSought = 0.01;
  constexpr double kKept = 0.1;
  out.trials = measured.size();
  out.correlation = rank_correlation(measured, predicted);
  out.compiled_correlation = rank_correlation(measured, compiled);
  out.found = share_found(measured, predicted, kSought, kKept);
  out.compiled_found = share_found(measured, compiled, kSought, kKept);
  if (options.compile > 0) {
    try {
      out.code = check_code(group, *bound, *rates, sm61::sm_rates(known), compared, options);
    } catch (const NvrtcError& error) {
      out.code_missing = error.what();
    }
  }
  return out;
}

}  // namespace

std::vector<RankCheck> check_ranking(const Store& store, const RankCheckOptions& options) {
  std::map<std::string, std::optional<Space>> spaces;
  std::vector<RankCheck> out;
  for (const auto& [key, group] : read_groups(store, options)) {
    const std::string& kernel = group.problem.kernel;
    if (!spaces.contains(kernel)) {
      spaces[kernel] = options.load_space(kernel);
    }
    if (const auto& space = spaces[kernel]) {
      if (auto check = check_group(group, *space, store.measured_rates(group.device), options)) {
        out.push_back(std::move(*check));
      }
    }
  }
  return out;
}

}  // namespace pascaline
