#include "runtime/device/cuda/cuda_comparison.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace pascaline {
namespace {

constexpr unsigned kComparingThreads = 256;
constexpr std::uint64_t kComparingBlocksPerSm = 8;
constexpr std::uint64_t kElementsOfThread = 8;  // at least, as all threads may raise the same result

// Each thread walks the elements in strides of the whole grid, keeps the bits of the largest error that it found, which
// are ordered as errors are, and raises the result to it once. Errors of elements that are not within their limits are
// infinite.
constexpr const char* kComparisonBegin = R"(
(.param .u64 pascaline_values, .param .u64 pascaline_expected, .param .u64 pascaline_count,
 .param .f64 pascaline_relative, .param .f64 pascaline_absolute, .param .f64 pascaline_rounding,
 .param .f64 pascaline_least, .param .f64 pascaline_unit, .param .u64 pascaline_result)
{
  .reg .pred %p<8>;
  .reg .b16 %h<2>;
  .reg .f32 %f<2>;
  .reg .b32 %r<6>;
  .reg .f64 %value, %right, %size, %larger, %power, %most, %far, %whole, %worst, %error;
  .reg .f64 %relative, %absolute, %rounding, %least, %unit, %infinity;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [pascaline_values];
  ld.param.u64 %rd2, [pascaline_expected];
  ld.param.u64 %rd3, [pascaline_count];
  ld.param.u64 %rd4, [pascaline_result];
  ld.param.f64 %relative, [pascaline_relative];
  ld.param.f64 %absolute, [pascaline_absolute];
  ld.param.f64 %rounding, [pascaline_rounding];
  ld.param.f64 %least, [pascaline_least];
  ld.param.f64 %unit, [pascaline_unit];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd4, %rd4;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %rd5, %r1, %r2;
  cvt.u64.u32 %rd6, %r3;
  add.u64 %rd5, %rd5, %rd6;
  mul.wide.u32 %rd6, %r4, %r2;
  mov.f64 %infinity, 0d7FF0000000000000;
  mov.f64 %worst, 0d0000000000000000;
NEXT:
  setp.ge.u64 %p1, %rd5, %rd3;
  @%p1 bra DONE;
)";

// After the load, %value is the element. Equal numbers, infinite ones among them, and two that are none have no error.
// The largest distance is added up as ElementLimits::largest_distance does it. Dividing is only for errors that may be
// above the worst so far: a product rounded down is below none of them.
constexpr const char* kComparisonEnd = R"(
  shl.b64 %rd9, %rd5, 3;
  add.u64 %rd9, %rd2, %rd9;
  ld.global.f64 %right, [%rd9];
  add.u64 %rd5, %rd5, %rd6;
  setp.eq.f64 %p2, %value, %right;
  @%p2 bra NEXT;
  abs.f64 %size, %right;
  abs.f64 %larger, %value;
  max.f64 %larger, %larger, %size;
  setp.nan.f64 %p2, %value, %value;
  setp.nan.and.f64 %p2, %right, %right, %p2;
  @%p2 bra NEXT;
  mov.b64 %rd10, %larger;
  and.b64 %rd10, %rd10, 0x7FF0000000000000;
  mov.b64 %power, %rd10;
  mul.rn.f64 %most, %relative, %size;
  add.rn.f64 %most, %most, %absolute;
  mul.rn.f64 %power, %power, %rounding;
  max.f64 %power, %power, %least;
  add.rn.f64 %most, %most, %power;
  sub.rn.f64 %far, %value, %right;
  abs.f64 %far, %far;
  add.rn.f64 %whole, %size, %unit;
  setp.lt.f64 %p3, %larger, %infinity;
  setp.lt.and.f64 %p4, %whole, %infinity, %p3;
  setp.le.and.f64 %p5, %far, %most, %p4;
  @%p5 bra WITHIN;
  mov.f64 %worst, %infinity;
  bra DONE;
WITHIN:
  mul.rm.f64 %error, %worst, %whole;
  setp.le.f64 %p6, %far, %error;
  @%p6 bra NEXT;
  div.rn.f64 %error, %far, %whole;
  max.f64 %worst, %worst, %error;
  bra NEXT;
DONE:
  mov.b64 %rd11, %worst;
  ld.volatile.global.u64 %rd10, [%rd4];
  setp.le.u64 %p7, %rd11, %rd10;
  @%p7 bra LEAVE;
  red.global.max.u64 [%rd4], %rd11;
LEAVE:
  ret;
}
)";

