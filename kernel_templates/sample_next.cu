// Chooses the next token as sample.cu does, and moves the decoding step on to it, in one launch: what the kernels
// sample, advance and gather do one after the other. length[1], slots[1] and positions[3] are each one more, and
// next[WIDTH] = table[token], the token's row of the embedding table[VOCABULARY,WIDTH], of plain elements or in a
// packed format (TABLE, as gather.cu has it).
//
// FLOPs: about 20·VOCABULARY. Bytes: 4·VOCABULARY, twice that if there are penalties, and a row of the table.
// Requires: pointers aligned to 16 bytes; VOCABULARY from 1 to 2^20, any WIDTH; what is written overlaps nothing.
// Launch: grid of up to BLOCKS, block THREADS.
//
// The block that chooses also copies the row.

#include "common/row.cuh"
#include "common/table_row.cuh"
#include "common/token_choice.cuh"

namespace {

struct Constants {
  static constexpr int kThreads = THREADS;
  static constexpr int kVector = VECTOR;
  static constexpr int kUnroll = UNROLL;
  static constexpr int kCopies = COPIES;
  static constexpr int kCandidates = CANDIDATES;
  static constexpr bool kAligned = ROWS_ALIGNED != 0;
};
using Choice = TokenChoice<Constants>;

using Table = TableOf<TABLE>::Type;

static_assert(BLOCKS >= 1, "sizes the grid");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Choice::kThreads, MIN_BLOCKS)
    sample_next(const float* __restrict__ logits, const float* __restrict__ settings, const int* __restrict__ top_k,
                long long* generator, int* seen, int* token, float* probability, int* __restrict__ length,
                int* __restrict__ slots, int* __restrict__ positions, const Table* __restrict__ table,
                float* __restrict__ next, long long* summaries, int* counter, int vocabulary, int width) {
  __shared__ Choice::Workplace work;
  int chosen = 0;
  if (!Choice::choose(work,
                      {logits, settings, top_k, generator, seen, token, probability, reinterpret_cast<Wide*>(summaries),
                       counter, vocabulary},
                      chosen)) {
    return;
  }
  const int thread = static_cast<int>(threadIdx.x);
  constexpr bool kAligned = TABLE_ALIGNED != 0;
  for (int column = thread * TABLE_VECTOR; column < width; column += Choice::kThreads * TABLE_VECTOR) {
    float value[TABLE_VECTOR];
    load_table_row<TABLE, kAligned>(value, table, chosen, column, width, width);
    store_floats<kAligned>(next, column, width, value);
  }
  if (thread < 5) {
    int* const place = thread == 0 ? length : thread == 1 ? slots : positions + (thread - 2);
    *place = static_cast<int>(static_cast<unsigned int>(*place) + 1u);
  }
}

#else

#include "common/sample_reference.cuh"

// The same, to the bit. Launch: one block of kSampleThreads.
extern "C" __global__ void sample_next_reference(const float* logits, const float* settings, const int* top_k,
                                                 double* generator, double* seen, double* token, double* probability,
                                                 double* length, double* slots, double* positions, const Table* table,
                                                 double* next, long long* summaries, int* counter, int vocabulary,
                                                 int width) {
  const int chosen = sample_reference_token(logits, settings, top_k, generator, seen, token, probability, vocabulary);
  const int thread = static_cast<int>(threadIdx.x);
  for (int column = thread; column < width; column += kSampleThreads) {
    next[column] = element_of<TABLE>(table, chosen, column, width);
  }
  if (thread < 5) {
    *(thread == 0 ? length : thread == 1 ? slots : positions + (thread - 2)) += 1.0;
  }
}

#endif
