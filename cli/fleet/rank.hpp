#pragma once

#include <optional>
#include <string>

#include "tuner/fleet/fleet_file.hpp"

namespace pascaline::cli {

/// Which of the processes that mpirun or srun started this is.
struct Rank {
  int rank = 0;
  int local = 0;  ///< among those of this machine
};

/// From the environment that Open MPI, MPICH, Intel MPI, PMIx or Slurm gives a process; nothing if none of them did.
[[nodiscard]] std::optional<Rank> rank_here();

/// The device of the rank: of a machine's GPUs that which has its local number, or the only one that was bound to it.
/// Throws Error if there are fewer GPUs than ranks: two on one card would disturb each other's times.
[[nodiscard]] std::string device_of(const Rank& rank);

}  // namespace pascaline::cli
