#pragma once

/// What the fake NVML tells of its one card.
struct FakeNvmlCard {
  int tells_processes;
  unsigned computing[300];
  unsigned computing_count;
  unsigned drawing[300];
  unsigned drawing_count;
};

inline constexpr const char* kFakeNvmlUuid = "GPU-fake";
