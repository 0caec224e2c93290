#include "tuner/portfolio/estimated_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/device/sm61/kernel_code.hpp"
#include "tuner/search/searcher.hpp"
#include "tuner/static_model/code_estimate.hpp"
#include "tuner/static_model/ranking.hpp"

namespace pascaline {
namespace {

constexpr int kSteps = 4;                  // towards better estimates
constexpr std::size_t kModelled = 20'000;  // configurations that the static model looks at for a problem
constexpr std::size_t kEnds = 2;

/// One problem on one card.
struct Case {
  BoundSpace bound;
  const DeviceRates* rates;
  std::size_t problem;
  std::size_t card;
};

/// The pool as it grows, with the code of its members and their times.
class EstimatePool {
 public:
  EstimatePool(const Space& space, const std::vector<Problem>& problems, const EstimateOptions& options,
               const std::function<void(std::size_t)>& told, const std::atomic<bool>& stop)
      : space_(&space), options_(&options), told_(&told), stop_(&stop), random_(options.variants.seed) {
    if (space.launches.size() > 1) {
      throw Error(fmt::format("kernel '{}' is a pipeline, whose time is not estimated from code", space.kernel));
    }
    for (std::size_t problem = 0; problem < problems.size(); ++problem) {
      for (std::size_t card = 0; card < options.cards.size(); ++card) {
        cases_.push_back(
            {BoundSpace(space, problems[problem], options.cards[card].limits), &options.cards[card], problem, card});
      }
    }
    for (const CompilerInfo& compiler :
         variant_compilers(options.variants.architecture, options.variants.nvrtc).found) {
      compilers_.push_back(compiler.text());
    }
  }

  void fill() {
    add({space_->default_config(options_->cards.front().limits)});
    const std::size_t first = options_->pool * 3 / 5;
    add(liked_by_model(first * 2 / 3));
    add(drawn(first - std::min(first, out_.configs.size())));
    for (int step = 1; step <= kSteps && !*stop_; ++step) {
      const std::size_t until = first + (options_->pool - first) * static_cast<std::size_t>(step) / kSteps;
      add(near_best(until - std::min(until, out_.configs.size())));
    }
  }

  EstimatedTimes take() {
    for (std::size_t at = 0; at < cases_.size(); ++at) {
      for (std::size_t compiler = 0; compiler < compilers_.size(); ++compiler) {
        for (std::size_t end = 0; end < kEnds; ++end) {
          add_row(at, compiler, end);
        }
      }
    }
    if (out_.times.rows.empty()) {
      throw Error(fmt::format("no launch of kernel '{}' can be estimated from code for {}", space_->kernel,
                              options_->variants.architecture));
    }
    out_.times.configs = out_.configs.size();
    for (std::size_t card = 0; card < options_->cards.size(); ++card) {
      for (const std::string& compiler : compilers_) {
        for (const char* end : {"least", "most"}) {
          out_.groups.push_back(fmt::format("{} SMs, {}, {}", options_->cards[card].limits.sm_count, compiler, end));
        }
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] StopCheck check() const { return stop_check(*stop_); }

  // The cheapest of the model for each case in turn.
  std::vector<Config> liked_by_model(std::size_t count) {
    std::vector<Ranking> rankings;
    const std::size_t each = count / cases_.size() + 1;
    for (const Case& at : cases_) {
      rankings.push_back(rank_configs(at.bound, *at.rates, each, kModelled, options_->variants.seed, check()));
    }
    std::vector<Config> out;
    std::set<std::string> texts;
    for (std::size_t place = 0; place < each; ++place) {
      for (const Ranking& ranking : rankings) {
        if (out.size() < count && place < ranking.best.size() &&
            texts.insert(ranking.best[place].config.text()).second) {
          out.push_back(ranking.best[place].config);
        }
      }
    }
    return out;
  }

  std::vector<Config> drawn(std::size_t count) {
    std::vector<Config> out;
    const SearchDomain domain(cases_.front().bound, SearchDomain::kMaxTuples, check());
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto point = domain.sample(random_)) {
        out.push_back(space_->config_at(*point));
      }
    }
    return out;
  }

