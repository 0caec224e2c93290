#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "db/store.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tests/core/util/message_of.hpp"

namespace pascaline::testing {

/// A small kernel of its own for dispatching: `y[i] = 2 · x[i]` over ROWS · WIDTH elements (WIDTH is fixed).
/// Parameters: BLOCK 32, 64 (default), 128, at least WIDTH; STEPS 1, 2, 4, at most ROWS, with scratch above 1;
/// BROKEN 0, 1: with 1 it does not compile.
[[nodiscard]] const char* scale_json();
/// Writes scale.cu and scale.json to `folder`; another `comment` gives another source hash.
void write_scale_kernel(const std::filesystem::path& folder, const std::string& comment = "scales");

[[nodiscard]] Problem scale_problem(std::int64_t rows, std::int64_t width, ElementType type = ElementType::float32);
[[nodiscard]] Config scale_config(std::int64_t block, std::int64_t steps = 1, std::int64_t broken = 0);

/// "g++ 1.0 for emulator": a toolkit that no machine has.
[[nodiscard]] ToolkitRow old_toolkit();
/// A winner as the store would give it, of source hash "now" and `old_toolkit()`.
[[nodiscard]] Winner scale_winner(const Problem& problem, const Config& config, double median_us = 10);

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Stores the winner with its device, toolkit, kernel and trial.
void add_winner(Store& store, const Winner& winner);

}  // namespace pascaline::testing
