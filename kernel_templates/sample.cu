// Chooses the next token from logits[VOCABULARY], float32, with all that changes between tokens in device memory, so
// that a recorded launch can be repeated.
//
// In this order: a logit of a token that was seen (seen[i] > 0) is divided by `repetition` if positive, else multiplied
// by it, and lowered by `presence`; all are divided by `temperature`; the top_k largest are kept (0 or less: all; of
// equal ones those with lower ids), of those the fewest from the top whose probabilities sum up to top_p or more (at
// least one), of those the ones that have at least min_p of the probability of the likeliest, and one of them is drawn
// by one number of Philox-4x32-10, whose key is generator[0] and whose counter generator[1]. A temperature of 0 takes
// the largest, of equal ones the first. NaN is never chosen. settings[5] are temperature, top_p, repetition, presence
// and min_p. Writes the token and its probability among those kept; counts the token in `seen`, and adds one to
// generator[1]. If all logits are NaN, the token is 0 with probability 0, and nothing is counted.
//
// FLOPs: about 20·VOCABULARY. Bytes: 4·VOCABULARY, twice that if there are penalties.
// Requires: pointers aligned to 16 bytes; VOCABULARY from 1 to 2^20.
// Launch: grid of up to BLOCKS, block THREADS.
//
// A block finds the largest logit of its share and sums up masses by their exponents; the one that arrives last chooses
// (common/token_choice.cuh).

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

static_assert(BLOCKS >= 1, "sizes the grid");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(Choice::kThreads, MIN_BLOCKS)
    sample(const float* __restrict__ logits, const float* __restrict__ settings, const int* __restrict__ top_k,
           long long* generator, int* seen, int* token, float* probability, long long* summaries, int* counter,
           int vocabulary) {
  __shared__ Choice::Workplace work;
  int chosen = 0;
  (void)Choice::choose(work,
                       {logits, settings, top_k, generator, seen, token, probability,
                        reinterpret_cast<Wide*>(summaries), counter, vocabulary},
                       chosen);
}

#else

#include "common/sample_reference.cuh"

// The same, to the bit. Launch: one block of kSampleThreads.
extern "C" __global__ void sample_reference(const float* logits, const float* settings, const int* top_k,
                                            double* generator, double* seen, double* token, double* probability,
                                            long long* summaries, int* counter, int vocabulary) {
  (void)sample_reference_token(logits, settings, top_k, generator, seen, token, probability, vocabulary);
}

#endif
