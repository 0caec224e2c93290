#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

/// A small space with a parameter of every kind; tests change it in one place and see what happens.
inline nlohmann::json small_space() {
  return nlohmann::json::parse(R"json({
    "schema": 1,
    "kernel": "scale",
    "description": "y = s x",
    "dimensions": [{"name": "N", "varies": true, "minimum": 1}, {"name": "WIDTH", "fixed": true, "minimum": 2}],
    "types": [{"name": "STORAGE", "values": ["float32", "float16"]}],
    "parameters": [
      {"name": "BLOCK", "values": [32, 64, 128, 256], "default": 64, "description": "threads a block"},
      {"name": "ITEMS", "values": [1, 2, 4], "default": 2, "description": "values a thread"},
      {"name": "CACHED", "values": [false, true], "default": true, "description": "whether x is read through L1"},
      {"name": "MODE", "values": ["ca", "cg"], "default": "ca", "description": "cache operator"},
      {"name": "RATIO", "values": [1.0, 0.5], "default": 1.0, "description": "a real number"},
      {"name": "MAX_REGISTERS", "values": [0, 32], "default": 0, "option": "--maxrregcount=", "omit": 0, "description": "cap"}
    ],
    "constraints": [
      {"require": "BLOCK * ITEMS <= 256", "because": "the tile is small"},
      {"require": "N % ITEMS == 0", "because": "threads do whole vectors"}
    ],
    "macros": [{"name": "ALIGNED", "value": "N % (BLOCK * ITEMS) == 0"}],
    "launch": {
      "function": "scale",
      "block": ["BLOCK"],
      "grid": ["ceil_div(N, BLOCK * ITEMS)", "WIDTH"],
      "shared_bytes": "BLOCK * sizeof(STORAGE)"
    },
    "arguments": [
      {"name": "x", "buffer": "STORAGE", "access": "in", "extent": "N * WIDTH"},
      {"name": "y", "buffer": "STORAGE", "access": "out", "extent": "N * WIDTH"},
      {"name": "n", "scalar": "int32", "value": "N"}
    ],
    "reference": {"default": true},
    "tolerance": {"float32": 1e-6, "float16": 1e-3},
    "work": {
  "flops" : "N * WIDTH", "bytes" : "2 * N * WIDTH * sizeof(STORAGE)"
}
})json");
}

}  // namespace pascaline::testing