  // Neighbours of each case's best, in turn.
  std::vector<Config> near_best(std::size_t count) {
    std::vector<std::vector<Point>> near;
    std::set<std::size_t> seen;
    for (std::size_t at = 0; at < cases_.size(); ++at) {
      const auto best = best_of(at);
      if (best && seen.insert(*best).second) {
        const SearchDomain domain(cases_[at].bound, SearchDomain::kMaxTuples, check());
        near.push_back(domain.neighbours(space_->indices_of(out_.configs[*best]), Reach::any));
      }
    }
    std::vector<Config> out;
    for (std::size_t tries = 0; out.size() < count && tries < 20 * count && !near.empty(); ++tries) {
      const std::vector<Point>& around = near[tries % near.size()];
      if (!around.empty()) {
        Config config = space_->config_at(around[below(random_, around.size())]);
        if (!known_.contains(config.text()) && std::find(out.begin(), out.end(), config) == out.end()) {
          out.push_back(std::move(config));
        }
      }
    }
    return out;
  }

  // By the geometric mean over compilers and ends.
  [[nodiscard]] std::optional<std::size_t> best_of(std::size_t at) const {
    std::optional<std::size_t> best;
    double least = kUnknownTime;
    for (std::size_t config = 0; config < out_.configs.size(); ++config) {
      double sum = 0;
      for (const auto& ends : times_[config][at]) {
        sum += std::log(ends[0]) + std::log(ends[1]);
      }
      if (sum < least) {
        least = sum;
        best = config;
      }
    }
    return best;
  }

  void add_row(std::size_t at, std::size_t compiler, std::size_t end) {
    TimeMatrix::Row row;
    row.best_us = kUnknownTime;
    for (const auto& of_config : times_) {
      row.time_us.push_back(of_config[at][compiler][end]);
      row.best_us = std::min(row.best_us, row.time_us.back());
    }
    row.group = (cases_[at].card * compilers_.size() + compiler) * kEnds + end;
    if (std::isfinite(row.best_us)) {
      out_.times.rows.push_back(std::move(row));
      out_.problems.push_back(cases_[at].problem);
      out_.cards.push_back(cases_[at].card);
    }
  }

  // What decides the code of a configuration for a problem.
  [[nodiscard]] std::string code_key(const BoundSpace& bound, const Config& config) const {
    std::string key;
    for (const std::string& define : bound.defines(config)) {
      const std::string name = define.substr(0, define.find('='));
      const auto& same = options_->same_code;
      if (std::find(same.begin(), same.end(), name) == same.end()) {
        key += define + " ";
      }
    }
    for (const std::string& option : bound.options(config)) {
      key += option + " ";
    }
    return key;
  }

  void add(const std::vector<Config>& configs) {
    std::vector<Config> added;
    for (const Config& config : configs) {
      if (known_.insert(config.text()).second) {
        added.push_back(config);
      }
    }
    const auto keys = compile(added);
    const std::size_t from = out_.configs.size();
    out_.configs.insert(out_.configs.end(), added.begin(), added.end());
    times_.resize(out_.configs.size());
    worker_pool().run(added.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        times_[from + i] = estimate(added[i], keys[i]);
      }
    });
    if (*told_) {
      (*told_)(out_.configs.size());
    }
  }

  // Compiles what is not there yet; the key of the code of each configuration in each case, empty where it is not
  // valid.
  std::vector<std::vector<std::string>> compile(const std::vector<Config>& configs) {
    std::vector<std::vector<std::string>> keys(configs.size());
    std::map<std::size_t, std::vector<Config>> wanted;  // by the case that it is compiled for
    for (std::size_t i = 0; i < configs.size(); ++i) {
      for (std::size_t at = 0; at < cases_.size(); ++at) {
        const BoundSpace& bound = cases_[at].bound;
        keys[i].push_back(bound.why_invalid(configs[i]) ? "" : code_key(bound, configs[i]));
        if (!keys[i].back().empty() && codes_.try_emplace(keys[i].back(), compilers_.size()).second) {
          wanted[at].push_back(configs[i]);
        }
      }
    }
    for (const auto& [at, list] : wanted) {
      const BoundSpace& bound = cases_[at].bound;
      compile_variants(
          bound, options_->variants, list,
          [&](const CompiledVariant& variant) {
            const auto compiler = std::find(compilers_.begin(), compilers_.end(), variant.compiler.text());
            if (variant.status == TrialStatus::ok && variant.binary.kind == BinaryKind::cubin) {
              codes_.at(code_key(bound, variant.config))[static_cast<std::size_t>(compiler - compilers_.begin())] =
                  sm61::read_kernel(variant.binary.code, variant.binary.function);
            }
          },
          *stop_);
    }
    return keys;
  }

