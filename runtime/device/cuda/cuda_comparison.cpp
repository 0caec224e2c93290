#include "runtime/device/cuda/cuda_comparison.hpp"

#include <array>
#include <string>

namespace pascaline {
namespace {

constexpr unsigned kComparingThreads = 256;
constexpr unsigned kComparingBlocksPerSm = 8;

constexpr const char* kComparisonHead = R"(
.version 5.0
.target sm_50
.address_size 64
)";

// Each thread walks the elements in strides of the whole grid and adds what it found to the result once. `%b` are the
// bits of an element, `%value` what it is in float64.
constexpr const char* kComparisonParameters =
    R"((.param .u64 values, .param .u64 expected, .param .u64 count, .param .f64 relative,
  .param .f64 absolute, .param .f64 rounding, .param .f64 least, .param .f64 unit, .param .u64 result)
{
  .reg .pred %p<4>;
  .reg .b16 %h<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .f64 %value, %right, %size, %larger, %power, %most, %far, %relative, %absolute, %rounding, %least, %unit, %sum;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [values];
  ld.param.u64 %rd2, [expected];
  ld.param.u64 %rd3, [count];
  ld.param.u64 %rd4, [result];
  ld.param.f64 %relative, [relative];
  ld.param.f64 %absolute, [absolute];
  ld.param.f64 %rounding, [rounding];
  ld.param.f64 %least, [least];
  ld.param.f64 %unit, [unit];
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
  mov.u64 %rd7, 0;
  mov.u64 %rd8, 0;
NEXT:
  setp.ge.u64 %p1, %rd5, %rd3;
  @%p1 bra DONE;
)";

constexpr const char* kLoadFloat32 = R"(
  shl.b64 %rd9, %rd5, 2;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.f32 %f1, [%rd9];
)";

constexpr const char* kLoadFloat16 = R"(
  shl.b64 %rd9, %rd5, 1;
  add.u64 %rd9, %rd1, %rd9;
  ld.global.b16 %h1, [%rd9];
  cvt.f32.f16 %f1, %h1;
)";

constexpr const char* kComparisonRest = R"(
  cvt.f64.f32 %value, %f1;
  shl.b64 %rd9, %rd5, 3;
  add.u64 %rd9, %rd2, %rd9;
  ld.global.f64 %right, [%rd9];
  abs.f64 %size, %right;
  abs.f64 %larger, %value;
  max.f64 %larger, %larger, %size;
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
  setp.lt.f64 %p2, %larger, 0d7FF0000000000000;
  setp.le.and.f64 %p3, %far, %most, %p2;
  @%p3 bra WITHIN;
  add.u64 %rd7, %rd7, 1;
  bra AFTER;
WITHIN:
  cvt.rn.f32.f64 %f2, %far;
  add.rn.f64 %sum, %size, %unit;
  cvt.rn.f32.f64 %f3, %sum;
  div.full.f32 %f2, %f2, %f3;
  mov.b32 %r5, %f2;
  cvt.u64.u32 %rd11, %r5;
  shl.b64 %rd11, %rd11, 32;
  and.b64 %rd12, %rd5, 0xFFFFFFFF;
  xor.b64 %rd12, %rd12, 0xFFFFFFFF;
  or.b64 %rd11, %rd11, %rd12;
  max.u64 %rd8, %rd8, %rd11;
AFTER:
  add.u64 %rd5, %rd5, %rd6;
  bra NEXT;
DONE:
  red.global.add.u64 [%rd4], %rd7;
  red.global.max.u64 [%rd4+8], %rd8;
  ret;
}
)";

std::string comparison_ptx() {
  std::string text = kComparisonHead;
  for (const auto& [name, load] :
       {std::pair{"pascaline_compare_float32", kLoadFloat32}, std::pair{"pascaline_compare_float16", kLoadFloat16}}) {
    text += std::string(".visible .entry ") + name + kComparisonParameters + load + kComparisonRest;
  }
  return text;
}

}  // namespace

ComparisonAid::ComparisonAid(CudaContext& context) : context_(context) {
  const DriverApi& driver = context_.driver();
  context_.make_current();
  const std::string ptx = comparison_ptx();
  driver(driver.module_load, &module_, static_cast<const void*>(ptx.c_str()), 0U, nullptr, nullptr);
  driver(driver.module_function, &of_float32_, module_, "pascaline_compare_float32");
  driver(driver.module_function, &of_float16_, module_, "pascaline_compare_float16");
  driver(driver.allocate, &result_, sizeof(Result));
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

bool ComparisonAid::takes(ElementType type) noexcept {
  return type == ElementType::float32 || type == ElementType::float16;
}

ComparisonAid::Result ComparisonAid::compare(CuAddress values, ElementType type, CuAddress expected,
                                             std::uint64_t count, const ElementLimits& limits, unsigned sm_count) {
  const DriverApi& driver = context_.driver();
  driver(driver.fill, result_, static_cast<unsigned char>(0), sizeof(Result), context_.stream());
  ElementLimits of = limits;
  void* arguments[] = {&values,      &expected,          &count,   &of.relative, &of.absolute,
                       &of.rounding, &of.least_rounding, &of.unit, &result_};
  driver(driver.launch, type == ElementType::float32 ? of_float32_ : of_float16_, kComparingBlocksPerSm * sm_count, 1U,
         1U, kComparingThreads, 1U, 1U, 0U, context_.stream(), arguments, nullptr);
  Result result;
  driver(driver.download, static_cast<void*>(&result), result_, sizeof result, context_.stream());
  driver(driver.stream_synchronize, context_.stream());
  return result;
}

}  // namespace pascaline
