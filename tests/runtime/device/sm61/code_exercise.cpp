#include "tests/runtime/device/sm61/code_exercise.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/sm61/heaviest_path.hpp"
#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline::testing {
namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

void check_blocks(std::size_t instructions, const sm61::ControlFlow& flow) {
  std::size_t next = 0;
  for (const sm61::Block& block : flow.blocks) {
    require(block.begin == next && block.end > block.begin, "blocks do not cover the code");
    next = block.end;
    for (const std::int32_t successor : block.successors) {
      require(successor >= -1 && successor < static_cast<std::int32_t>(flow.blocks.size()),
              "a successor is not a block");
      require(successor < 0 || flow.blocks[static_cast<std::size_t>(successor)].reached, "a successor is not reached");
    }
    require(block.loop >= -1 && block.loop < static_cast<std::int32_t>(flow.loops.size()), "a block's loop is not one");
    require(block.loop < 0 || block.reached, "a block that is not reached is in a loop");
  }
  require(next == instructions, "blocks end before the code does");
}

void check_loops(const sm61::ControlFlow& flow, const std::vector<sm61::LoopCost>& costs) {
  require(costs.size() == flow.loops.size(), "costs are not those of the loops");
  for (std::size_t i = 0; i < flow.loops.size(); ++i) {
    const sm61::Loop& loop = flow.loops[i];
    require(loop.header < flow.blocks.size(), "a header is not a block");
    require(flow.blocks[loop.header].loop == static_cast<std::int32_t>(i), "a header is not in its own loop");
    require(loop.parent < static_cast<std::int32_t>(i), "a loop comes before the one around it");
    const std::uint32_t outside = loop.parent < 0 ? 0 : flow.loops[static_cast<std::size_t>(loop.parent)].depth;
    require(loop.depth == outside + 1, "a depth is wrong");
    require(loop.parent < 0 || !flow.loops[static_cast<std::size_t>(loop.parent)].innermost,
            "an outer loop is innermost");
    require(costs[i].own.instructions > 0 && costs[i].total.instructions >= costs[i].own.instructions,
            "a loop has no instructions");
    require(loop.innermost == (costs[i].total.instructions == costs[i].own.instructions), "own and total do not fit");
  }
}

// Of the whole code, the first loop, which is an outermost one, and the hottest.
void check_paths(const sm61::KernelCode& kernel) {
  for (const std::uint32_t block : sm61::heaviest_path(kernel, std::nullopt)) {
    require(kernel.flow.blocks[block].reached, "a path is where the code does not come");
  }
  std::vector<std::size_t> loops;
  if (kernel.hottest) {
    loops = {0, *kernel.hottest};
  }
  for (const std::size_t loop : loops) {
    const std::vector<std::uint32_t> path = sm61::heaviest_path(kernel, loop);
    require(!path.empty(), "a loop has no path");
    require(sm61::is_within(kernel.flow, kernel.flow.blocks[path.back()], loop), "a path leaves its loop");
    require(sm61::cost_of(kernel, path).instructions <= kernel.costs[loop].total.instructions,
            "a path has more than its loop");
  }
}

void check_kernel(const sm61::KernelCode& kernel) {
  check_paths(kernel);
  check_blocks(kernel.instructions.size(), kernel.flow);
  check_loops(kernel.flow, kernel.costs);
  require(kernel.hottest.has_value() == !kernel.costs.empty(), "a hottest loop without loops");
  require(!kernel.hottest || *kernel.hottest < kernel.costs.size(), "the hottest loop is none");
  for (std::size_t i = 0; i < kernel.instructions.size(); i += 1 + kernel.instructions.size() / 16) {
    require(!kernel.instructions[i].text().empty(), "an instruction has no text");
  }
}

}  // namespace

bool exercise_cubin(std::string_view bytes) {
  try {
    for (const sm61::KernelCode& kernel : sm61::read_kernels(bytes)) {
      check_kernel(kernel);
    }
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    require(!text.empty() && text.find('\n') == std::string_view::npos, "an error is not one line");
    return false;
  }
}

void exercise_code(std::string_view code) {
  sm61::KernelCode kernel;
  kernel.instructions = sm61::decode(code);
  kernel.flow = sm61::find_control_flow(kernel.instructions);
  kernel.costs = sm61::loop_costs(kernel.instructions, kernel.flow);
  kernel.hottest = sm61::hottest_loop(kernel.flow, kernel.costs);
  check_kernel(kernel);
}

}  // namespace pascaline::testing
