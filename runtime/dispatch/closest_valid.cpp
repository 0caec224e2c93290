#include "runtime/dispatch/closest_valid.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/space/enumeration.hpp"

namespace pascaline {
namespace {

constexpr int kMaxCandidates = 1'000'000;  // about a second
constexpr double kMaxWalkedSize = 1e8;     // of the raw space; most branches fall early

class ClosestSearch {
 public:
  ClosestSearch(const BoundSpace& space, std::span<const Config> excluded, StopCheck check)
      : space_(&space.space()),
        enumerator_(space, std::move(check)),
        excluded_(excluded),
        indices_(space.default_indices()) {}

  std::optional<Config> run() {
    for (std::size_t changes = 0; changes <= indices_.size() && budget_ > 0; ++changes) {
      if (change(0, changes)) {
        return found_;
      }
    }
    if (budget_ <= 0 && space_->raw_size() <= kMaxWalkedSize) {
      enumerator_.for_each([&](std::span<const std::uint16_t> indices) { return !take(indices); });
    }
    return found_;
  }

 private:
  // Changes exactly `left` parameters from `first` on; true once a configuration is found.
  bool change(std::size_t first, std::size_t left) {
    if (left == 0) {
      return --budget_ >= 0 && enumerator_.valid(indices_) && take(indices_);
    }
    for (std::size_t i = first; i + left <= indices_.size() && budget_ > 0; ++i) {
      const std::uint16_t original = indices_[i];
      for (std::size_t value = 0; value < space_->parameters[i].values.size(); ++value) {
        indices_[i] = static_cast<std::uint16_t>(value);
        if (value != original && change(i + 1, left - 1)) {
          return true;
        }
      }
      indices_[i] = original;
    }
    return false;
  }

  bool take(std::span<const std::uint16_t> indices) {
    Config config = space_->config_at(indices);
    if (std::find(excluded_.begin(), excluded_.end(), config) != excluded_.end()) {
      return false;
    }
    found_ = std::move(config);
    return true;
  }

  const Space* space_;
  Enumerator enumerator_;
  std::span<const Config> excluded_;
  std::vector<std::uint16_t> indices_;
  std::optional<Config> found_;
  int budget_ = kMaxCandidates;
};

/// Looks around a configuration that is not valid.
class NearestSearch {
 public:
  NearestSearch(const BoundSpace& space, const Config& config)
      : space_(&space.space()), enumerator_(space), indices_(space_->indices_of(config)) {}

  std::optional<Config> run() {
    constexpr int kMaxChanges = 2;
    for (int changes = 0; changes <= kMaxChanges && !nearest_; ++changes) {
      change(0, changes, 0);
    }
    return nearest_ ? std::optional(space_->config_at(nearest_->second)) : std::nullopt;
  }

 private:
  // Changes exactly `left` parameters from `first` on, of which those before took `steps`.
  void change(std::size_t first, int left, std::size_t steps) {
    if (nearest_ && steps >= nearest_->first) {
      return;
    }
    if (left == 0) {
      if (enumerator_.valid(indices_)) {
        nearest_.emplace(steps, indices_);
      }
      return;
    }
    for (std::size_t i = first; i < indices_.size(); ++i) {
      const std::uint16_t original = indices_[i];
      for (std::size_t value = 0; value < space_->parameters[i].values.size(); ++value) {
        if (value != original) {
          indices_[i] = static_cast<std::uint16_t>(value);
          change(i + 1, left - 1, steps + (value > original ? value - original : original - value));
        }
      }
      indices_[i] = original;
    }
  }

  const Space* space_;
  Enumerator enumerator_;
  std::vector<std::uint16_t> indices_;
  std::optional<std::pair<std::size_t, std::vector<std::uint16_t>>> nearest_;  ///< behind its steps
};

}  // namespace

std::optional<Config> closest_valid(const BoundSpace& space, std::span<const Config> excluded, StopCheck check) {
  return ClosestSearch(space, excluded, std::move(check)).run();
}

std::optional<Config> nearest_valid(const BoundSpace& space, const Config& config) {
  return NearestSearch(space, config).run();
}

std::vector<std::size_t> closeness(const Space& space, const Config& config) {
  const auto indices = space.indices_of(config);
  std::vector<std::size_t> key{0};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != space.parameters[i].default_index) {
      ++key.front();
      key.insert(key.end(), {i, indices[i]});
    }
  }
  return key;
}

}  // namespace pascaline
