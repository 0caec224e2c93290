#include "runtime/device/cuda/cuda_checksum.hpp"

#include <algorithm>

namespace pascaline {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerSm = 8;
constexpr std::uint64_t kWordsOfThread = 16;  // at least, as all threads add to the same sum

// Each thread walks the words in strides of the whole grid and adds what it found to the result once.
constexpr const char* kChecksumPtx = R"(
.version 5.0
.target sm_50
.address_size 64
.visible .entry pascaline_checksum(.param .u64 pascaline_words, .param .u64 pascaline_count, .param .u64 pascaline_sum)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<13>;
  ld.param.u64 %rd1, [pascaline_words];
  ld.param.u64 %rd2, [pascaline_count];
  ld.param.u64 %rd3, [pascaline_sum];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %rd4, %r1, %r2;
  cvt.u64.u32 %rd5, %r3;
  add.u64 %rd4, %rd4, %rd5;
  mul.wide.u32 %rd6, %r4, %r2;
  mov.u64 %rd7, 0;
NEXT:
  setp.ge.u64 %p1, %rd4, %rd2;
  @%p1 bra DONE;
  shl.b64 %rd8, %rd4, 2;
  add.u64 %rd8, %rd1, %rd8;
  ld.global.u32 %r5, [%rd8];
  cvt.u64.u32 %rd9, %r5;
  shl.b64 %rd10, %rd4, 1;
  add.u64 %rd10, %rd10, 1;
  mul.lo.u64 %rd11, %rd9, %rd10;
  add.u64 %rd7, %rd7, %rd11;
  add.u64 %rd4, %rd4, %rd6;
  bra NEXT;
DONE:
  red.global.add.u64 [%rd3], %rd7;
  ret;
}
)";

}  // namespace

ChecksumAid::ChecksumAid(CudaContext& context) : context_(context) {
  const DriverApi& driver = context_.driver();
  context_.make_current();
  driver(driver.module_load, &module_, static_cast<const void*>(kChecksumPtx), 0U, nullptr, nullptr);
  driver(driver.module_function, &function_, module_, "pascaline_checksum");
  driver(driver.allocate, &result_, sizeof(std::uint64_t));
}

ChecksumAid::~ChecksumAid() {
  const DriverApi& driver = context_.driver();
  try {
    context_.make_current();
  } catch (const CudaError&) {
    return;
  }
  if (result_ != 0) {
    driver.free.address(result_);
  }
  if (module_ != nullptr) {
    driver.module_unload.address(module_);
  }
}

std::uint64_t ChecksumAid::sum(CuAddress address, std::uint64_t words, unsigned sm_count) {
  const DriverApi& driver = context_.driver();
  driver(driver.fill, result_, static_cast<unsigned char>(0), sizeof(std::uint64_t), context_.stream());
  void* arguments[] = {&address, &words, &result_};
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>(words / (kThreads * kWordsOfThread), 1, std::uint64_t{kBlocksPerSm} * sm_count);
  driver(driver.launch, function_, static_cast<unsigned>(blocks), 1U, 1U, kThreads, 1U, 1U, 0U, context_.stream(),
         arguments, nullptr);
  std::uint64_t sum = 0;
  driver(driver.download, static_cast<void*>(&sum), result_, sizeof sum, context_.stream());
  driver(driver.stream_synchronize, context_.stream());
  return sum;
}

}  // namespace pascaline
