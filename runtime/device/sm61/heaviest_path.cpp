#include "runtime/device/sm61/heaviest_path.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace pascaline::sm61 {
namespace {

constexpr std::int32_t kNoBlock = Block::kNone;
constexpr double kNowhere = -1;

// The blocks that a path may visit, and the one it begins at.
class Paths {
 public:
  Paths(const ControlFlow& flow, std::optional<std::size_t> loop)
      : flow_(flow),
        loop_(loop),
        begin_(loop ? flow.loops[*loop].header : 0),
        best_(flow.blocks.size(), kNowhere),
        before_(flow.blocks.size(), kNoBlock),
        state_(flow.blocks.size(), State::unseen) {}

  [[nodiscard]] std::vector<std::uint32_t> heaviest() {
    // Outer loops come before those in them.
    for (std::size_t i = 0; loop_ && i < flow_.loops.size(); ++i) {
      const std::int32_t parent = flow_.loops[i].parent;
      inside_.push_back(i == *loop_ || (parent != kNoBlock && inside_[static_cast<std::size_t>(parent)]));
    }
    sort();
    best_[begin_] = weight(begin_);
    for (auto block = order_.rbegin(); block != order_.rend(); ++block) {
      for (const std::int32_t next : flow_.blocks[*block].successors) {
        advance(*block, next);
      }
    }
    std::int32_t end = static_cast<std::int32_t>(begin_);
    for (const std::uint32_t block : order_) {
      if (ends(block) && best_[block] > best_[static_cast<std::size_t>(end)]) {
        end = static_cast<std::int32_t>(block);
      }
    }
    std::vector<std::uint32_t> path;
    for (; end != kNoBlock; end = before_[static_cast<std::size_t>(end)]) {
      path.push_back(static_cast<std::uint32_t>(end));
    }
    std::sort(path.begin(), path.end());
    return path;
  }

 private:
  enum class State : std::uint8_t { unseen, open, done };

  [[nodiscard]] bool visits(std::int32_t block) const {
    if (block == kNoBlock || !loop_) {
      return block != kNoBlock;
    }
    const std::int32_t loop = flow_.blocks[static_cast<std::size_t>(block)].loop;
    return loop != kNoBlock && inside_[static_cast<std::size_t>(loop)];
  }
  // Goes back to the header, or leaves the kernel.
  [[nodiscard]] bool ends(std::uint32_t block) const {
    const auto& successors = flow_.blocks[block].successors;
    return loop_
               ? std::find(successors.begin(), successors.end(), static_cast<std::int32_t>(begin_)) != successors.end()
               : std::all_of(successors.begin(), successors.end(), [](std::int32_t next) { return next == kNoBlock; });
  }
  [[nodiscard]] double weight(std::uint32_t block) const {
    constexpr double kRepeats = 10;
    constexpr std::uint32_t kMaxDepth = 6;
    const Block& at = flow_.blocks[block];
    const std::uint32_t depth = at.loop == kNoBlock ? 0 : flow_.loops[static_cast<std::size_t>(at.loop)].depth;
    const std::uint32_t around = loop_ ? flow_.loops[*loop_].depth : 0;
    return (at.end - at.begin) * std::pow(kRepeats, std::min(depth - std::min(depth, around), kMaxDepth));
  }
  void advance(std::uint32_t from, std::int32_t next) {
    if (!visits(next) || best_[from] == kNowhere || is_backward(from, next)) {
      return;
    }
    const auto to = static_cast<std::uint32_t>(next);
    if (best_[from] + weight(to) > best_[to]) {
      best_[to] = best_[from] + weight(to);
      before_[to] = static_cast<std::int32_t>(from);
    }
  }
  [[nodiscard]] bool is_backward(std::uint32_t from, std::int32_t next) const {
    return place_[from] <= place_[static_cast<std::size_t>(next)];
  }

  // All blocks in the order in which a search leaves them for the last time: what comes after a block, other than by a
  // branch back, stands before it.
  void sort() {
    place_.assign(flow_.blocks.size(), 0);
    struct Entry {
      std::uint32_t block;
      std::size_t next;
    };
    std::vector<Entry> open{{begin_, 0}};
    state_[begin_] = State::open;
    while (!open.empty()) {
      Entry& entry = open.back();
      const auto& successors = flow_.blocks[entry.block].successors;
      if (entry.next == successors.size()) {
        place_[entry.block] = order_.size();
        order_.push_back(entry.block);
        open.pop_back();
        continue;
      }
      const std::int32_t next = successors[entry.next++];
      if (visits(next) && state_[static_cast<std::size_t>(next)] == State::unseen) {
        state_[static_cast<std::size_t>(next)] = State::open;
        open.push_back({static_cast<std::uint32_t>(next), 0});
      }
    }
  }

  const ControlFlow& flow_;
  std::optional<std::size_t> loop_;
  std::uint32_t begin_;
  std::vector<bool> inside_;          // loops: the one that the path is of, or in it
  std::vector<double> best_;          // weight of the heaviest path to a block
  std::vector<std::int32_t> before_;  // block before it on that path
  std::vector<State> state_;
  std::vector<std::uint32_t> order_;
  std::vector<std::size_t> place_;
};

}  // namespace

bool is_within(const ControlFlow& flow, const Block& block, std::size_t loop) noexcept {
  std::int32_t at = block.loop;
  while (at != kNoBlock && at != static_cast<std::int32_t>(loop)) {
    at = flow.loops[static_cast<std::size_t>(at)].parent;
  }
  return at != kNoBlock;
}

std::vector<std::uint32_t> heaviest_path(const KernelCode& kernel, std::optional<std::size_t> loop) {
  if (loop && *loop >= kernel.flow.loops.size()) {
    throw Error("there is no such loop");
  }
  if (kernel.flow.blocks.empty()) {
    return {};
  }
  return Paths(kernel.flow, loop).heaviest();
}

}  // namespace pascaline::sm61
