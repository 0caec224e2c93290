#include <gtest/gtest.h>

#include "runtime/ops/elementwise.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/position_embedding.hpp"
#include "runtime/ops/rope.hpp"
#include "runtime/ops/transpose.hpp"
#include "tests/runtime/ops/refusals.hpp"

namespace pascaline::testing {
namespace {

// Arguments that are taken; each case spoils them in one place.

ops::Rmsnorm rmsnorm() {
  return {placed(0, {3, 8}, kHalf), placed(1, {8}), placed(2, {3, 8}, kHalf), placed(3, {3, 8}, kHalf)};
}

ops::Layernorm layernorm() { return {placed(0, {3, 8}), placed(1, {8}), placed(2, {8}), placed(3, {3, 8}), {}}; }

ops::QkNormRope rope() {
  return {{placed(1, {16}),
           placed(2, {16}),
           placed(3, {9, 8}),
           placed(4, {9, 8}),
           placed(5, {3, 5}, kInt),
           placed(7, {7, 1, 16}),
           placed(8, {7, 1, 16}),
           {},
           {},
           4,
           4},
          placed(0, {5, 4, 16}),
          placed(6, {5}, kInt),
          placed(9, {5, 2, 16})};
}

ops::RopeVision vision() {
  return {placed(0, {3, 3, 2, 16}), placed(1, {5, 4}), placed(2, {5, 4}), placed(3, {2, 3}, kInt)};
}

ops::PositionEmbedding embedding() { return {placed(0, {24, 8}), placed(1, {5, 5, 8}), placed(2, {24, 8}), 4, 6, 2}; }

const Refusal kRowRefusals[] = {
    {"width", bad(rmsnorm, [](auto& of) { of.weight.shape[0] = 7; }),
     "rmsnorm: weight is [7]; it must be [WIDTH] = [8]"},
    {"weight's type", bad(rmsnorm, [](auto& of) { of.weight.type = kHalf; }), "weight is float16; it must be float32"},
    {"wider output", bad(rmsnorm, [](auto& of) { of.y.type = kFloat; }), "with a float16 residual it must be float16"},
    {"residual's type", bad(rmsnorm, [](auto& of) { of.residual.type = kFloat; }), "residual is float32"},
    {"in place", bad(rmsnorm, [](auto& of) { of.y.data = of.x.data; }), "y overlaps x"},
    {"into the residual", bad(rmsnorm, [](auto& of) { of.y.data = of.residual.data; }), "y overlaps residual"},
    {"x as residual", bad(rmsnorm, [](auto& of) { of.residual.data = of.x.data; }), "residual overlaps x"},
    {"bias", bad(layernorm, [](auto& of) { of.bias.shape[0] = 1; }), "layernorm: bias is [1]"},
    {"null bias", bad(layernorm, [](auto& of) { of.bias.data = nullptr; }), "the address of bias"},
    {"written weight", bad(layernorm, [](auto& of) { of.weight.data = of.y.data; }), "y overlaps weight"},
    {"softmax in place", call(ops::Softmax{placed(0, {3, 8}), placed(0, {3, 8})}), "y overlaps x"},
    {"softmax of a vector", call(ops::Softmax{placed(0, {8}), placed(1, {8})}),
     "softmax: x has 1 dimensions; it must be [ROWS,WIDTH]"},
    {"transpose's shape", call(ops::Transpose{placed(0, {3, 8}), placed(1, {3, 8})}),
     "transpose: y is [3,8]; it must be [COLUMNS,ROWS] = [8,3]"},
    {"transpose in place", call(ops::Transpose{placed(0, {8, 8}), placed(0, {8, 8})}), "overlaps"},
    {"empty table", call(ops::Gather{placed(0, {0, 8}), placed(1, {3}, kInt), placed(2, {3, 8})}), "VOCABULARY is 0"},
    {"real indices", call(ops::Gather{placed(0, {9, 8}), placed(1, {3}), placed(2, {3, 8})}),
     "indices is float32; it must be int32"},
    {"gather into its table", call(ops::Gather{placed(0, {9, 8}), placed(1, {3}, kInt), placed(0, {3, 8})}),
     "y overlaps table"},
    {"shapes differ", call(ops::Add{placed(0, {3, 8}), placed(1, {8, 3}), placed(2, {3, 8})}),
     "add: b is [8,3]; it must be as a: [3,8]"},
    {"types differ", call(ops::Add{placed(0, {8}), placed(1, {8}, kHalf), placed(2, {8})}),
     "b is float16; it must be float32"},
    {"no shape", call(ops::Convert{{}, placed(1, {8})}), "convert: x has 0 dimensions"},
    {"no type", call(ops::Convert{placed(0, {8}, static_cast<ElementType>(99)), placed(1, {8})}),
     "convert: x is of no element type (value 99); it must be float32"},
    {"to no type", call(ops::Convert{placed(0, {8}), placed(1, {8}, static_cast<ElementType>(98))}),
     "convert: y is of no element type (value 98); it must be float32"},
    {"negative", call(ops::Convert{placed(0, {-8}), placed(1, {-8})}), "extents must not be negative"},
    {"uncountable", call(ops::GeluTanh{placed(0, {kLarge, kLarge, 4}), placed(1, {kLarge, kLarge, 4})}),
     "which is more than 2^63 bytes"},
    {"other type in place", call(ops::Convert{placed(0, {8}), placed(0, {8}, kHalf)}),
     "y overlaps x; it must be the same tensor"},
    {"integers", call(ops::GeluErf{placed(0, {8}, kInt), placed(1, {8})}), "x is int32"},
    {"converted shape", call(ops::Convert{placed(0, {8}), placed(1, {9})}), "convert: y is [9]"},
    {"SiLU's factor", call(ops::SiluMultiply{placed(0, {8}), placed(1, {7}), placed(2, {8})}),
     "silu_multiply: factor is [7]"},
    {"GELU's factor", call(ops::GeluMultiply{placed(0, {8}), placed(1, {7}), placed(2, {8})}),
     "gelu_multiply: factor is [7]"},
    {"half in place", call(ops::GeluTanh{placed(0, {8}), placed(0, {8}, kHalf)}), "gelu_tanh: y overlaps x"},
    {"no tensors", call(ops::GeluErf{{}, {}}), "gelu_erf: x has 0 dimensions"},
    {"rows apart", call(ops::GeluErf{placed(0, {3, 8}).with_row_stride(9), placed(1, {3, 8})}),
     "rows of x are 9 elements apart; they must follow each other, 8 apart"},
};

const Refusal kRopeRefusals[] = {
    {"heads", bad(rope, [](auto& of) { of.qkv.shape[1] = 5; }), "qk_norm_rope: qkv is [5,5,16]; it must be [TOKENS,"},
    {"cache types", bad(rope, [](auto& of) { of.v_cache.type = kHalf; }), "v_cache is float16; it must be float32"},
    {"tables", bad(rope, [](auto& of) { of.sine.shape[0] = 8; }), "sine is [8,8]; it must be [POSITIONS,HEAD_DIM/2]"},
    {"positions", bad(rope, [](auto& of) { of.positions.shape[0] = 2; }), "positions is [2,5]; it must be [3,TOKENS]"},
    {"no positions", bad(rope, [](auto& of) { of.cosine.shape[0] = of.sine.shape[0] = 0; }), "POSITIONS is 0"},
    {"no cache", bad(rope, [](auto& of) { of.k_cache.shape[0] = of.v_cache.shape[0] = 0; }), "CACHE_ROWS is 0"},
    {"odd heads",
     bad(rope,
         [](auto& of) {
           of.qkv.shape[2] = of.q.shape[2] = of.k_cache.shape[2] = of.v_cache.shape[2] = 17;
           of.q_weight.shape[0] = of.k_weight.shape[0] = 17;
         }),
     "HEAD_DIM is odd"},
    {"sections", bad(rope, [](auto& of) { of.section_w = 9; }), "section_h and section_w must be from 0 to HEAD_DIM/2"},
    {"negative section", bad(rope, [](auto& of) { of.section_h = -1; }), "section_h"},
    {"too many heads",
     bad(rope,
         [](auto& of) { of.qkv.shape[0] = of.q.shape[0] = of.positions.shape[1] = of.slots.shape[0] = kLarge / 2; }),
     "take fewer tokens"},
    {"parts with gaps",
     bad(rope,
         [](auto& of) {
           of.parts = ops::QkvParts::values_apart;
           of.qkv = of.qkv.with_row_stride(80);
         }),
     "qk_norm_rope: rows of qkv are 80 elements apart; they must follow each other, 64 apart"},
    {"no such parts", bad(rope, [](auto& of) { of.parts = static_cast<ops::QkvParts>(4); }),
     "the parts are none of ops::QkvParts"},
    {"cache over qkv", bad(rope, [](auto& of) { of.k_cache.data = of.qkv.data; }), "k_cache overlaps qkv"},
    {"no scales", bad(rope, [](auto& of) { of.k_cache.type = of.v_cache.type = ElementType::int8; }),
     "k_scales has 0 dimensions"},
    {"one cache", bad(rope, [](auto& of) { of.v_cache.data = of.k_cache.data; }), "k_cache overlaps v_cache"},
    {"q over its weight", bad(rope, [](auto& of) { of.q_weight.data = of.q.data; }), "q overlaps q_weight"},
    {"parts", bad(vision, [](auto& of) { of.qkv.shape[1] = 2; }),
     "rope_vision: qkv is [3,2,2,16]; it must be [PATCHES,3"},
    {"quarter", bad(vision, [](auto& of) { of.cosine.shape[1] = 8; }), "cosine is [5,8]"},
    {"head of 18", bad(vision, [](auto& of) { of.qkv.shape[3] = 18; }), "HEAD_DIM is not a multiple of 4"},
    {"no table", bad(vision, [](auto& of) { of.cosine.shape[0] = of.sine.shape[0] = 0; }), "POSITIONS is 0"},
    {"over its table", bad(vision, [](auto& of) { of.sine.data = of.qkv.data; }), "qkv overlaps sine"},
    {"grid", bad(embedding, [](auto& of) { of.grid_h = 5; }), "position_embedding: x is [24,8]; it must be [GRID_H*"},
    {"grid below zero", bad(embedding, [](auto& of) { of.grid_h = of.grid_w = -5; }), "must be from 0"},
    {"table", bad(embedding, [](auto& of) { of.table.shape[1] = 6; }),
     "table is [5,6,8]; it must be [SIDE,SIDE,WIDTH]"},
    {"blocks", bad(embedding, [](auto& of) { of.merge = 4; }), "multiples of merge"},
    {"no blocks", bad(embedding, [](auto& of) { of.merge = 0; }), "merge is 0"},
    {"no side", bad(embedding, [](auto& of) { of.table.shape[0] = of.table.shape[1] = 0; }), "SIDE is 0"},
    {"places",
     bad(embedding,
         [](auto& of) {
           of.table.shape = {1 << 16, 1 << 16, 8};
         }),
     "counted in 32 bits"},
    {"in place", bad(embedding, [](auto& of) { of.y.data = of.x.data; }), "y overlaps x"},
};

TEST_F(RefusalsTest, Rows) { expect_refusals(kRowRefusals); }
TEST_F(RefusalsTest, Rope) { expect_refusals(kRopeRefusals); }

// Were they refused as they are, no case above would tell anything.
TEST_F(RefusalsTest, UnspoiledRowsAreTaken) {
  expect_taken(rmsnorm());
  expect_taken(layernorm());
  expect_taken(rope());
  expect_taken(vision());
  expect_taken(embedding());
  EXPECT_EQ(device_.launches, 5);
}

TEST_F(RefusalsTest, EmptyRowsAreNothingToDo) {
  const TensorView none(nullptr, kFloat, {0, 8});
  expect_taken(ops::Rmsnorm{none, placed(1, {8}), none, {}});
  expect_taken(ops::Layernorm{none, placed(1, {8}), placed(2, {8}), none, {}});
  expect_taken(ops::Softmax{none, none});
  expect_taken(ops::Softmax{{nullptr, kFloat, {8, 0}}, {nullptr, kFloat, {8, 0}}});
  expect_taken(ops::Transpose{none, {nullptr, kFloat, {8, 0}}});
  expect_taken(ops::Gather{none, {nullptr, kInt, {0}}, none});
  expect_taken(ops::Add{none, none, none});
  expect_taken(
      ops::Convert{{nullptr, kFloat, {0, kLarge * 4, kLarge * 4}}, {nullptr, kHalf, {0, kLarge * 4, kLarge * 4}}});
  auto tokens = rope();
  tokens.qkv.shape[0] = tokens.q.shape[0] = tokens.positions.shape[1] = tokens.slots.shape[0] = 0;
  expect_taken(tokens);
  auto patches = vision();
  patches.qkv.shape[0] = patches.positions.shape[1] = 0;
  expect_taken(patches);
  auto image = embedding();
  image.grid_h = image.x.shape[0] = image.y.shape[0] = 0;
  expect_taken(image);
  EXPECT_EQ(device_.launches, 0);
}

TEST_F(RefusalsTest, AViewHasFourDimensionsAtMost) {
  EXPECT_NO_THROW(placed(0, {1, 1, 1, 1}));
  EXPECT_THROW(placed(0, {1, 1, 1, 1, 1}), Error);
}

}  // namespace
}  // namespace pascaline::testing
