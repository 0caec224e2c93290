#pragma once

// Choosing a token from logits: what the kernels `sample` and `sample_next` share.
//
// Every block finds the largest logit of its share, and sums up masses by their exponents relative to that. The block
// that arrives last joins the sums, finds the exponent where the top k end, where top_p is reached and where the drawn
// number lies, and gathers the tokens above that; too many are narrowed down by their ranks' bits. Sums are integers:
// the result depends on no order.

#include "row.cuh"
#include "sampling.cuh"
#include "split.cuh"
#include "vector.cuh"

// `C` names a kernel's constants: kThreads of a block, kVector neighbouring logits a thread takes at a time, kUnroll
// such vectors that it loads before it uses the first, kCopies lanes that add to sums of their own, kCandidates tokens
// that are compared in shared memory, kAligned for a vocabulary of whole vectors.
template <typename C>
struct TokenChoice {
  static constexpr int kThreads = C::kThreads;
  static constexpr int kVector = C::kVector;
  static constexpr int kUnroll = C::kUnroll;
  static constexpr int kCopies = C::kCopies;
  static constexpr int kCandidates = C::kCandidates;
  static constexpr bool kAligned = C::kAligned;

  static constexpr int kStep = kThreads * kVector * kUnroll;  // logits a block takes at a time
  static constexpr int kDigitBits = 10;                       // of a rank, by which tokens are narrowed down
  static constexpr int kDigits = 1 << kDigitBits;
  static constexpr int kRunSize = 32;         // digits that are summed up before one is looked for
  static constexpr int kSummary = kBins + 1;  // a block's largest rank, then its bins
  static constexpr unsigned int kMassMask = (1u << kMassBits) - 1;

  static_assert(kThreads % 32 == 0 && kThreads >= 64 && kThreads <= 1024, "a block is whole warps");
  static_assert(kVector >= 1 && kUnroll >= 1, "counts");
  static_assert(kCopies >= 1 && kCopies <= 32 && kBins * kCopies <= kDigits, "the bins' copies have the digits' place");

  // Sums of masses in 32 bits each, as sm_61 adds no more at once: the lower 11 bits of a mass, the upper 12, the
  // number.
  struct Tally {
    unsigned int low[kDigits];
    unsigned int high[kDigits];
    unsigned int tokens[kDigits];

