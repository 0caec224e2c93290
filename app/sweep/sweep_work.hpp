#pragma once

#include <string>
#include <vector>

#include "app/sweep/sweep_options.hpp"
#include "core/space/space.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// What is to be tuned, and what is to be told before.
struct SweepWork {
  std::vector<Space> spaces;  ///< of the problems' kernels
  std::vector<SweepProblem> problems;
  std::vector<std::string> notes;
};

/// What the options ask for: what a model launches, a workload's shapes or given shapes, of the kernels asked for or of
/// all. Equal shapes of several phases are one problem. Throws Error and its kinds for what is not there or fits
/// nothing. `device`: that a model is to run on.
[[nodiscard]] SweepWork work_of(const SweepCommandOptions& options, const std::string& device);

/// Has the problems measured with these contents of buffers, or with drawn ones where there are none. Throws
/// ArgumentError if a file does not fit one of them, or one was tuned with other contents, or with none.
void give_contents(SweepWork& work, const GivenFiles& files, bool is_resumed);

/// Adds shapes between the problems, for a sweep with a limit of time that deepens, unless it has some already: where a
/// phase's symbols or a model's prompts said what varies, `work_of` has added them; else what the search spaces say.
void add_shapes_between(SweepWork& work, const SweepOptions& sweep);

}  // namespace pascaline
