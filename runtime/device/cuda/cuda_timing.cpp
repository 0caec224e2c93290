#include "runtime/device/cuda/cuda_timing.hpp"

#include <algorithm>

namespace pascaline {
namespace {

// 25 to 40 microseconds at the clocks of Pascal cards; queueing two events and a launch takes 5 to 15.
constexpr unsigned long long kDelayCycles = 50000;

// 16 warps a multiprocessor issue a chain of 16 dependent multiply-adds a round: 6 cycles each on Pascal, 4 to 8
// elsewhere. At 1.5 GHz that makes 200 us on Pascal, at 2 GHz 100 us on Hopper.
constexpr unsigned kCanaryRounds = 3072;
constexpr unsigned kCanaryThreads = 256;
constexpr unsigned kCanaryBlocksPerSm = 2;

constexpr unsigned kEvictBytesPerLoad = 16;
constexpr unsigned kEvictThreads = 256;
constexpr unsigned kEvictBlocks = 512;

// The delay: one thread that reads its multiprocessor's clock. The canary: multiply-adds on numbers that stay positive;
// the trap is never met and keeps the compiler from dropping them. Neither touches memory, so that caches stay as they
// are. The eviction: every 16 bytes of zeros are read past L1; here too the trap is never met.
constexpr const char* kAidPtx = R"(
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
.visible .entry pascaline_canary(.param .u32 pascaline_canary_rounds)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .f32 %f<4>;
  ld.param.u32 %r1, [pascaline_canary_rounds];
  mov.u32 %r2, %tid.x;
  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, 0f3F7FF000;
  mov.f32 %f3, 0f3F800000;
ROUND:
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ROUND;
  setp.lt.f32 %p2, %f1, 0f00000000;
  @%p2 trap;
  ret;
}
.visible .entry pascaline_evict(.param .u64 pascaline_evict_address, .param .u32 pascaline_evict_loads)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [pascaline_evict_address];
  ld.param.u32 %r1, [pascaline_evict_loads];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r6, %r6, %r3;
  mov.u32 %r7, 0;
LOAD:
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r5, 16;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.cg.v4.u32 {%r8, %r9, %r10, %r11}, [%rd3];
  or.b32 %r7, %r7, %r8;
  or.b32 %r7, %r7, %r9;
  or.b32 %r7, %r7, %r10;
  or.b32 %r7, %r7, %r11;
  add.u32 %r5, %r5, %r6;
  bra LOAD;
DONE:
  setp.ne.u32 %p2, %r7, 0;
  @%p2 trap;
  ret;
}
)";

}  // namespace

TimingAid::TimingAid(CudaContext& context, std::size_t l2_bytes)
    : context_(context), evict_bytes_(2 * std::max<std::size_t>(l2_bytes, 1U << 20U)) {
  const DriverApi& driver = context_.driver();
  context_.make_current();
  driver(driver.module_load, &module_, static_cast<const void*>(kAidPtx), 0U, nullptr, nullptr);
  driver(driver.module_function, &delay_, module_, "pascaline_delay");
  driver(driver.module_function, &canary_, module_, "pascaline_canary");
  driver(driver.module_function, &evict_, module_, "pascaline_evict");
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
    driver(driver.fill, evict_address_, static_cast<unsigned char>(0), evict_bytes_, context_.stream());
  }
  auto loads = static_cast<unsigned>(evict_bytes_ / kEvictBytesPerLoad);
  void* arguments[] = {&evict_address_, &loads};
  driver(driver.launch, evict_, kEvictBlocks, 1U, 1U, kEvictThreads, 1U, 1U, 0U, context_.stream(), arguments, nullptr);
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

void TimingAid::launch_canary(unsigned sm_count) {
  const DriverApi& driver = context_.driver();
  unsigned rounds = kCanaryRounds;
  void* arguments[] = {&rounds};
  driver(driver.launch, canary_, kCanaryBlocksPerSm * sm_count, 1U, 1U, kCanaryThreads, 1U, 1U, 0U, context_.stream(),
         arguments, nullptr);
}

}  // namespace pascaline
