#pragma once

#include <string>
#include <vector>

#include "db/store.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

/// Where an earlier process of the run stood with a problem that it had decided: its winner, and what the last finals
/// left open. `toolkits`: of the run, by compiler; `own_device`: the kind of device of the task.
void recall_finals(SweepRecorder& recorder, SweepTask& task, const std::string& run,
                   const std::vector<ToolkitRow>& toolkits, const DeviceRow& own_device);

}  // namespace pascaline
