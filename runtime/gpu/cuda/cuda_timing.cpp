#include "runtime/gpu/cuda/cuda_timing.hpp"

#include <algorithm>

namespace pascaline {
namespace {

// 25 to 40 microseconds at the clocks of Pascal cards; queueing two events and a launch takes 5 to 15.
constexpr unsigned long long kDelayCycles = 50000;

// One thread that reads its multiprocessor's clock and touches no memory, so that caches stay as they are.
constexpr const char* kDelayPtx = R"(
.version 5.0
.target sm_50
.address_size 64
.visible .entry pascaline_delay(.param .u64 pascaline_delay_cycles)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [pascaline_delay_cycles];
  mov.u64 %rd2, %clock64;
SPIN:
  mov.u64 %rd3, %clock64;
  sub.s64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra SPIN;
  ret;
}
)";

}  // namespace

TimingAid::TimingAid(CudaContext& context, std::size_t l2_bytes)
    : context_(context), evict_bytes_(2 * std::max<std::size_t>(l2_bytes, 1U << 20U)) {
  const DriverApi& driver = context_.driver();
  context_.make_current();
  driver(driver.module_load, &module_, static_cast<const void*>(kDelayPtx), 0U, nullptr, nullptr);
  driver(driver.module_function, &delay_, module_, "pascaline_delay");
}

TimingAid::~TimingAid() {
  const DriverApi& driver = context_.driver();
  try {
    context_.make_current();
  } catch (const CudaError&) {
    return;
  }
  if (evict_address_ != 0) {
    driver.free.address(evict_address_);
  }
  if (module_ != nullptr) {
    driver.module_unload.address(module_);
  }
}

void TimingAid::evict() {
  const DriverApi& driver = context_.driver();
  if (evict_address_ == 0) {
    driver(driver.allocate, &evict_address_, evict_bytes_);
  }
  // Another value each time: a card that compresses memory could otherwise leave unchanged lines alone.
  driver(driver.fill, evict_address_, ++evict_byte_, evict_bytes_, context_.stream());
}

void TimingAid::prepare(bool cold_cache) {
  const DriverApi& driver = context_.driver();
  if (cold_cache) {
    evict();
  }
  unsigned long long cycles = kDelayCycles;
  void* arguments[] = {&cycles};
  driver(driver.launch, delay_, 1U, 1U, 1U, 1U, 1U, 1U, 0U, context_.stream(), arguments, nullptr);
}

}  // namespace pascaline
