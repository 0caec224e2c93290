#include "runtime/ops/vision_qkv.hpp"

#include <vector>

#include "runtime/cpu/floats.hpp"

namespace pascaline::ops {
namespace {

// `qkv` as the product gives it.
TensorView product_result(const VisionQkv& of) {
  TensorView c = of.qkv;
  c.rank = 2;
  c.shape = {of.qkv.shape[0], of.qkv.shape[1] * of.qkv.shape[2] * of.qkv.shape[3], 0, 0};
  return c;
}

Matmul product_of(const VisionQkv& of) {
  return {.a = of.a, .b = of.b, .c = product_result(of), .bias = of.bias, .epilogue = Epilogue::bias};
}

NormalisingMatmul normalising_product_of(const VisionQkv& of) {
  return {.a = of.a,
          .norm = of.norm,
          .norm_bias = of.norm_bias,
          .statistics = of.statistics,
          .b = of.b,
          .c = product_result(of),
          .bias = of.bias,
          .epilogue = Epilogue::bias};
}

RopeVision rotation_of(const VisionQkv& of) {
  return {.qkv = of.qkv, .cosine = of.cosine, .sine = of.sine, .positions = of.positions};
}

}  // namespace

bool VisionQkv::check() const {
  const Checks check(kName);
  const Extent patches{"PATCHES", a.shape[0]};
  const Extent heads{"HEADS", qkv.shape[2]};
  const Extent head_dim{"HEAD_DIM", qkv.shape[3]};
  check.dense({"qkv", &qkv}, {a.type}, {patches, {"3", 3}, heads, head_dim});
  if (!rotation_of(*this).check()) {
    return false;
  }
  if (is_given(norm)) {
    check.require(is_given(norm_bias), "there is a norm without its bias; rows are normalised by Layernorm");
    return normalising_product_of(*this).check();
  }
  check.absent({"norm bias", &norm_bias}, "there is no norm");
  check.absent({"statistics", &statistics}, "there is no norm");
  check.require(!is_packed_format(b.type),
                "B is in a packed format, whose kernels do not turn heads; use QuantizedMatmul, then RopeVision");
  return product_of(*this).check();
}

KernelProblem VisionQkv::problem() const {
  return {"matmul",
          {{"M", a.shape[0]},
           {"N", b.shape[0]},
           {"K", a.shape[1]},
           {"EPILOGUE", static_cast<std::int64_t>(Epilogue::bias)},
           {"NORM", is_given(norm) ? static_cast<std::int64_t>(RowNorm::layer) : 0},
           {"HEAD_DIM", qkv.shape[3]},
           {"POSITIONS", cosine.shape[0]}},
          {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
}

// What the product gives stays float32 until it is turned.
void VisionQkv::compute() const {
  VisionQkv wide = *this;
  std::vector<float> room;
  const std::int64_t count = row_length(qkv) * qkv.shape[0];
  if (qkv.type != ElementType::float32) {
    room.resize(static_cast<std::size_t>(count));
    wide.qkv.type = ElementType::float32;
    wide.qkv.data = room.data();
  }
  if (is_given(norm)) {
    normalising_product_of(wide).compute();
  } else {
    product_of(wide).compute();
  }
  rotation_of(wide).compute();
  if (!room.empty()) {
    cpu::store_floats(room.data(), qkv, 0, count);
  }
}

}  // namespace pascaline::ops