// Loads element %rd5 of those at %rd1.
struct Load {
  ElementType type;
  const char* name;
  const char* text;
};

constexpr Load kLoads[] = {
    {ElementType::float32, "pascaline_compare_float32", R"(
  shl.b64 %rd9, %rd5, 2;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.f32 %f1, [%rd9];
  cvt.f64.f32 %value, %f1;
)"},
    {ElementType::float16, "pascaline_compare_float16", R"(
  shl.b64 %rd9, %rd5, 1;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.b16 %h1, [%rd9];
  cvt.f32.f16 %f1, %h1;
  cvt.f64.f32 %value, %f1;
)"},
    {ElementType::bfloat16, "pascaline_compare_bfloat16", R"(
  shl.b64 %rd9, %rd5, 1;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.u16 %r5, [%rd9];
  shl.b32 %r5, %r5, 16;
  mov.b32 %f1, %r5;
  cvt.f64.f32 %value, %f1;
)"},
    {ElementType::int32, "pascaline_compare_int32", R"(
  shl.b64 %rd9, %rd5, 2;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.s32 %r5, [%rd9];
  cvt.rn.f64.s32 %value, %r5;
)"},
    {ElementType::int8, "pascaline_compare_int8", R"(
  add.u64 %rd9, %rd1, %rd5;
  ld.global.s8 %r5, [%rd9];
  cvt.rn.f64.s32 %value, %r5;
)"},
};

std::string comparison_ptx() {
  std::string text = ".version 5.0\n.target sm_50\n.address_size 64\n";
  for (const Load& load : kLoads) {
    text += std::string(".visible .entry ") + load.name + kComparisonBegin + load.text + kComparisonEnd;
  }
  return text;
}

const Load* load_of(ElementType type) noexcept {
  return std::find_if(std::begin(kLoads), std::end(kLoads), [&](const Load& load) { return load.type == type; });
}

}  // namespace

ComparisonAid::ComparisonAid(CudaContext& context) : context_(context) {
  static_assert(std::size(kLoads) == kTypes);
  const DriverApi& driver = context_.driver();
  context_.make_current();
  const std::string ptx = comparison_ptx();
  driver(driver.module_load, &module_, static_cast<const void*>(ptx.c_str()), 0U, nullptr, nullptr);
  for (std::size_t i = 0; i < kTypes; ++i) {
    driver(driver.module_function, &functions_.at(i), module_, kLoads[i].name);
  }
  driver(driver.allocate, &result_, sizeof(double));
}

ComparisonAid::~ComparisonAid() {
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

bool ComparisonAid::takes(ElementType type) noexcept { return load_of(type) != std::end(kLoads); }

double ComparisonAid::largest_error(CuAddress values, ElementType type, CuAddress expected, std::uint64_t count,
                                    const ElementLimits& limits, unsigned sm_count) {
  const DriverApi& driver = context_.driver();
  driver(driver.fill, result_, static_cast<unsigned char>(0), sizeof(double), context_.stream());
  ElementLimits by = limits;
  void* arguments[] = {&values,      &expected,          &count,   &by.relative, &by.absolute,
                       &by.rounding, &by.least_rounding, &by.unit, &result_};
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>(count / (kComparingThreads * kElementsOfThread), 1, kComparingBlocksPerSm * sm_count);
  const auto function = functions_.at(static_cast<std::size_t>(load_of(type) - std::begin(kLoads)));
  driver(driver.launch, function, static_cast<unsigned>(blocks), 1U, 1U, kComparingThreads, 1U, 1U, 0U,
         context_.stream(), arguments, nullptr);
  double error = 0;
  driver(driver.download, static_cast<void*>(&error), result_, sizeof error, context_.stream());
  driver(driver.stream_synchronize, context_.stream());
  return error;
}

}  // namespace pascaline
