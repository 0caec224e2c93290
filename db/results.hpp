#pragma once

#include <string>
#include <vector>

#include "db/store.hpp"

namespace pascaline {

/// Results of another tuner as one session of trials of one problem.
struct ImportedResults {
  std::string source;        ///< file's name
  std::string content_hash;  ///< of the file's bytes
  DeviceRow device;          ///< of kind "foreign"
  ToolkitRow toolkit;
  KernelRow kernel;
  std::string space_hash;
  std::string space_json;
  SessionRow session;         ///< `uuid`, times, state, searcher, options, command line and program version are stored
  std::vector<Trial> trials;  ///< of `problem`
  Problem problem;
};

}  // namespace pascaline
