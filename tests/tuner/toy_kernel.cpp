#include "tests/tuner/toy_kernel.hpp"

#include <algorithm>

#include "core/util/paths.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kToySource = R"(// out[i] = 3 x[i] + y[i]
#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef FAULT
#define FAULT 0
#endif
constexpr int kBlock = BLOCK;
constexpr int kFault = FAULT;

static_assert(kFault != 5, "wrong on purpose");

#if FAULT == 13
#define X1 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define X2 X1, X1, X1, X1, X1, X1, X1, X1, X1, X1
#define X3 X2, X2, X2, X2, X2, X2, X2, X2, X2, X2
#define X4 X3, X3, X3, X3, X3, X3, X3, X3, X3, X3
#define X5 X4, X4, X4, X4, X4, X4, X4, X4, X4, X4
#define X6 X5, X5, X5, X5, X5, X5, X5, X5, X5, X5
static const int kBig[] = {X6, X6, X6, X6, X6};
extern "C" const int* big() { return kBig; }
#endif

extern "C" __global__ void toy(float* x, const float* y, float* out, float* scratch, int n) {
  const int i = static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
  if constexpr (kFault == 6) {  // one thread waits for the block, the rest of its warp waits for it
    if (threadIdx.x == 0) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }
  if constexpr (kFault == 10) {
    for (const volatile float* look = x; *look < 1e30f;) {  // as every input is
    }
  }
  if constexpr (kFault == 9) {
    *reinterpret_cast<float*>(static_cast<unsigned long long>(n)) = 1.0f;
  }
  if (i == 0) {
    scratch[0] = 1.0f;
    if constexpr (kFault == 3) {
      out[n] = 1.0f;  // behind
    }
    if constexpr (kFault == 4) {
      out[-1] = 1.0f;  // before
    }
    if constexpr (kFault == 7) {
      scratch[kBlock] = 1.0f;
    }
    if constexpr (kFault >= 1000) {  // other code, which takes as long
      scratch[0] = n == -kFault ? 2.0f : 1.0f;
    }
  }
  if (i < n && !(kFault == 2 && i == n - 1)) {
    out[i] = 3.0f * x[i] + y[i];
    if constexpr (kFault == 1) {
      out[i] = i == 5 ? __int_as_float(0x7fffffff) : out[i];
    }
    if constexpr (kFault == 8) {
      x[i] = 0.0f;
    }
  }
}

#ifdef PASCALINE_REFERENCE
extern "C" __global__ void toy_reference(const float* x, const float* y, double* out, float* scratch, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    out[i] = 3.0 * x[i] + y[i];
  }
}
#endif
)";

constexpr const char* kAccumulateSource = R"(// total[i] += x[i]
extern "C" __global__ void accumulate(const float* x, float* total, int n) {
  const int i = static_cast<int>(blockIdx.x) * BLOCK + static_cast<int>(threadIdx.x);
  if (i < n) {
    total[i] = FAULT == 2 ? x[i] : total[i] + x[i];
  }
}

#ifdef PASCALINE_REFERENCE
extern "C" __global__ void accumulate_reference(const float* x, double* total, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    total[i] += x[i];
  }
}
#endif
)";

constexpr const char* kBase = R"json({
  "schema": 1,
  "kernel": "toy",
  "description": "a kernel that can be wrong in many ways",
  "dimensions": [{"name": "N", "description": "elements", "example": 1000}],
  "types": [],
  "parameters": [
    {"name": "BLOCK", "values": [32, 64, 128], "default": 64, "description": "threads of a block"},
    {"name": "FAULT", "values": [0], "default": 0, "description": "what it does wrong"}
  ],
  "constraints": [{"require": "BLOCK <= device_max_threads_per_block", "because": "a block has at most that many threads"}],
  "launch": {"function": "toy", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
  "arguments": [
    {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
    {"name": "y", "buffer": "float32", "access": "in", "extent": "N", "fill": "normal"},
    {"name": "out", "buffer": "float32", "access": "out", "extent": "N"},
    {"name": "scratch", "buffer": "float32", "access": "scratch", "extent": "BLOCK"},
    {"name": "n", "scalar": "int32", "value": "N"}
  ],
  "reference": {"kernel": {"function": "toy_reference", "block": [128], "grid": ["ceil_div(N, 128)"]}},
  "tolerance": {"float32": 1e-6},
  "work": {"flops": "2 * N", "bytes": "12 * N"}
})json";

}  // namespace

