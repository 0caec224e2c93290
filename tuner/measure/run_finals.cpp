#include "tuner/measure/run_finals.hpp"

#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "tuner/measure/finals_sampler.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

using Finalist = std::pair<Config, Binary>;

/// Loads finalists and measures until the finals are over.
void measure_finals(Finals& finals, TrialRunner& runner, const std::vector<Finalist>& finalists,
                    const FinalsOptions& options, const std::function<void(std::size_t)>& running) {
  DeviceMonitor& monitor = runner.monitor();
  FinalsSampler sampler(monitor, options, runner.options().cold_cache, running);
  std::vector<std::unique_ptr<TrialRunner::Ready>> ready;  // which stay where they are
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    running(i);
    ready.push_back(std::make_unique<TrialRunner::Ready>(runner.make_ready(finalists[i].first, finalists[i].second)));
    const TimedWork work = ready.back()->work(runner.device());
    sampler.add(work);
    runner.phase("launch");
    work.launch();
    runner.device().synchronize();
  }
  for (Round round = finals.next(monitor.left_s()); !round.over(); round = finals.next(monitor.left_s())) {
    finals.add(sampler.measure(round, finals.contenders()));
  }
}

}  // namespace

std::optional<FinalsResult> run_finals(TrialRunner& runner, const std::vector<std::pair<Config, Binary>>& finalists,
                                       const FinalsOptions& options, const std::function<void(std::size_t)>& running) {
  std::vector<Finalist> left = finalists;
  std::vector<std::size_t> indices(finalists.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::vector<Trial> blanks;
  for (const auto& [config, binary] : finalists) {
    blanks.push_back(blank_trial(runner.space(), config, binary));
  }
  Finals finals(std::move(blanks), objective_of(options), options,
                [&](double canary_us) { return runner.monitor().scale_of(canary_us); });
  while (!left.empty() && !runner.device_lost()) {
    std::size_t on_device = 0;
    const auto put_on = [&](std::size_t contender) {
      on_device = contender;
      if (running) {
        running(indices[contender]);
      }
    };
    std::string reason;
    try {
      measure_finals(finals, runner, left, options, put_on);
      return finals.decided();
    } catch (const CudaError& error) {
      reason = error.what();
    } catch (const EmulatorError& error) {
      reason = error.what();
    }
    finals.fail(on_device, std::move(reason));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(on_device));
    indices.erase(indices.begin() + static_cast<std::ptrdiff_t>(on_device));
    runner.recover();
  }
  return std::nullopt;
}

}  // namespace pascaline
