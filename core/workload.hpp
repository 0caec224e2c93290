#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/space/space.hpp"

namespace pascaline {

/// A part of a model's work (a prompt, a generated token, an image) and the sizes it is looked at.
struct WorkloadPhase {
  std::string name;
  std::string per;                                                         ///< the unit that calls are counted for
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> symbols;  ///< name and values
  Symbols scope;                                                           ///< the symbols, as expressions see them
};

/// One kernel's calls in a phase.
struct WorkloadEntry {
  std::string kernel;
  std::string name;
  std::size_t phase = 0;                                       ///< index
  std::vector<std::pair<std::string, Expression>> dimensions;  ///< over the phase's symbols
  /// Element types by type variable, if they are the entry's own: else those of the workload.
  std::vector<std::pair<std::string, ElementType>> types;
  double count = 0;                         ///< calls a unit of the phase
  std::vector<std::string> alternative_of;  ///< entries of the phase that this one would replace; empty: none
};

/// The shapes a model computes with call counts, read from `search_spaces/workloads/NAME.json`.
struct Workload {
  std::string name;
  std::string description;
  std::string source;
  std::string file;                                                     ///< where it was read from, for messages
  std::vector<std::pair<std::string, std::vector<ElementType>>> types;  ///< by type variable
  std::vector<WorkloadPhase> phases;
  std::vector<WorkloadEntry> entries;

  /// Reads and checks a file; throws SpaceError with file and JSON pointer.
  static Workload load(const std::filesystem::path& file);
  /// Reads and checks a text; `name` stands for the file in messages.
  static Workload parse(std::string_view text, const std::string& name);
};

/// Which part of a workload is wanted.
struct WorkloadSelection {
  std::vector<std::string> phases;  ///< names; empty: all
  bool alternatives = false;        ///< also entries that would replace others (their counts come on top)
};

/// A problem of a workload.
struct WorkloadProblem {
  Problem problem;
  double count = 0;                                           ///< calls a unit of the phase
  std::string phase;                                          ///< name
  std::string names;                                          ///< of the entries, joined by ", "
  std::vector<std::pair<std::string, std::int64_t>> symbols;  ///< values of the phase's symbols
};

/// The workload's problems of the space's kernel, for every value of each phase's symbols and every element type that
/// both the workload and the space name (the space's first where the workload names none), or those of an entry that
/// has its own, in the file's order. Equal
/// problems of one phase and the same symbol values are one, with their counts added. Throws SpaceError if an entry
/// does not fit the space, Error if a phase is unknown.
[[nodiscard]] std::vector<WorkloadProblem> expand(const Workload& workload, const Space& space,
                                                  const WorkloadSelection& selection = {});

}  // namespace pascaline
