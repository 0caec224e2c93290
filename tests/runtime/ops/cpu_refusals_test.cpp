#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/position_embedding.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/transpose.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kPlaceBytes = 4096;
constexpr std::size_t kPlaces = 12;
alignas(64) std::byte places[kPlaces * kPlaceBytes];

// A tensor in memory that no other number has.
TensorView at_place(std::size_t place, std::initializer_list<std::int64_t> shape,
                    ElementType type = ElementType::float32) {
  return {places + place * kPlaceBytes, type, shape};
}

constexpr ElementType kIntegers = ElementType::int32;

// Arguments that are taken; each case spoils them in one place.

ops::Matmul good_product() {
  return {at_place(0, {9, 8}), at_place(1, {6, 8}), at_place(2, {9, 6}), {}, {}, ops::Epilogue::none};
}
ops::AttentionPrefill good_prefill() {
  return {at_place(0, {3, 4, 16}), at_place(1, {5, 2, 16}), at_place(2, {5, 2, 16}), at_place(3, {3, 4, 16}), {}, true};
}
ops::AttentionDecode good_decode() {
  return {at_place(0, {4, 16}), at_place(1, {5, 2, 16}), at_place(2, {5, 2, 16}), at_place(3, {1}, kIntegers),
          at_place(4, {4, 16})};
}
ops::Rmsnorm good_rmsnorm() { return {at_place(0, {3, 8}), at_place(1, {8}), at_place(2, {3, 8}), {}}; }
ops::Layernorm good_layernorm() {
  return {at_place(0, {3, 8}), at_place(1, {8}), at_place(2, {8}), at_place(3, {3, 8}), {}};
}
ops::QkNormRope good_rope() {
  return {{at_place(1, {16}),
           at_place(2, {16}),
           at_place(3, {9, 8}),
           at_place(4, {9, 8}),
           at_place(5, {3, 5}, kIntegers),
           at_place(7, {7, 1, 16}),
           at_place(8, {7, 1, 16}),
           {},
           {},
           4,
           4},
          at_place(0, {5, 4, 16}),
          at_place(6, {5}, kIntegers),
          at_place(9, {5, 2, 16})};
}
ops::RopeVision good_vision() {
  return {at_place(0, {3, 3, 2, 16}), at_place(1, {5, 4}), at_place(2, {5, 4}), at_place(3, {2, 3}, kIntegers)};
}
ops::PositionEmbedding good_embedding() {
  return {at_place(0, {24, 8}), at_place(1, {5, 5, 8}), at_place(2, {24, 8}), 4, 6, 2};
}

using Call = std::function<void()>;

template <typename Op>
Call spoiled_call(Op (*make)(), const std::function<void(Op&)>& spoil) {
  return [=] {
    Op op = make();
    spoil(op);
    ops::compute(op);
  };
}
Call product(const std::function<void(ops::Matmul&)>& spoil) { return spoiled_call<ops::Matmul>(good_product, spoil); }
Call prefill(const std::function<void(ops::AttentionPrefill&)>& spoil) {
  return spoiled_call<ops::AttentionPrefill>(good_prefill, spoil);
}
Call decode(const std::function<void(ops::AttentionDecode&)>& spoil) {
  return spoiled_call<ops::AttentionDecode>(good_decode, spoil);
}
Call rope(const std::function<void(ops::QkNormRope&)>& spoil) {
  return spoiled_call<ops::QkNormRope>(good_rope, spoil);
}

struct Refused {
  Call call;
  const char* message;  // part of it
};

