#include "runtime/device/sm61/control_flow.hpp"

#include <algorithm>

namespace pascaline::sm61 {
namespace {

constexpr std::int32_t kNone = Block::kNone;

// What SSY, PBK and PCNT push: a linked list that grows at its head, each entry with the nearest one of every kind.
struct PushedTarget {
  std::int32_t below = kNone;
  std::int32_t block = kNone;
  std::array<std::int32_t, 3> nearest{kNone, kNone, kNone};  ///< itself included
};

std::size_t pushed_kind(Flow flow) {
  switch (flow) {
    case Flow::push_sync:
    case Flow::pop_sync:
      return 0;
    case Flow::push_break:
    case Flow::pop_break:
      return 1;
    default:
      return 2;
  }
}

bool pushes(Flow flow) { return flow == Flow::push_sync || flow == Flow::push_break || flow == Flow::push_loop; }
bool pops(Flow flow) { return flow == Flow::pop_sync || flow == Flow::pop_break || flow == Flow::pop_loop; }
bool ends_block(Flow flow) {
  return flow == Flow::branch || flow == Flow::indirect || flow == Flow::exit || pops(flow);
}

/// Splits code into blocks and links them.
class BlockBuilder {
 public:
  BlockBuilder(std::span<const Instruction> code, ControlFlow& to) : code_(code), to_(to) {}

  void build() {
    split();
    follow();
  }

  [[nodiscard]] const std::vector<std::int32_t>& entries() const noexcept { return entries_; }

 private:
  struct Visit {
    std::int32_t block;
    std::int32_t pushed;
  };

  // The block that begins at the target of an instruction; none if that is not in the code.
  [[nodiscard]] std::int32_t target_block(const Instruction& instruction) const {
    const std::int64_t index = target_index(instruction);
    return index < 0 ? kNone : block_at_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int64_t target_index(const Instruction& instruction) const;
  void split();
  void follow();
  void follow_block(const Visit& visit);
  void link(std::int32_t from, std::int32_t block, std::int32_t pushed);

  std::span<const Instruction> code_;
  ControlFlow& to_;
  std::vector<std::int32_t> block_at_;  ///< of every instruction
  std::vector<std::int32_t> entries_;   ///< where functions begin
  std::vector<PushedTarget> pushed_;
  std::vector<Visit> waiting_;
};

// A target may also be the scheduling word before the group.
std::int64_t BlockBuilder::target_index(const Instruction& instruction) const {
  const std::int64_t offset = instruction.target();
  if (offset < 0 || offset % 8 != 0) {
    return kNone;
  }
  const std::int64_t place = std::max<std::int64_t>(offset / 8 % 4, 1);
  const std::int64_t index = offset / 32 * 3 + place - 1;
  return index < static_cast<std::int64_t>(code_.size()) ? index : kNone;
}

void BlockBuilder::split() {
  std::vector<bool> leads(code_.size() + 1, false);
  leads[0] = true;
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const std::int64_t target = target_index(code_[i]);
    if (target >= 0) {
      leads[static_cast<std::size_t>(target)] = true;
    }
    if (ends_block(code_[i].flow)) {
      leads[i + 1] = true;
    }
  }
  block_at_.resize(code_.size());
  for (std::size_t i = 0; i < code_.size(); ++i) {
    if (leads[i]) {
      Block block;
      block.begin = static_cast<std::uint32_t>(i);
      to_.blocks.push_back(block);
    }
    to_.blocks.back().end = static_cast<std::uint32_t>(i + 1);
    block_at_[i] = static_cast<std::int32_t>(to_.blocks.size()) - 1;
  }
}

void BlockBuilder::link(std::int32_t from, std::int32_t block, std::int32_t pushed) {
  if (block == kNone) {
    to_.complete = false;
    return;
  }
  auto& successors = to_.blocks[static_cast<std::size_t>(from)].successors;
  (successors[0] == kNone ? successors[0] : successors[1]) = block;
  waiting_.push_back({block, pushed});
}

void BlockBuilder::follow() {
  if (code_.empty()) {
    return;
  }
  entries_.push_back(0);
  waiting_.push_back({0, kNone});
  while (!waiting_.empty()) {
    const Visit visit = waiting_.back();
    waiting_.pop_back();
    Block& block = to_.blocks[static_cast<std::size_t>(visit.block)];
    if (!block.reached) {
      block.reached = true;
      follow_block(visit);
    }
  }
}

void BlockBuilder::follow_block(const Visit& visit) {
  const Block block = to_.blocks[static_cast<std::size_t>(visit.block)];
  std::int32_t pushed = visit.pushed;
  for (std::uint32_t i = block.begin; i < block.end; ++i) {
    const Instruction& instruction = code_[i];
    if (pushes(instruction.flow)) {
      PushedTarget entry = pushed == kNone ? PushedTarget{} : pushed_[static_cast<std::size_t>(pushed)];
      entry.below = pushed;
      entry.block = target_block(instruction);
      pushed = static_cast<std::int32_t>(pushed_.size());
      entry.nearest[pushed_kind(instruction.flow)] = pushed;
      pushed_.push_back(entry);
    } else if (instruction.flow == Flow::call) {
      const std::int32_t called = target_block(instruction);
      if (called == kNone) {
        to_.complete = false;
      } else if (!to_.blocks[static_cast<std::size_t>(called)].reached) {
        entries_.push_back(called);
        waiting_.push_back({called, kNone});
      }
    }
  }
  const Instruction& last = code_[block.end - 1];
  const std::int32_t next = block.end < code_.size() ? visit.block + 1 : kNone;
  if (!ends_block(last.flow) || last.conditional) {
    link(visit.block, next, pushed);
  }
  if (last.flow == Flow::branch) {
    link(visit.block, target_block(last), pushed);
  } else if (last.flow == Flow::indirect) {
    to_.complete = false;
  } else if (pops(last.flow)) {
    const std::int32_t found =
        pushed == kNone ? kNone : pushed_[static_cast<std::size_t>(pushed)].nearest[pushed_kind(last.flow)];
    if (found == kNone) {
      to_.complete = false;
    } else {
      const PushedTarget& entry = pushed_[static_cast<std::size_t>(found)];
      link(visit.block, entry.block, entry.below);
    }
  }
}

/// Loops by Tarjan's algorithm ("Testing flow graph reducibility", 1974): headers from the last one found by
/// depth-first search to the first, each taking in what reaches its back edges; what is taken in is from then on one
/// node.
class LoopFinder {
 public:
  LoopFinder(ControlFlow& to, const std::vector<std::int32_t>& entries) : to_(to), nodes_(to.blocks.size()) {
    number(entries);
    collect_predecessors();
  }