    __device__ __forceinline__ void clear() {
      for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += kThreads) {
        low[i] = high[i] = tokens[i] = 0;
      }
    }
    __device__ __forceinline__ void add(int place, unsigned int mass) {
      atomicAdd(&low[place], mass & 0x7ffu);
      atomicAdd(&high[place], mass >> 11);
      atomicAdd(&tokens[place], 1u);
    }
    __device__ __forceinline__ Wide sum(int first, int count) const {
      Wide total = 0;
      for (int i = first; i < first + count; ++i) {
        total += packed(tokens[i], low[i] + (static_cast<Wide>(high[i]) << 11));
      }
      return total;
    }
  };

  // The token at which a target is reached, and sums of its bin's tokens before it and with it.
  struct Found {
    Wide rank;
    Wide before;
    Wide through;
  };

  struct Workplace {
    Tally tally;
    Wide runs[kDigits / kRunSize];
    Wide bins[kBins];
    Wide ranks[kCandidates];
    unsigned int masses[kCandidates];  // the bin above the mass
    int filled;
    Found found;
    Wide largest[kThreads / 32];
  };

  // Ranks that agree in all but their lower `bits`.
  struct Prefix {
    Wide first = 0;
    int bits = 64;

    __device__ __forceinline__ bool holds(Wide rank) const { return bits == 64 || (rank ^ first) >> bits == 0; }
  };

  struct Vocabulary {
    const float* logits;
    const int* seen;
    int count;
    float repetition;
    float presence;

    __device__ __forceinline__ float penalised(float logit) const {
      const float scaled = logit > 0.0f ? __fdiv_rn(logit, repetition) : __fmul_rn(logit, repetition);
      return __fsub_rn(scaled, presence);
    }

    // Calls see(logit, id) for the tokens of share `share` of `shares` whose logits are numbers.
    template <typename Visitor>
    __device__ __forceinline__ void visit(int share, int shares, const Visitor& see) const {
      const bool penalties = repetition != 1.0f || presence != 0.0f;
      for (int chunk = share * kStep; chunk < count; chunk += shares * kStep) {
        const int first = chunk + static_cast<int>(threadIdx.x) * kVector;
        float logit[kUnroll][kVector];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          load_floats<kAligned>(logit[u], logits, first + u * kThreads * kVector, count, __int_as_float(0x7fffffff));
        }
        if (penalties) {
          penalise(logit, first);
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
          for (int v = 0; v < kVector; ++v) {
            if (logit[u][v] == logit[u][v]) {
              see(logit[u][v], first + u * kThreads * kVector + v);
            }
          }
        }
      }
    }

    __device__ __forceinline__ void penalise(float (&logit)[kUnroll][kVector], int first) const {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int column = first + u * kThreads * kVector;
        Vector<int, kVector> times{};
        if constexpr (kAligned) {
          if (column < count) {
            times = load_vector<kVector>(seen + column);
          }
        } else {
#pragma unroll
          for (int v = 0; v < kVector; ++v) {
            times.element[v] = column + v < count ? seen[column + v] : 0;
          }
        }
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          logit[u][v] = times.element[v] > 0 ? penalised(logit[u][v]) : logit[u][v];
        }
      }
    }
  };

  // The largest rank of the block's threads; every thread gets it.
  static __device__ __forceinline__ Wide block_largest(Workplace& work, Wide rank) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      const Wide other = __shfl_xor_sync(0xffffffffu, rank, distance);
      rank = other > rank ? other : rank;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      work.largest[threadIdx.x / 32] = rank;
    }
    __syncthreads();
    rank = 0;
    for (const Wide other : work.largest) {
      rank = other > rank ? other : rank;
    }
    return rank;
  }

  // What the block leaves of its share of the vocabulary in `summary`.
  static __device__ __forceinline__ void summarise(Workplace& work, const Vocabulary& words, const Warmth& warmth,
                                                   bool greedy, Wide* summary) {
    const int block = static_cast<int>(blockIdx.x);
    const int blocks = static_cast<int>(gridDim.x);
    Wide largest = 0;
    words.visit(block, blocks, [&](float logit, int id) {
      const Wide rank = rank_of(logit, id);
      largest = rank > largest ? rank : largest;
    });
    work.tally.clear();
    largest = block_largest(work, largest);
    if (threadIdx.x == 0) {
      summary[0] = largest;
    }
    if (greedy) {
      return;
    }
    const int top = exponent_of(warmth.power(logit_of(largest)));
    const int copy = static_cast<int>(threadIdx.x) % kCopies;
    words.visit(block, blocks, [&](float logit, int) {
      const long long power = warmth.power(logit);
      const int bin = top - exponent_of(power);
      if (bin < kBins) {
        work.tally.add(bin * kCopies + copy, mass_of(power));
      }
    });
    __syncthreads();
    for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
      summary[1 + bin] = work.tally.sum(bin * kCopies, kCopies);
    }
  }

  // The bins of all blocks, moved to that of the largest logit of all.
  static __device__ __forceinline__ void join_bins(Workplace& work, const Warmth& warmth, const Wide* summaries,
                                                   int top) {
    for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
      Wide total = 0;
      for (int block = 0; block < static_cast<int>(gridDim.x); ++block) {
        const Wide* summary = summaries + block * kSummary;
        const int from = bin - (top - exponent_of(warmth.power(logit_of(summary[0]))));
        if (summary[0] != 0 && from >= 0) {
          total += summary[1 + from];
        }
      }
      work.bins[bin] = total;
    }
    __syncthreads();
  }

  // Looks for the token at which, going down the ranks, a number of tokens or a weight is reached.
  struct Search {
    Workplace& work;
    const Vocabulary& words;
    const Warmth& warmth;
    int top;                // exponent of bin 0
    int listed = 0;         // bins whose tokens are all among the candidates
    bool weighs = false;    // the target is a weight
    int bin = 0;            // where the target lies
    Wide target = 0;        // in the bin
    Wide weight_above = 0;  // of the bins above

    __device__ __forceinline__ Wide measure(Wide pack) const { return weighs ? weight_in(pack, bin) : tokens_in(pack); }

    // Finds the bin. The target must be within what there is.
    __device__ __forceinline__ void find_bin(Wide whole_target) {
      target = whole_target;
      weight_above = 0;
      for (bin = 0; bin < kBins - 1 && measure(work.bins[bin]) < target; ++bin) {
        target -= measure(work.bins[bin]);
        weight_above += weight_in(work.bins[bin], bin);
      }
    }

    __device__ __forceinline__ Wide tokens_through_bin() const {
      Wide sum = 0;
      for (int i = 0; i <= bin; ++i) {
        sum += tokens_in(work.bins[i]);
      }
      return sum;
    }

    // Makes the tokens of bins `first` to `bin` whose ranks have that prefix the candidates.
    __device__ __forceinline__ void gather(int first, const Prefix& prefix) {
      __syncthreads();
      if (threadIdx.x == 0) {
        work.filled = 0;
      }
      __syncthreads();
      words.visit(0, 1, [&](float logit, int id) {
        const long long power = warmth.power(logit);
        const int of = top - exponent_of(power);
        const Wide rank = rank_of(logit, id);
        if (of >= first && of <= bin && prefix.holds(rank)) {
          const int place = atomicAdd(&work.filled, 1);
          if (place < kCandidates) {
            work.ranks[place] = rank;
            work.masses[place] = static_cast<unsigned int>(of) << kMassBits | mass_of(power);
          }
        }
      });
      __syncthreads();
    }

    // Sums up the bin's tokens with that prefix by their next digit.
    __device__ __forceinline__ void tally_digits(const Prefix& prefix, int shift) {
      __syncthreads();
      work.tally.clear();
      __syncthreads();
      words.visit(0, 1, [&](float logit, int id) {
        const long long power = warmth.power(logit);
        const Wide rank = rank_of(logit, id);
        if (top - exponent_of(power) == bin && prefix.holds(rank)) {
          work.tally.add(static_cast<int>(rank >> shift) & (kDigits - 1), mass_of(power));
        }
      });
      __syncthreads();
      for (int run = static_cast<int>(threadIdx.x); run < kDigits / kRunSize; run += kThreads) {
        work.runs[run] = work.tally.sum(run * kRunSize, kRunSize);
      }
      __syncthreads();
    }

    // Lengthens the prefix until few enough of the bin's tokens have it; returns the sums of those above it.
    __device__ __forceinline__ Wide narrow(Prefix& prefix) {
      Wide above = 0;
      Wide inside = work.bins[bin];
      while (tokens_in(inside) > kCandidates) {
        const int shift = prefix.bits > kDigitBits ? prefix.bits - kDigitBits : 0;
        tally_digits(prefix, shift);
        int run = kDigits / kRunSize - 1;
        for (; run > 0 && measure(above + work.runs[run]) < target; --run) {
          above += work.runs[run];
        }
        int digit = run * kRunSize + kRunSize - 1;
        for (; digit > run * kRunSize && measure(above + work.tally.sum(digit, 1)) < target; --digit) {
          above += work.tally.sum(digit, 1);
        }
        inside = work.tally.sum(digit, 1);
        const Wide mask = static_cast<Wide>(kDigits - 1) << shift;
        prefix.first = (prefix.first & ~mask) | static_cast<Wide>(digit) << shift;
        prefix.bits = shift;
      }
      return above;
    }

    // The token at which `whole_target` is reached; a weight or a number, as `by_weight` says.
    __device__ __forceinline__ Found find(Wide whole_target, bool by_weight) {
      weighs = by_weight;
      find_bin(whole_target);
      Wide above = 0;
      if (bin >= listed) {
        Prefix prefix;
        const bool few = tokens_through_bin() <= kCandidates;
        if (!few) {
          above = narrow(prefix);
        }
        gather(few ? 0 : bin, prefix);
        listed = few ? bin + 1 : 0;
      }
      __syncthreads();  // the last result has been read by all
      for (int i = static_cast<int>(threadIdx.x); i < work.filled; i += kThreads) {
        compare(i, above);
      }
      __syncthreads();
      return work.found;
    }

    // Leaves candidate `i` as the result if the target is reached there.
    __device__ __forceinline__ void compare(int i, Wide above) {
      if (static_cast<int>(work.masses[i] >> kMassBits) != bin) {
        return;
      }
      const Wide rank = work.ranks[i];
      for (int j = 0; j < work.filled; ++j) {
        if (work.ranks[j] > rank && static_cast<int>(work.masses[j] >> kMassBits) == bin) {
          above += packed(1, work.masses[j] & kMassMask);
        }
      }
      const Wide through = above + packed(1, work.masses[i] & kMassMask);
      if (measure(above) < target && target <= measure(through)) {
        work.found = {rank, above, through};
      }
    }
  };

  struct Choice {
    int id;
    float probability;
  };

  // What cuts the tail of the tokens off.
  struct Limits {
    int top_k;
    float top_p;
    float min_p;
  };

  // Weight of the tokens whose own is at least `part` of the largest logit's. Bins before the first that has tokens
  // below that are whole; bins after it have none.
  static __device__ __forceinline__ Wide likely_weight(Search& search, float part, float largest) {
    Workplace& work = search.work;
    const Wide least = share_of(fminf(part, 1.0f), weight_in(mass_of(search.warmth.power(largest)), 0));
    constexpr Wide kLightest = Wide{1} << (kMassBits - 1);
    Wide weight = 0;
    int bin = 0;
    for (; bin < kBins && weight_in(kLightest, bin) >= least; ++bin) {
      weight += weight_in(work.bins[bin], bin);
    }
    if (bin == kBins) {
      return weight;
    }
    __syncthreads();
    work.tally.clear();
    __syncthreads();
    search.words.visit(0, 1, [&](float logit, int) {
      const long long power = search.warmth.power(logit);
      const unsigned int mass = mass_of(power);
      if (search.top - exponent_of(power) == bin && weight_in(mass, bin) >= least) {
        work.tally.add(static_cast<int>(threadIdx.x) % kRunSize, mass);
      }
    });
    __syncthreads();
    return weight + weight_in(work.tally.sum(0, kRunSize), bin);
  }

  // One of the tokens that the limits leave, drawn by `random`.
  static __device__ __forceinline__ Choice draw(Search& search, const Limits& limits, float largest, Wide random) {
    const Wide* bins = search.work.bins;
    Wide tokens = 0;
    Wide kept = 0;  // weight of the tokens left
    for (int bin = 0; bin < kBins; ++bin) {
      tokens += tokens_in(bins[bin]);
      kept += weight_in(bins[bin], bin);
    }
    Choice choice{};
#pragma unroll 1
    for (int stage = 0; stage < 3; ++stage) {
      const bool skipped = stage == 0 ? limits.top_k <= 0 || static_cast<Wide>(limits.top_k) >= tokens
                                      : stage == 1 && !(limits.top_p < 1.0f);
      if (skipped) {
        continue;
      }
      if (stage == 2 && limits.min_p > 0.0f) {
        const Wide likely = likely_weight(search, limits.min_p, largest);
        kept = likely < kept ? likely : kept;
      }
      const Wide target = stage == 0   ? static_cast<Wide>(limits.top_k)
                          : stage == 1 ? share_of(limits.top_p, kept)
                                       : __umul64hi(random, kept) + 1;
      const Found found = search.find(target, stage > 0);
      const Wide through = weight_in(found.through, search.bin);
      if (stage < 2) {
        kept = search.weight_above + through;
      } else {
        const double weight = static_cast<double>(through - weight_in(found.before, search.bin));
        choice = {id_of(found.rank), static_cast<float>(__ddiv_rn(weight, static_cast<double>(kept)))};
      }
    }
    return choice;
  }

  // What the kernels are given in device memory.
  struct Given {
    const float* logits;
    const float* settings;
    const int* top_k;
    long long* generator;
    int* seen;
    int* token;
    float* probability;
    Wide* summaries;  // [blocks, kSummary]
    int* counter;
    int vocabulary;
  };

  // True in the block that has chosen, all of whose threads get the token. All threads of the grid must take part.
  static __device__ __forceinline__ bool choose(Workplace& work, const Given& given, int& token) {
    const float temperature = given.settings[0];
    const int most = *given.top_k;
    const bool greedy = !(temperature >= kColdest) || most == 1;
    const Vocabulary words{given.logits, given.seen, given.vocabulary, given.settings[2], given.settings[3]};
    const Warmth warmth(greedy ? 1.0f : temperature);
    summarise(work, words, warmth, greedy, given.summaries + static_cast<int>(blockIdx.x) * kSummary);
    if (!arrived_last(given.counter, static_cast<int>(gridDim.x))) {
      return false;
    }
    Wide largest = 0;
    for (int block = static_cast<int>(threadIdx.x); block < static_cast<int>(gridDim.x); block += kThreads) {
      const Wide rank = given.summaries[block * kSummary];
      largest = rank > largest ? rank : largest;
    }
    largest = block_largest(work, largest);
    Choice choice{largest != 0 ? id_of(largest) : 0, largest != 0 ? 1.0f : 0.0f};
    if (largest != 0 && !greedy) {
      const int top = exponent_of(warmth.power(logit_of(largest)));
      join_bins(work, warmth, given.summaries, top);
      Search search{work, words, warmth, top};
      choice = draw(search, {most, given.settings[1], given.settings[4]}, logit_of(largest),
                    philox(static_cast<Wide>(given.generator[0]), static_cast<Wide>(given.generator[1])));
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      *given.token = choice.id;
      *given.probability = choice.probability;
      if (largest != 0 && given.seen[choice.id] < 0x7fffffff) {
        given.seen[choice.id] += 1;
      }
      given.generator[1] = static_cast<long long>(static_cast<Wide>(given.generator[1]) + 1);
    }
    token = choice.id;
    return true;
  }
};