// The checks are the ones of runtime/ops, whose tests hold every case; here each operation shows that it asks them.
std::vector<Refused> refused() {
  const TensorView matrix = at_place(0, {3, 8});
  const TensorView vector = at_place(1, {8});
  return {
      {product([](auto& of) { of.b.shape[1] = 9; }), "matmul: B is [6,9]; it must be [N,K] = [6,8]"},
      {product([](auto& of) { of.a.shape[1] = of.b.shape[1] = 0; }), "K is 0"},
      {product([](auto& of) { of.b.data = nullptr; }), "the address of B is"},
      {product([](auto& of) { of.a.data = places + 8; }), "aligned to 16 bytes"},
      {product([](auto& of) { of.c.data = of.a.data; }), "C overlaps A"},
      {product([](auto& of) { of.a.type = kIntegers; }), "A is int32"},
      {product([](auto& of) { of.bias = at_place(3, {6}); }), "bias is given, but"},
      {[=] {
         ops::compute(ops::PatchEmbed{matrix, at_place(1, {6, 8}), at_place(2, {5}), at_place(3, {3, 6})});
       },
       "patch_embed: bias is [5]; it must be [WIDTH] = [6]"},
      {prefill([](auto& of) { of.k.shape[1] = of.v.shape[1] = 3; }), "HEADS is not a multiple of KV_HEADS"},
      {prefill([](auto& of) { of.k.shape[0] = of.v.shape[0] = 0; }), "nothing to attend to"},
      {prefill([](auto& of) { of.segment_starts = at_place(5, {3}, kIntegers); }), "segments see themselves"},
      {decode([](auto& of) { of.length.shape[0] = 2; }), "attention_decode: length is [2]"},
      {decode([](auto& of) { of.length.data = nullptr; }), "the address of length"},
      {decode([](auto& of) { of.out.data = of.q.data; }), "out overlaps q"},
      {decode([](auto& of) { of.out.type = ElementType::int8; }), "out is int8, and HEAD_DIM no multiple of 32"},
      {decode([](auto& of) { of.scales = of.length; }), "out is not int8"},
      {decode([](auto& of) { of.out.type = ElementType::float16; }), "out is float16"},
      {spoiled_call<ops::Rmsnorm>(good_rmsnorm, [](auto& of) { of.y.data = of.x.data; }), "rmsnorm: y overlaps x"},
      {spoiled_call<ops::Layernorm>(good_layernorm, [](auto& of) { of.bias.shape[0] = 1; }), "layernorm: bias is [1]"},
      {[=] {
         ops::compute(ops::Softmax{matrix, matrix});
       },
       "softmax: y overlaps x"},
      {rope([](auto& of) { of.qkv.shape[1] = 5; }), "qk_norm_rope: qkv is [5,5,16]"},
      {rope([](auto& of) { of.section_h = 9; }), "section_h"},
      {rope([](auto& of) { of.v_cache.data = of.k_cache.data; }), "k_cache overlaps v_cache"},
      {rope([](auto& of) { of.k_cache.type = of.v_cache.type = ElementType::int8; }), "k_scales has 0 dimensions"},
      {prefill([](auto& of) { of.k.type = of.v.type = ElementType::int8; }), "k_scales has 0 dimensions"},
      {decode([](auto& of) {
         of.v_scales = at_place(5, {5, 2});
       }),
       "v_scales is given, but only int8 has scales"},
      {spoiled_call<ops::RopeVision>(good_vision, [](auto& of) { of.qkv.shape[3] = 18; }),
       "HEAD_DIM is not a multiple of 4"},
      {spoiled_call<ops::PositionEmbedding>(good_embedding, [](auto& of) { of.merge = 0; }), "merge is 0"},
      {[=] {
         ops::compute(ops::Transpose{matrix, at_place(1, {3, 8})});
       },
       "transpose: y is [3,8]"},
      {[=] {
         ops::compute(ops::Gather{at_place(0, {0, 8}), at_place(1, {3}, kIntegers), at_place(2, {3, 8})});
       },
       "VOCABULARY is 0"},
      {[=] {
         ops::compute(ops::Convert{vector, at_place(2, {9})});
       },
       "convert: y is [9]"},
      {[=] {
         ops::compute(ops::Add{vector, at_place(2, {8}, ElementType::float16), vector});
       },
       "add: b is float16"},
      {[=] {
         ops::compute(ops::SiluMultiply{vector, at_place(2, {7}), vector});
       },
       "silu_multiply: factor is [7]"},
      {[=] {
         ops::compute(ops::GeluMultiply{vector, at_place(2, {7}), vector});
       },
       "gelu_multiply: factor is [7]"},
      {[=] {
         ops::compute(ops::GeluTanh{vector, at_place(1, {8}, ElementType::float16)});
       },
       "gelu_tanh: y overlaps x"},
      {[=] {
         ops::compute(ops::GeluErf{{}, {}});
       },
       "gelu_erf: x has 0 dimensions"},
  };
}

TEST(CpuRefusalsTest, BadArgumentsAreRefusedAsByTheKernels) {
  std::fill(std::begin(places), std::end(places), std::byte{0x2A});
  for (const Refused& bad : refused()) {
    try {
      bad.call();
      ADD_FAILURE() << "taken: " << bad.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << bad.message << ": " << error.what();
    }
  }
  EXPECT_TRUE(std::all_of(std::begin(places), std::end(places), [](std::byte b) { return b == std::byte{0x2A}; }))
      << "something was written";
}

// Were they refused as they are, no case above would tell anything.
TEST(CpuRefusalsTest, UnspoiledArgumentsAreTaken) {
  std::fill(std::begin(places), std::end(places), std::byte{0});
  ops::compute(good_product());
  ops::compute(good_prefill());
  ops::compute(good_decode());
  ops::compute(good_rmsnorm());
  ops::compute(good_layernorm());
  ops::compute(good_rope());
  ops::compute(good_vision());
  ops::compute(good_embedding());
}

TEST(CpuRefusalsTest, EmptyTensorsAreNothingToDo) {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 32;
  constexpr ElementType kFloats = ElementType::float32;
  const TensorView none(nullptr, kFloats, {0, 8});
  ops::compute(ops::Rmsnorm{none, at_place(1, {8}), none, {}});
  ops::compute(ops::Layernorm{none, at_place(1, {8}), at_place(2, {8}), none, {}});
  ops::compute(ops::Softmax{none, none});
  ops::compute(ops::Softmax{{nullptr, kFloats, {8, 0}}, {nullptr, kFloats, {8, 0}}});
  ops::compute(ops::Transpose{none, {nullptr, kFloats, {8, 0}}});
  ops::compute(ops::Gather{none, {nullptr, kIntegers, {0}}, none});
  ops::compute(ops::Add{none, none, none});
  ops::compute(
      ops::Convert{{nullptr, kFloats, {0, kBeyond, kBeyond}}, {nullptr, ElementType::float16, {0, kBeyond, kBeyond}}});
  auto no_rows = good_product();
  no_rows.a.shape[0] = no_rows.c.shape[0] = 0;
  ops::compute(no_rows);
  auto no_columns = good_product();
  no_columns.b.shape[0] = no_columns.c.shape[1] = 0;
  ops::compute(no_columns);
  auto queries = good_prefill();
  queries.q.shape[0] = queries.out.shape[0] = 0;
  ops::compute(queries);
  auto tokens = good_rope();
  tokens.qkv.shape[0] = tokens.q.shape[0] = tokens.positions.shape[1] = tokens.slots.shape[0] = 0;
  ops::compute(tokens);
  auto patches = good_vision();
  patches.qkv.shape[0] = patches.positions.shape[1] = 0;
  ops::compute(patches);
  auto image = good_embedding();
  image.grid_h = image.x.shape[0] = image.y.shape[0] = 0;
  ops::compute(image);
}

}  // namespace
}  // namespace pascaline::testing
