#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "tests/db/fixtures.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/measure/reference_run.hpp"

namespace pascaline::testing {

/// What the toy kernel does wrong, by the value of its parameter FAULT.
enum Fault : std::int64_t {
  kRight,
  kNotANumber,
  kLastElementLeftOut,
  kWriteBehind,
  kWriteBefore,
  kDoesNotCompile,
  kDeadlock,
  kWriteBehindScratch,
  kWriteInput,
  kIllegalAddress,
  kEndless,        ///< a loop that no device can tell from work
  kHangsCompiler,  ///< the two need the compiler that `write_odd_compiler` makes
  kCrashesCompiler,
  kNeedsMemory,   ///< most of a gigabyte, to be compiled
  kAlike = 1000,  ///< and all above: nothing wrong, each of other code that takes as long
};

/// `out[i] = 3 x[i] + y[i]`, verified against a naive kernel in the same file. FAULT has the values given, the first
/// of them the default; BLOCK is 32, 64 (default) or 128.
[[nodiscard]] nlohmann::json toy_json(const std::vector<Fault>& faults = {kRight});
/// `total[i] += x[i]` with an inout buffer; FAULT 0, or kLastElementLeftOut: overwrites instead of adding.
[[nodiscard]] nlohmann::json accumulate_json();
/// Writes toy.cu and accumulate.cu, and the spaces given as NAME.json.
void write_toys(const std::filesystem::path& folder, const std::vector<nlohmann::json>& spaces);
/// Writes a C++ compiler (for PASCALINE_HOST_CXX) that hangs and crashes where FAULT says so.
void write_odd_compiler(const std::filesystem::path& file);
[[nodiscard]] Config toy_config(std::int64_t block, Fault fault = kRight);
/// Line of toy.cu that holds this text, counted from 1.
[[nodiscard]] int toy_line(const std::string& text);
/// Samples few enough for tests.
[[nodiscard]] MeasureOptions quick_measure();

/// A folder with a space and its kernel, bound to a problem and to the host, and what compiles it.
class ToyBench {
 public:
  explicit ToyBench(const nlohmann::json& space, std::int64_t n = 1000, const std::string& device = "emulator");

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] const Space& space() const noexcept { return space_; }
  [[nodiscard]] const BoundSpace& bound() const noexcept { return bound_; }
  [[nodiscard]] Device& device() noexcept { return *device_; }
  [[nodiscard]] Compiled compile(const Config& config) const;
  [[nodiscard]] ReferenceRun reference() const;

 private:
  [[nodiscard]] Compiled compile(const CompileRequest& request) const;
  [[nodiscard]] CompileRequest request(const Config& config) const;

  TemporaryFolder folder_;
  Space space_;
  std::unique_ptr<Device> device_;
  BoundSpace bound_;
  KernelSource source_;
};

/// Folder where compiled kernels are kept between tests.
[[nodiscard]] std::filesystem::path test_cache();

}  // namespace pascaline::testing