  using CaseTimes = std::vector<std::vector<std::array<double, kEnds>>>;  // of each case, of each compiler

  [[nodiscard]] CaseTimes estimate(const Config& config, const std::vector<std::string>& keys) const {
    CaseTimes times(cases_.size());
    std::map<const sm61::KernelCode*, PlayedLoops> played;
    for (std::size_t at = 0; at < cases_.size(); ++at) {
      times[at].assign(compilers_.size(), {kUnknownTime, kUnknownTime});
      if (keys[at].empty()) {
        continue;
      }
      const LaunchWork work = launch_work(cases_[at].bound, config);
      const auto& codes = codes_.at(keys[at]);
      for (std::size_t compiler = 0; compiler < compilers_.size(); ++compiler) {
        if (!codes[compiler]) {
          continue;
        }
        if (const auto code =
                estimate_from_code(*codes[compiler], work, *cases_[at].rates, {}, played[&*codes[compiler]])) {
          times[at][compiler] = {code->least.time_us, code->most.time_us};
        }
      }
    }
    return times;
  }

  const Space* space_;
  const EstimateOptions* options_;
  const std::function<void(std::size_t)>* told_;
  const std::atomic<bool>* stop_;
  SearchRandom random_;
  std::vector<Case> cases_;
  std::vector<std::string> compilers_;
  std::set<std::string> known_;
  std::map<std::string, std::vector<std::optional<sm61::KernelCode>>> codes_;  // by compiler
  std::vector<CaseTimes> times_;                                               // of each configuration
  EstimatedTimes out_;
};

// Steps along the values of all parameters, each from 0 to 1.
double distance(const Space& space, const Config& a, const Config& b) {
  const auto from = space.indices_of(a);
  const auto to = space.indices_of(b);
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double range = std::max<double>(1, static_cast<double>(space.parameters[i].values.size()) - 1);
    sum += std::abs(static_cast<double>(from[i]) - static_cast<double>(to[i])) / range;
  }
  return sum;
}

}  // namespace

EstimatedTimes estimate_times(const Space& space, const std::vector<Problem>& problems, const EstimateOptions& options,
                              const std::function<void(std::size_t compiled)>& told, const std::atomic<bool>& stop) {
  if (problems.empty()) {
    throw Error(fmt::format("there is no problem of kernel '{}' to estimate times of", space.kernel));
  }
  EstimatePool pool(space, problems, options, told, stop);
  pool.fill();
  return pool.take();
}

void spread_out(const Space& space, const EstimatedTimes& estimated, std::size_t most, double near,
                PortfolioChoice& choice) {
  std::vector<double> alone;
  for (std::size_t i = 0; i < estimated.configs.size(); ++i) {
    const PortfolioQuality quality = portfolio_quality(estimated.times, {i});
    alone.push_back(quality.uncovered == 0 ? quality.mean : kUnknownTime);
  }
  const double limit = near * *std::min_element(alone.begin(), alone.end());
  while (choice.members.size() <= most) {
    std::optional<std::size_t> farthest;
    double most_apart = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      double apart = alone[i] <= limit ? std::numeric_limits<double>::infinity() : 0;
      for (const std::size_t member : choice.members) {
        apart = std::min(apart, distance(space, estimated.configs[i], estimated.configs[member]));
      }
      if (apart > most_apart) {
        most_apart = apart;
        farthest = i;
      }
    }
    if (!farthest) {
      return;
    }
    choice.members.push_back(*farthest);
    choice.quality.push_back(portfolio_quality(estimated.times, choice.members));
  }
}

}  // namespace pascaline