nlohmann::json toy_json(const std::vector<Fault>& faults) {
  nlohmann::json space = nlohmann::json::parse(kBase);
  space["parameters"][1]["values"] = std::vector<std::int64_t>(faults.begin(), faults.end());
  space["parameters"][1]["default"] = static_cast<std::int64_t>(faults.front());
  return space;
}

nlohmann::json accumulate_json() {
  nlohmann::json space = toy_json({kRight, kLastElementLeftOut});
  space["kernel"] = "accumulate";
  space["launch"]["function"] = "accumulate";
  space["reference"]["kernel"]["function"] = "accumulate_reference";
  auto& arguments = space["arguments"];
  arguments.erase(3);
  arguments.erase(1);
  arguments[1].update({{"name", "total"}, {"access", "inout"}, {"fill", "uniform"}});
  return space;
}

void write_toys(const std::filesystem::path& folder, const std::vector<nlohmann::json>& spaces) {
  write_file_atomically(folder / "toy.cu", kToySource);
  write_file_atomically(folder / "accumulate.cu", kAccumulateSource);
  for (const nlohmann::json& space : spaces) {
    write_file_atomically(folder / (space["kernel"].get<std::string>() + ".json"), space.dump(2));
  }
}

void write_odd_compiler(const std::filesystem::path& file) {
  write_file_atomically(file, R"(#!/bin/sh
for word in "$@"; do
  case $word in
    *.cpp)
      if ! grep -q '^#define PASCALINE_REFERENCE' "$word"; then
        ! grep -q '^#define FAULT 11$' "$word" || exec sleep 1000
        ! grep -q '^#define FAULT 12$' "$word" || kill -SEGV $$
      fi ;;
  esac
done
exec g++ "$@"
)");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

Config toy_config(std::int64_t block, Fault fault) {
  return Config({{"BLOCK", block}, {"FAULT", static_cast<std::int64_t>(fault)}});
}

int toy_line(const std::string& text) {
  const std::string source = kToySource;
  const auto at = static_cast<std::ptrdiff_t>(source.find(text));
  return 1 + static_cast<int>(std::count(source.begin(), source.begin() + at, '\n'));
}

MeasureOptions quick_measure() {
  MeasureOptions options;
  options.cold_cache = false;
  options.min_samples = 3;
  options.max_samples = 5;
  options.warm_up = 1;
  return options;
}

std::filesystem::path test_cache() { return PASCALINE_TEST_CACHE; }

ToyBench::ToyBench(const nlohmann::json& space, std::int64_t n, const std::string& device)
    : space_(Space::parse(space.dump(), space["kernel"].get<std::string>() + ".json")),
      device_(open_device(device)),
      bound_(space_, space_.problem({{"N", std::to_string(n)}}), device_->info().limits) {
  write_toys(folder_.path(), {space});
  source_ = KernelSource::load(folder_ / (space_.kernel + ".cu"));
}

CompileRequest ToyBench::request(const Config& config) const {
  const DeviceInfo& info = device_->info();
  return compile_request(bound_, config, source_,
                         info.kind == DeviceKind::emulator ? BinaryKind::host_object : BinaryKind::cubin,
                         info.architecture);
}

Compiled ToyBench::compile(const CompileRequest& request) const {
  Compiled compiled;
  compiled.result = CubinCache(test_cache()).get(Toolchain::find(request.architecture), request);
  compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
  return compiled;
}

Compiled ToyBench::compile(const Config& config) const { return compile(request(config)); }

ReferenceRun ToyBench::reference() const {
  Compiled compiled = compile(reference_request_of(space_, request(space_.general_default())));
  EXPECT_EQ(compiled.status, TrialStatus::ok) << compiled.result.log;
  return {std::move(compiled.result.binary), space_.general_default()};
}

}  // namespace pascaline::testing
