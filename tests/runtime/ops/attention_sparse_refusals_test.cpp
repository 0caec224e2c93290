#include <gtest/gtest.h>

#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/block_choice.hpp"
#include "tests/runtime/ops/refusals.hpp"

namespace pascaline::testing {
namespace {

ops::AttentionSparsePrefill window_prefill() {
  return {placed(0, {3, 4, 16}), placed(1, {5, 2, 16}), placed(2, {5, 2, 16}), placed(3, {3, 4, 16}), {},
          {.window = 2}};
}

ops::AttentionSparsePrefill listed_prefill() {
  return {placed(0, {3, 4, 16}), placed(1, {5, 2, 16}),      placed(2, {5, 2, 16}),
          placed(3, {3, 4, 16}), placed(4, {2, 1, 1}, kInt), {.block = 16}};
}

ops::AttentionSparseDecode window_decode() {
  return {placed(0, {4, 16}),   placed(1, {5, 2, 16}), placed(2, {5, 2, 16}),
          placed(3, {1}, kInt), placed(4, {4, 16}),    {},
          {.window = 2}};
}

ops::AttentionSparseDecode listed_decode() {
  return {placed(0, {4, 16}), placed(1, {5, 2, 16}),   placed(2, {5, 2, 16}), placed(3, {1}, kInt),
          placed(4, {4, 16}), placed(5, {1, 1}, kInt), {.block = 16}};
}

ops::PoolBlocks pool() { return {placed(0, {40, 2, 16}), placed(1, {1}, kInt), placed(2, {3, 2, 16}), 16, 5}; }
ops::ScoreBlocks score() {
  return {placed(0, {20, 4, 16}), placed(1, {3, 2, 16}), placed(2, {1}, kInt), placed(3, {2, 2, 3}), 40, 16};
}
ops::ChooseBlocks choose() {
  return {placed(0, {2, 2, 3}), placed(1, {1}, kInt), placed(2, {2, 2, 3}, kInt), 20, 40, 16, 500'000};
}

const Refusal kSparseRefusals[] = {
    {"window of 0", bad(window_prefill, [](auto& of) { of.mask.window = 0; }), "no blocks are listed"},
    {"negative window", bad(window_prefill, [](auto& of) { of.mask.window = -1; }), "a window of -1 keys"},
    {"negative sinks", bad(window_prefill, [](auto& of) { of.mask.sinks = -3; }), "-3 sinks"},
    {"block of 8", bad(window_prefill, [](auto& of) { of.mask.block = 8; }),
     "blocks of 8 keys; blocks have 16, 32, 64 or 128"},
    {"block of 256", bad(window_prefill, [](auto& of) { of.mask.block = 256; }), "blocks of 256 keys"},
    {"block of 48", bad(window_prefill, [](auto& of) { of.mask.block = 48; }), "blocks of 48 keys"},
    {"odd sinks", bad(window_prefill, [](auto& of) { of.mask.sinks = 65, of.mask.stride = 2; }),
     "beside strided blocks of 64 keys, sinks must be a multiple of that"},
    {"huge window", bad(window_prefill, [](auto& of) { of.mask.window = kLarge + 1; }), "each may be up to 1073741824"},
    {"window and lists",
     bad(window_prefill,
         [](auto& of) {
           of.blocks = placed(5, {1, 1, 2}, kInt);
         }),
     "blocks is given, but the mask is a pattern"},
    {"fewer keys", bad(window_prefill, [](auto& of) { of.k.shape[0] = of.v.shape[0] = 2; }), "fewer KEYS than QUERIES"},
    {"strides", bad(window_prefill, [](auto& of) { of.q.row_stride = 128; }), "rows of q are 128 elements apart"},
    {"in place", bad(window_prefill, [](auto& of) { of.out.data = of.q.data; }), "out overlaps q"},
    {"sinks without window", bad(listed_prefill, [](auto& of) { of.mask.sinks = 16; }), "queries must see themselves"},
    {"three lists", bad(listed_prefill, [](auto& of) { of.blocks.shape[0] = 3; }),
     "LISTS must be 1, for all heads, or KV_HEADS"},
    {"two rows", bad(listed_prefill, [](auto& of) { of.blocks.shape[1] = 2; }), "blocks is [2,2,1]; it must be"},
    {"more entries than blocks", bad(listed_prefill, [](auto& of) { of.blocks.shape[2] = 2; }),
     "a list names a block once"},
    {"no entries", bad(listed_prefill, [](auto& of) { of.blocks.shape[2] = 0; }), "WIDTH is 0"},
    {"float lists", bad(listed_prefill, [](auto& of) { of.blocks.type = kFloat; }),
     "blocks is float32; it must be int32"},
    {"no address", bad(listed_prefill, [](auto& of) { of.blocks.data = nullptr; }), "the address of blocks"},
    {"token's window", bad(window_decode, [](auto& of) { of.mask.window = 0; }), "no blocks are listed"},
    {"token's length", bad(window_decode, [](auto& of) { of.length.shape[0] = 2; }),
     "attention_sparse_decode: length is [2]"},
    {"no cache", bad(window_decode, [](auto& of) { of.k.shape[0] = of.v.shape[0] = 0; }), "KEYS is 0"},
    {"token's rounding", bad(window_decode, [](auto& of) { of.out.type = ElementType::int8; }),
     "HEAD_DIM no multiple of 32"},
    {"token's lists", bad(listed_decode, [](auto& of) { of.blocks.shape[0] = 4; }), "LISTS must be 1"},
    {"token's rank",
     bad(listed_decode,
         [](auto& of) {
           of.blocks = placed(5, {1, 1, 1}, kInt);
         }),
     "blocks has 3 dimensions"},
};

const Refusal kChoiceRefusals[] = {
    {"means", bad(pool, [](auto& of) { of.means.shape[0] = 2; }), "pool_blocks: means is [2,2,16]"},
    {"rows of 0", bad(pool, [](auto& of) { of.block = 0; }), "block is 0"},
    {"too many added", bad(pool, [](auto& of) { of.added = 41; }), "must be 1 to KEYS"},
    {"scales", bad(pool, [](auto& of) { of.k.type = ElementType::int8; }), "k_scales"},
    {"fewer keys", bad(score, [](auto& of) { of.keys = 19; }), "fewer KEYS than QUERIES"},
    {"scores", bad(score, [](auto& of) { of.scores.shape[1] = 1; }), "scores is [2,1,3]"},
    {"heads", bad(score, [](auto& of) { of.q.shape[1] = 5; }), "HEADS is not a multiple"},
    {"width", bad(choose, [](auto& of) { of.blocks.shape[2] = 2; }), "WIDTH must be 3 or more"},
    {"part", bad(choose, [](auto& of) { of.part = 0; }), "must be 1 to 1000000 millionths"},
    {"lists", bad(choose, [](auto& of) { of.blocks.shape[0] = 1; }), "blocks is [1,2,3]"},
    {"no queries", bad(choose, [](auto& of) { of.queries = 0; }), "QUERIES is 0"},
};

TEST_F(RefusalsTest, ChoiceOfBlocks) { expect_refusals(kChoiceRefusals); }

TEST_F(RefusalsTest, SparseAttention) { expect_refusals(kSparseRefusals); }

TEST_F(RefusalsTest, UnspoiledSparseAttentionIsTaken) {
  expect_taken(window_prefill());
  expect_taken(listed_prefill());
  expect_taken(window_decode());
  expect_taken(listed_decode());
  expect_taken(pool());
  expect_taken(score());
  expect_taken(choose());
  EXPECT_EQ(device_.launches, 7);
}

// Of 40 queries at the end of 100 keys, in blocks of 16: the first is at position 60.
void expect_bad_lists(const std::vector<ops::HeadBlocks>& heads, const char* message) {
  try {
    (void)ops::pack_block_lists(heads, 40, 100, 16);
    ADD_FAILURE() << "taken: " << message;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(BlockListsTest, ListsThatDoNotFitAreRefusedByName) {
  const std::vector<std::int32_t> good{0, 3};
  expect_bad_lists({{good, {0, 4, 2}, good}},
                   "the list for block 1 of the queries names block 2 after block 4; blocks must ascend");
  expect_bad_lists({{good, good, good}, {good, good, {1, 1}}},
                   "the list of key head 1 for block 2 of the queries names block 1 twice");
  expect_bad_lists({{{}, good, good}}, "the list for block 0 of the queries is empty, which leaves queries without");
  expect_bad_lists({{{4}, good, good}}, "begins with block 4, which leaves the query at position 60 without keys");
  expect_bad_lists({{{0, 5}, good, good}},
                   "names block 5, of which none of its queries sees a key; the last that they");
  expect_bad_lists({{good, good, {-1, 2}}}, "names block -1; blocks of keys are counted from 0");
  expect_bad_lists({{good, good}}, "2 lists of blocks for 40 queries in blocks of 16; there must be 3");
  EXPECT_THROW((void)ops::pack_block_lists(std::vector<ops::HeadBlocks>{{good}}, 1, 100, 20), Error);
  EXPECT_THROW((void)ops::pack_block_lists(std::vector<ops::HeadBlocks>{{good}}, 10, 9, 16), Error);
}

TEST(BlockListsTest, ListsAreFilledUpBehindTheirEnd) {
  const ops::BlockLists packed =
      ops::pack_block_lists(std::vector<ops::HeadBlocks>{{{0, 3}, {1}, {0, 2, 6}}}, 40, 100, 16);
  EXPECT_EQ(packed.lists, 1);
  EXPECT_EQ(packed.rows, 3);
  EXPECT_EQ(packed.width, 3);
  EXPECT_EQ(packed.entries, (std::vector<std::int32_t>{0, 3, -1, 1, -1, -1, 0, 2, 6}));
}

// Against what the mask says of each pair.
TEST(SeenKeysTest, APatternsKeysAreThoseThatItLetsThrough) {
  const ops::SparseMask masks[] = {{.window = 1},
                                   {.window = 9, .sinks = 3},
                                   {.window = 300, .sinks = 200},
                                   {.block = 16, .window = 20, .sinks = 0, .stride = 2},
                                   {.block = 32, .window = 7, .sinks = 64, .stride = 3}};
  for (const ops::SparseMask& mask : masks) {
    for (const std::int64_t first : {0, 1, 15, 64, 199}) {
      const std::int64_t last = first + 20;
      const ops::SeenKeys seen(mask, {}, first, last, 220);
      std::vector<std::vector<std::int64_t>> found(21);
      std::vector<ops::SeenKeys::Run> runs;
      for (std::int64_t position = first; position <= last; ++position) {
        const auto count = static_cast<std::int64_t>(seen.rows().size());
        for (std::int64_t begin = 0; begin < count; begin += 50) {  // in parts, as they are used
          seen.seen_by(position, begin, std::min(begin + 50, count), runs);
          for (const ops::SeenKeys::Run& run : runs) {
            for (std::int64_t i = run.begin; i < run.end; ++i) {
              found[static_cast<std::size_t>(position - first)].push_back(seen.rows()[static_cast<std::size_t>(i)]);
            }
          }
        }
        std::vector<std::int64_t> expected;
        for (std::int64_t key = 0; key <= position; ++key) {
          if (position - key < mask.window || key < mask.sinks ||
              (mask.stride > 0 && key / mask.block % mask.stride == 0)) {
            expected.push_back(key);
          }
        }
        EXPECT_EQ(found[static_cast<std::size_t>(position - first)], expected) << first << " " << position;
      }
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
