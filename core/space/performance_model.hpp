#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/space/expression.hpp"

namespace pascaline {

/// What a space says of the work of one launch, for a static model of its time (the file's section `model`): integer
/// expressions over parameters, problem and device. What is absent is not known.
struct PerformanceModel {
  std::optional<Expression> blocks;        ///< blocks that have work; absent: the whole grid
  std::optional<Expression> imbalance;     ///< work of the block with most of it, in percent of the mean
  std::optional<Expression> flops;         ///< executed by all threads, waste of ragged tiles included
  std::optional<Expression> instructions;  ///< executed by all threads besides those of `flops` (2 an instruction)
  std::optional<Expression> global_bytes;  ///< asked of L2 and memory by all blocks, repeated reads included
  std::optional<Expression> shared_bytes;  ///< of shared memory bandwidth used by all threads, conflicts included
  std::optional<Expression> registers;     ///< estimated a thread, before it is compiled
  std::optional<Expression> static_shared_bytes;  ///< shared memory a block declares in its source
  std::optional<Expression> global_steps;      ///< times in turn that a thread waits for global memory, doing nothing
  std::optional<Expression> prefetched_steps;  ///< times in turn that it waits for data asked for before it computed
  std::optional<Expression> shared_steps;      ///< times in turn that it waits for shared memory or a shuffle
  std::optional<Expression> barriers;          ///< times in turn that a block waits for its slowest warp
};

/// Key in the file and member of every expression of a model, in declaration order.
inline constexpr std::array<std::pair<std::string_view, std::optional<Expression> PerformanceModel::*>, 12>
    kModelMembers{{
        {"blocks", &PerformanceModel::blocks},
        {"imbalance", &PerformanceModel::imbalance},
        {"flops", &PerformanceModel::flops},
        {"instructions", &PerformanceModel::instructions},
        {"global_bytes", &PerformanceModel::global_bytes},
        {"shared_bytes", &PerformanceModel::shared_bytes},
        {"registers", &PerformanceModel::registers},
        {"static_shared_bytes", &PerformanceModel::static_shared_bytes},
        {"global_steps", &PerformanceModel::global_steps},
        {"prefetched_steps", &PerformanceModel::prefetched_steps},
        {"shared_steps", &PerformanceModel::shared_steps},
        {"barriers", &PerformanceModel::barriers},
    }};

}  // namespace pascaline
