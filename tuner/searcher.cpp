#include "tuner/searcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <unordered_set>

#include "core/enumeration.hpp"
#include "core/error.hpp"

namespace pascaline {
namespace {

// Spaces up to this many valid configurations are held as a list of 8 bytes each.
constexpr std::uint64_t kMaxListed = 32'000'000;

/// Numbers configurations by the mixed radix of their value indices.
class Radix {
 public:
  explicit Radix(const Space& space) : space_(&space) {}

  [[nodiscard]] std::uint64_t pack(std::span<const std::uint16_t> indices) const {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      number = number * space_->parameters[i].values.size() + indices[i];
    }
    return number;
  }

  [[nodiscard]] Config config(std::uint64_t number) const {
    std::vector<std::uint16_t> indices(space_->parameters.size());
    for (std::size_t i = indices.size(); i-- > 0;) {
      const std::size_t values = space_->parameters[i].values.size();
      indices[i] = static_cast<std::uint16_t>(number % values);
      number /= values;
    }
    return space_->config_at(indices);
  }

 private:
  const Space* space_;
};

// The constraint that most random configurations break, for the message that nothing is valid.
std::string worst_constraint(const BoundSpace& space, std::uint64_t seed) {
  constexpr int kDraws = 2000;
  std::mt19937_64 generator(seed);
  std::vector<std::pair<int, std::string>> failures;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<std::uint16_t> indices;
    for (const Parameter& parameter : space.space().parameters) {
      indices.push_back(static_cast<std::uint16_t>(generator() % parameter.values.size()));
    }
    const auto why = space.why_invalid(space.space().config_at(indices));
    if (!why) {
      continue;
    }
    const auto known =
        std::find_if(failures.begin(), failures.end(), [&](const auto& entry) { return entry.second == *why; });
    if (known == failures.end()) {
      failures.emplace_back(1, *why);
    } else {
      ++known->first;
    }
  }
  return failures.empty() ? "no constraint" : std::max_element(failures.begin(), failures.end())->second;
}

std::vector<std::uint64_t> list_valid(const BoundSpace& space, std::uint64_t seed) {
  std::vector<std::uint64_t> valid;
  const Radix radix(space.space());
  Enumerator(space).for_each([&](std::span<const std::uint16_t> indices) {
    valid.push_back(radix.pack(indices));
    return valid.size() < kMaxListed;
  });
  if (valid.empty()) {
    throw SpaceError(space.space().file, "/constraints",
                     fmt::format("no configuration is valid for {}; most fail because {}", space.problem().text(),
                                 worst_constraint(space, seed)));
  }
  return valid;
}

class ExhaustiveSearcher : public Searcher {
 public:
  ExhaustiveSearcher(const BoundSpace& space, std::uint64_t seed)
      : radix_(space.space()), valid_(list_valid(space, seed)) {
    if (valid_.size() == kMaxListed) {
      throw Error(fmt::format("{} has more than {} valid configurations: search it with --searcher random",
                              space.problem().text(), kMaxListed));
    }
  }

  std::vector<Config> propose(std::size_t count) override {
    std::vector<Config> out;
    for (; out.size() < count && next_ < valid_.size(); ++next_) {
      out.push_back(radix_.config(valid_[next_]));
    }
    return out;
  }
  void observe(const Config& /*config*/, const Observation& /*observation*/) override {}

 private:
  Radix radix_;
  std::vector<std::uint64_t> valid_;
  std::size_t next_ = 0;
};

/// Draws from the list of valid configurations by a Fisher-Yates shuffle done as far as is asked for.
class RandomSearcher : public Searcher {
 public:
  RandomSearcher(const BoundSpace& space, std::uint64_t seed)
      : radix_(space.space()), valid_(list_valid(space, seed)), generator_(seed) {}

  std::vector<Config> propose(std::size_t count) override {
    std::vector<Config> out;
    for (; out.size() < count && next_ < valid_.size(); ++next_) {
      std::uniform_int_distribution<std::size_t> pick(next_, valid_.size() - 1);
      std::swap(valid_[next_], valid_[pick(generator_)]);
      out.push_back(radix_.config(valid_[next_]));
    }
    return out;
  }
  void observe(const Config& /*config*/, const Observation& /*observation*/) override {}

 private:
  Radix radix_;
  std::vector<std::uint64_t> valid_;
  std::size_t next_ = 0;
  std::mt19937_64 generator_;
};

}  // namespace

std::vector<std::string_view> searcher_names() { return {"random", "exhaustive"}; }

std::unique_ptr<Searcher> make_searcher(std::string_view name, const BoundSpace& space, std::uint64_t seed) {
  if (name == "random") {
    return std::make_unique<RandomSearcher>(space, seed);
  }
  if (name == "exhaustive") {
    return std::make_unique<ExhaustiveSearcher>(space, seed);
  }
  throw Error(fmt::format("unknown searcher '{}' (known: {})", name, fmt::join(searcher_names(), ", ")));
}

}  // namespace pascaline
