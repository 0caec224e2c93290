#pragma once

/// What the fake NVML tells of its one card.
struct FakeNvmlCard {
  int tells_processes;
  unsigned computing[300];
  unsigned computing_count;
  unsigned drawing[300];
  unsigned drawing_count;
  unsigned average_mw = 0;  ///< of power; 0: it tells none
  unsigned instant_mw = 0;
};

inline constexpr const char* kFakeNvmlUuid = "GPU-fake";