  void find() {
    for (std::size_t i = order_.size(); i > 0; --i) {
      find_at(order_[i - 1]);
    }
    arrange();
  }

 private:
  struct Node {
    std::int32_t first = kNone;   ///< number in depth-first order; none: not reached
    std::int32_t last = kNone;    ///< the highest number under it
    std::int32_t inside = kNone;  ///< the header that took it in
    std::int32_t seen_by = kNone;
    std::int32_t loop = kNone;       ///< the loop that it is the header of
    std::uint32_t predecessors = 0;  ///< where its own begin
  };

  [[nodiscard]] Node& node(std::int32_t block) { return nodes_[static_cast<std::size_t>(block)]; }
  // Whether `descendant` was found under `block` by the depth-first search.
  [[nodiscard]] bool above(std::int32_t block, std::int32_t descendant) {
    return node(block).first <= node(descendant).first && node(descendant).first <= node(block).last;
  }
  [[nodiscard]] std::span<const std::int32_t> predecessors(std::int32_t block) const {
    const auto at = static_cast<std::size_t>(block);
    const std::uint32_t end =
        at + 1 < nodes_.size() ? nodes_[at + 1].predecessors : static_cast<std::uint32_t>(predecessors_.size());
    return std::span(predecessors_).subspan(nodes_[at].predecessors, end - nodes_[at].predecessors);
  }
  [[nodiscard]] std::int32_t outermost(std::int32_t block);
  void number(const std::vector<std::int32_t>& entries);
  void collect_predecessors();
  void find_at(std::int32_t header);
  void arrange();

