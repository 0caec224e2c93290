#pragma once

#include <nlohmann/json.hpp>

namespace pascaline::testing {

/// A workload of the small space's kernel and of another one.
inline nlohmann::json small_workload() {
  return nlohmann::json::parse(R"json({
    "schema": 1,
    "name": "small",
    "description": "for tests",
    "source": "nowhere",
    "types": {"STORAGE": ["float32", "float16"]},
    "phases": [
      {"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [4, 8]}},
      {"name": "token", "per": "token"}
    ],
    "entries": [
      {"kernel": "scale", "name": "first", "phase": "prompt", "dimensions": {"N": "2 * S", "WIDTH": 4}, "count": 2},
      {"kernel": "scale", "name": "second", "phase": "prompt", "dimensions": {"WIDTH": 4, "N": "S + S"}, "count": 3},
      {"kernel": "scale", "name": "last", "phase": "prompt", "dimensions": {"N": 1, "WIDTH": 4}, "count": 1},
      {"kernel": "scale", "name": "both", "phase": "prompt", "dimensions": {"N": "2 * S", "WIDTH": 8}, "count": 2,
       "alternative_of": ["first", "second"]},
      {"kernel": "norm", "name": "norm", "phase": "prompt", "dimensions": {"ROWS": "S"}, "count": 9},
      {"kernel": "scale", "name": "first", "phase": "token", "dimensions": {"N": 1, "WIDTH": 4}, "count": 7}
    ]
  })json");
}

}  // namespace pascaline::testing