  ControlFlow& to_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> order_;         ///< blocks in depth-first order
  std::vector<std::int32_t> predecessors_;  ///< of all blocks, one after the other
};

void LoopFinder::number(const std::vector<std::int32_t>& entries) {
  struct Step {
    std::int32_t block;
    std::size_t next;
  };
  std::vector<Step> path;
  const auto enter = [&](std::int32_t block) {
    node(block).first = static_cast<std::int32_t>(order_.size());
    order_.push_back(block);
    path.push_back({block, 0});
  };
  for (const std::int32_t entry : entries) {
    if (node(entry).first != kNone) {
      continue;
    }
    enter(entry);
    while (!path.empty()) {
      Step& step = path.back();
      const auto& successors = to_.blocks[static_cast<std::size_t>(step.block)].successors;
      if (step.next == successors.size()) {
        node(step.block).last = static_cast<std::int32_t>(order_.size()) - 1;
        path.pop_back();
        continue;
      }
      const std::int32_t successor = successors[step.next++];
      if (successor != kNone && node(successor).first == kNone) {
        enter(successor);
      }
    }
  }
}

void LoopFinder::collect_predecessors() {
  std::vector<std::uint32_t> counts(nodes_.size() + 1, 0);
  const auto each_edge = [&](auto&& take) {
    for (const std::int32_t block : order_) {
      for (const std::int32_t successor : to_.blocks[static_cast<std::size_t>(block)].successors) {
        if (successor != kNone) {
          take(block, static_cast<std::size_t>(successor));
        }
      }
    }
  };
  each_edge([&](std::int32_t, std::size_t successor) { ++counts[successor]; });
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].predecessors = total;
    total += counts[i];
    counts[i] = nodes_[i].predecessors;
  }
  predecessors_.resize(total);
  each_edge([&](std::int32_t block, std::size_t successor) { predecessors_[counts[successor]++] = block; });
}

// Follows what took a block in, shortening the way.
std::int32_t LoopFinder::outermost(std::int32_t block) {
  std::int32_t top = block;
  while (node(top).inside != kNone) {
    top = node(top).inside;
  }
  while (block != top) {
    const std::int32_t next = node(block).inside;
    node(block).inside = top;
    block = next;
  }
  return top;
}

void LoopFinder::find_at(std::int32_t header) {
  std::vector<std::int32_t> body;
  bool found = false;
  const auto take = [&](std::int32_t block) {
    const std::int32_t top = outermost(block);
    if (top != header && node(top).seen_by != header) {
      node(top).seen_by = header;
      body.push_back(top);
    }
  };
  for (const std::int32_t from : predecessors(header)) {
    if (above(header, from)) {
      found = true;
      take(from);
    }
  }
  if (!found) {
    return;
  }
  Loop loop;
  loop.header = static_cast<std::uint32_t>(header);
  const auto index = static_cast<std::int32_t>(to_.loops.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    const std::int32_t block = body[i];
    for (const std::int32_t from : predecessors(block)) {
      if (above(block, from)) {
        continue;  // of a loop inside
      }
      if (above(header, outermost(from))) {
        take(from);
      } else {
        loop.several_entries = true;
      }
    }
  }
  for (const std::int32_t block : body) {
    node(block).inside = header;
    if (node(block).loop == kNone) {
      to_.blocks[static_cast<std::size_t>(block)].loop = index;
    } else {
      to_.loops[static_cast<std::size_t>(node(block).loop)].parent = index;
      loop.innermost = false;
    }
  }
  to_.blocks[static_cast<std::size_t>(header)].loop = index;
  node(header).loop = index;
  to_.loops.push_back(loop);
}

// Outer loops were found after those inside them; the list begins with them.
void LoopFinder::arrange() {
  const auto count = static_cast<std::int32_t>(to_.loops.size());
  const auto place = [count](std::int32_t loop) { return loop == kNone ? kNone : count - 1 - loop; };
  std::reverse(to_.loops.begin(), to_.loops.end());
  for (Loop& loop : to_.loops) {
    loop.parent = place(loop.parent);
    loop.depth = loop.parent == kNone ? 1 : to_.loops[static_cast<std::size_t>(loop.parent)].depth + 1;
  }
  for (Block& block : to_.blocks) {
    block.loop = place(block.loop);
  }
}

}  // namespace

ControlFlow find_control_flow(std::span<const Instruction> code) {
  ControlFlow flow;
  BlockBuilder builder(code, flow);
  builder.build();
  LoopFinder(flow, builder.entries()).find();
  return flow;
}

}  // namespace pascaline::sm61
