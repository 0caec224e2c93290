#pragma once

// Products of a few rows of int8 activations with rows of a weight in a packed format, for kernels of decoding steps:
// what matvec_q and mlp share. A lane has a row of the weight, so that nothing is exchanged between lanes, and a warp
// reads 512 bytes at once; the activations of a segment of columns lie in shared memory, where all lanes read the same
// word. Warps of a block and lanes of a warp may share the depth of a row.

#include "awaited.cuh"
#include "dot4.cuh"
#include "formats.cuh"
#include "quantize.cuh"
#include "reduce.cuh"
#include "row.cuh"
#include "types.cuh"
#include "vector.cuh"
#include "words.cuh"

// The scale of a block of 32 activations, and its product with the sum of the integers. With kHalfMinima `sum` holds
// two int16 instead: the sums of the lower and of the upper 16 integers.
struct ScalePair {
  float scale;
  float sum;
};

// Words of integers are turned by one within their unit, so that they come to lie in other register banks of sm_61 than
// the weight's words that they are multiplied by: a load of four words fills registers of the banks 0 to 3.
__device__ __forceinline__ constexpr int place_of_word(int word) { return word / 4 * 4 + (word + 1) % 4; }

// `C` names a kernel's constants: Weight, a packed format; kM rows of activations, kWarps of a block, kWarpsK of them
// that share the depth of the same rows, kLanesK lanes of a warp that do, kBlocks of 32 values of a row that a warp
// takes at a time, kPrefetch steps of so many that are loaded ahead, kDp4a for products of integers instead of floats,
// kSegment columns whose activations lie in shared memory, kRowsAligned for activations of a multiple of 4 columns,
// kWholeSteps where kBlocks divides the blocks of every part of a row, kNormed for activations that are multiplied by a
// norm's weights first, kRowFirst for one row that is asked for before weights are.
template <typename C>
struct PackedProducts {
  using Weight = typename C::Weight;
  using Form = Packed<Weight>;
  static constexpr int kM = C::kM;
  static constexpr int kWarps = C::kWarps;
  static constexpr int kWarpsK = C::kWarpsK;
  static constexpr int kLanesK = C::kLanesK;
  static constexpr int kBlocks = C::kBlocks;
  static constexpr int kPrefetch = C::kPrefetch;
  static constexpr bool kDp4a = C::kDp4a;
  static constexpr int kSegment = C::kSegment;
  static constexpr bool kRowsAligned = C::kRowsAligned;
  static constexpr bool kWholeSteps = C::kWholeSteps;
  static constexpr bool kNormed = C::kNormed;
  static constexpr bool kRowFirst = C::kRowFirst;

  static constexpr bool kRowScales = Form::kScales == 0;
  static constexpr bool kHalfMinima = Form::kHasMin && Form::kScales == 2;
  static constexpr bool kUpperInPlace = kDp4a && Form::kUpperInPlace;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kLaneRows = kPackedRows / kLanesK;  // of the weight that a warp has
  static constexpr int kBlockRows = kLaneRows * kWarps / kWarpsK;
  static constexpr int kParts = kWarpsK * kLanesK;  // that a block's sums of a row come in
  static constexpr int kStride = kParts * kBlocks;  // from one step of a warp to its next
  static constexpr int kHeaders = (kBlocks + Form::kHeaderBlocks - 1) / Form::kHeaderBlocks;
  static constexpr int kDepthStep = 256;  // depths are shared in whole multiples of this

  static_assert(kM >= 1 && kM <= 8, "rows of activations");
  static_assert(kLanesK == 1 || kLanesK == 2 || kLanesK == 4, "a warp reads 128 bytes together at least");
  static_assert(!kRowFirst || kM == 1, "of several rows none is asked for first");
  static_assert(kWarps % kWarpsK == 0, "the warps of a row lie in one block");
  static_assert(kSegment % kDepthStep == 0 && kDepthStep % (32 * kBlocks) == 0 && kDepthStep % Form::kColumns == 0,
                "segments are whole steps");

  // A segment of the activations in shared memory: integers in units of 16, or floats; then the pairs of scales.
  struct Segment {
    char* memory;
    static constexpr int kRowBytes = kSegment * (kDp4a ? 1 : 4);
    __device__ __forceinline__ Words4* units(int row) const {
      return reinterpret_cast<Words4*>(memory + row * kRowBytes);
    }
    __device__ __forceinline__ ScalePair* scales(int row) const {
      return reinterpret_cast<ScalePair*>(memory + kM * kRowBytes) + row * (kSegment / 32);
    }
  };

  // The number of block `b` of a step, written so that the compiler sees what the remainders by powers of two are:
  // steps begin at multiples of their length.
  static __device__ __forceinline__ unsigned int step_block(int first_of_step, int b) {
    static_assert((kBlocks & (kBlocks - 1)) == 0, "a power of two");
    return (static_cast<unsigned int>(first_of_step) & ~(kBlocks - 1u)) | static_cast<unsigned int>(b);
  }

  // The blocks of a row that a warp takes at a time.
  struct Step {
    typename Form::Values values[kBlocks];
    typename Form::Header headers[kHeaders];

    __device__ __forceinline__ void load(const unsigned char* group, int lane, int block, int end) {
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        if (kWholeSteps || block + b < end) {
          Form::load(values[b], group, lane, step_block(block, b));
        } else {
          values[b] = typename Form::Values{};
        }
      }
#pragma unroll
      for (int h = 0; h < kHeaders; ++h) {
        if (kWholeSteps || block + h * Form::kHeaderBlocks < end) {
          Form::load_header(headers[h], group, lane, step_block(block, h * Form::kHeaderBlocks));
        } else {
          headers[h] = typename Form::Header{};
        }
      }
    }
  };

  // Packs a scale and the sums of a block's two halves.
  static __device__ __forceinline__ ScalePair pair_of(float scale, int lower, int upper) {
    return {scale, kHalfMinima
                       ? __int_as_float(static_cast<int>(static_cast<unsigned int>(upper) << 16) | (lower & 0xffff))
                       : scale * static_cast<float>(lower + upper)};
  }

  // The sum of the products of a row's block and the activations' as a float, for the first or the second 16 values or
  // all.
  template <int FIRST, int WORDS>
  static __device__ __forceinline__ float block_dot(const int (&words)[8], const Words4* units, int block) {
    if constexpr (kDp4a) {
      int dot = kFloatBits;
      int upper = 0;
#pragma unroll
      for (int h = FIRST / 4; h < (FIRST + WORDS) / 4; ++h) {
        const Words4 unit = units[2 * block + h];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const int word = unit.element[place_of_word(w)];
          if (kUpperInPlace && h == 1) {
            upper = dot4_unsigned(static_cast<unsigned int>(words[4 * h + w]), word, upper);
          } else {
            dot = dot4(words[4 * h + w], word, dot);
          }
        }
      }
      return __int_as_float(dot + (upper >> 4)) - kFloatOffset;
    } else {
      const float* floats = reinterpret_cast<const float*>(units) + 32 * block;
      float sum = 0.0f;
#pragma unroll
      for (int w = FIRST; w < FIRST + WORDS; ++w) {
        const auto four = load_vector<4>(floats + 4 * w);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum = fmaf(static_cast<float>(static_cast<signed char>(words[w] >> (8 * i))), four.element[i], sum);
        }
      }
      return sum;
    }
  }

  static __device__ __forceinline__ void multiply(float (&sums)[kM], const Step& step, Segment segment, int first,
                                                  int block) {
#pragma unroll
    for (int h = 0; h < kHeaders; ++h) {
      const typename Form::Header& header = step.headers[h];
      float scaled[kM] = {};
      float minima[kM] = {};
#pragma unroll
      for (int b = h * Form::kHeaderBlocks; b < kBlocks && b < (h + 1) * Form::kHeaderBlocks; ++b) {
        int words[8];
        if constexpr (kUpperInPlace) {
          unpack_in_place<Form>(words, step.values[b]);
        } else {
          Form::unpack(words, step.values[b]);
        }
        const BlockScales of_row = steps_of<Form>(header, step_block(block, b));
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          const Words4* units = segment.units(m);
          const int at = block - first + b;
          const ScalePair of_a = segment.scales(m)[at];
          float sum;
          if constexpr (Form::kScales == 2) {
            sum = block_dot<0, 4>(words, units, at) * of_row.scale[0] +
                  block_dot<4, 4>(words, units, at) * of_row.scale[1];
          } else {
            sum = block_dot<0, 8>(words, units, at) * of_row.scale[0];
          }
          // Floats have the scale of the activations in them.
          scaled[m] = kDp4a ? fmaf(sum, of_a.scale, scaled[m]) : scaled[m] + sum;
          if constexpr (kHalfMinima) {
            const int sums_of_a = __float_as_int(of_a.sum);
            const float lower = static_cast<float>(static_cast<short>(sums_of_a));
            const float upper = static_cast<float>(sums_of_a >> 16);
            minima[m] = fmaf(fmaf(of_row.upper_min, upper, of_row.min * lower), of_a.scale, minima[m]);
          } else if constexpr (Form::kHasMin) {
            minima[m] = fmaf(of_row.min, of_a.sum, minima[m]);
          }
        }
      }
      const BlockUnits unit = units_of<Form>(header);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        sums[m] = fmaf(unit.scale, scaled[m], sums[m]);
        if constexpr (Form::kHasMin) {
          sums[m] = fmaf(-unit.min, minima[m], sums[m]);
        }
      }
    }
  }

  // Whole sums of integers, where rows have a scale each.
  static __device__ __forceinline__ void multiply_integers(int (&sums)[kM], const Step& step, Segment segment,
                                                           int first, int block) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      int words[8];
      Form::unpack(words, step.values[b]);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const Words4 unit = segment.units(m)[2 * (block + b - first) + h];
#pragma unroll
          for (int w = 0; w < 4; ++w) {
            sums[m] = dot4(words[4 * h + w], unit.element[place_of_word(w)], sums[m]);
          }
        }
      }
    }
  }

  // The largest magnitude of a whole row of activations, times the norm's weights with kNormed, as bits; all threads
  // must take part.
  template <typename T>
  static __device__ __forceinline__ int largest_of_row(const T* row, const float* norm, int k) {
    __shared__ int partial[kWarps];
    int largest = 0;
    for (int column = static_cast<int>(threadIdx.x) * 4; column < k; column += 4 * kThreads) {
      float value[4];
      look_at_floats<kRowsAligned>(value, row, column, k);
      wait_for_floats<kRowsAligned>(value, row, column, k);
      if constexpr (kNormed) {
        float weight[4];
        load_floats<kRowsAligned>(weight, norm, column, k);
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          value[v] = __fmul_rn(value[v], weight[v]);
        }
      }
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int bits = magnitude_bits(value[v]);
        largest = bits > largest ? bits : largest;
      }
    }
    largest = largest_of_lanes<32>(largest);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      partial[threadIdx.x / 32] = largest;
    }
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      largest = partial[warp] > largest ? partial[warp] : largest;
    }
    return largest;
  }

  // Rounds four neighbouring columns of a row of activations, `at` behind the segment's first, into shared memory;
  // where the warp does not keep them, for nothing.
  static __device__ __forceinline__ void quantize_four(Segment segment, int row, int at, const float (&value)[4],
                                                       Int8Scale scale, bool keeps) {
    if constexpr (!kRowScales) {
      int largest = 0;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int bits = magnitude_bits(value[v]);
        largest = bits > largest ? bits : largest;
      }
      scale = int8_scale(largest_of_lanes<8>(largest));
    }
    const int word = to_int8_word(value, scale.inverse);
    const int lower = Form::kHasMin ? sum_of_lanes<4>(dot4(word, 0x01010101, 0)) : 0;
    const int upper = Form::kHasMin ? __shfl_xor_sync(0xffffffffu, lower, 4) : 0;
    if (!keeps) {
      return;
    }
    if constexpr (kDp4a) {
      reinterpret_cast<int*>(segment.units(row))[place_of_word(at / 4)] = word;
    } else {
      Vector<float, 4> floats;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        floats.element[v] = scale.scale * static_cast<float>(static_cast<signed char>(word >> (8 * v)));
      }
      store_vector(reinterpret_cast<float*>(segment.units(row)) + at, floats);
    }
    if (threadIdx.x % 8 == 0) {
      segment.scales(row)[at / 32] = pair_of(scale.scale, lower, upper);
    }
  }

  // The steps of a warp that are loaded ahead: steps[0] is the next to multiply.
  struct Ahead {
    Step steps[kPrefetch > 0 ? kPrefetch : 1];

    __device__ __forceinline__ void load(const unsigned char* group, int lane, int block, int last, int end) {
#pragma unroll
      for (int i = 0; i < kPrefetch; ++i) {
        if (block + i * kStride < last) {
          steps[i].load(group, lane, block + i * kStride, end);
        }
      }
    }
  };

  // Multiplies a segment with `multiply_step`, which calls `multiply`, or `multiply_integers`.
  template <typename Multiply>
  static __device__ __forceinline__ void multiply_segment(Ahead& ahead, const unsigned char* group, int lane, int block,
                                                          int last, int end, Multiply multiply_step) {
#pragma unroll 1
    for (; block < last; block += kStride) {
      Step next;
      if (block + kPrefetch * kStride < last) {
        next.load(group, lane, block + kPrefetch * kStride, end);
      }
      if constexpr (kPrefetch == 0) {
        multiply_step(next, block);
      } else {
        multiply_step(ahead.steps[0], block);
#pragma unroll
        for (int i = 0; i + 1 < kPrefetch; ++i) {
          ahead.steps[i] = ahead.steps[i + 1];
        }
        ahead.steps[kPrefetch - 1] = next;
      }
    }
  }
};

// Rows of T, which may be Awaited, on their way to the shared memory of products P.
template <typename P, typename T>
struct PackedActivations {
  static constexpr int kM = P::kM;
  static constexpr int kThreads = P::kThreads;
  static constexpr int kSegment = P::kSegment;
  static constexpr bool kRowsAligned = P::kRowsAligned;
  static constexpr bool kNormed = P::kNormed;
  using Segment = typename P::Segment;

  static constexpr int kRound = 4 * kThreads;  // columns that all threads take at once
  static constexpr int kRounds = kSegment / kRound;
  static constexpr int kAtOnce = kRounds < 1 ? 1 : kRounds < 4 ? kRounds : 4;
  static constexpr int kEarly = !P::kRowFirst || kIsAwaited<T> ? 0 : kAtOnce < 2 ? kAtOnce : 2;

  const T* values;
  const float* norm;
  int k;
  Words<T, 4> early[kEarly > 0 ? kEarly : 1];  // the first rounds of a row's columns
  Words<float, 4> early_weights[kEarly > 0 && kNormed ? kEarly : 1];
  Int8Scale whole[kM] = {};  // of the rows, where they have one scale each
  float squares[kM] = {};    // summed up over the columns that this thread took

  __device__ __forceinline__ PackedActivations(const T* a, const float* /*scales*/, const float* norm_weights,
                                               int columns)
      : values(a), norm(norm_weights), k(columns) {}

  // The first columns from `first` on begin their way, before weights, behind which they would come late.
  __device__ __forceinline__ void ask(int first) {
#pragma unroll
    for (int i = 0; i < kEarly; ++i) {
      const int column = first + static_cast<int>(threadIdx.x) * 4 + i * kRound;
      ask_for(early[i], values, column);
      if constexpr (kNormed) {
        ask_for(early_weights[i], norm, column);
      }
    }
  }

  // Before the first segment; all threads must take part.
  __device__ __forceinline__ void measure_rows() {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      whole[m] = int8_scale(P::template largest_of_row<T>(values + static_cast<long long>(m) * k, norm, k));
    }
  }
  __device__ __forceinline__ float scale_of_row(int m) const { return whole[m].scale; }

  // Rounds `count` columns from `first` on, a multiple of 256 and up to the end of the segment's last step; zeros
  // behind column k. Several loads are under way at once: one after the other they would take longer than a short row's
  // products. `asked`: the first columns have been asked for.
  __device__ __forceinline__ void fill(Segment segment, int first, int count, bool asked) {
    const int end = first + count < k ? first + count : k;  // columns behind it are of the next segment
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      const T* row = values + static_cast<long long>(m) * k;
      for (int begin = static_cast<int>(threadIdx.x) * 4; begin < count; begin += kAtOnce * kRound) {
        const bool early_round = asked && begin == static_cast<int>(threadIdx.x) * 4;
        float value[kAtOnce][4];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (i < kEarly && early_round) {
            take(value[i], early[i < kEarly ? i : 0], values);
          } else {
            look_at_floats<kRowsAligned>(value[i], row, first + begin + i * kRound, end);
          }
        }
        if constexpr (kIsAwaited<T>) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            wait_for_floats<kRowsAligned>(value[i], row, first + begin + i * kRound, end);
          }
        }
        if constexpr (kNormed) {
          float weight[kAtOnce][4];
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            if (i < kEarly && early_round) {
              take(weight[i], early_weights[i < kEarly ? i : 0], norm);
            } else {
              load_floats<kRowsAligned>(weight[i], norm, first + begin + i * kRound, end);
            }
          }
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              squares[m] = fmaf(value[i][v], value[i][v], squares[m]);
              value[i][v] = __fmul_rn(value[i][v], weight[i][v]);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          // All lanes of a warp stay together: counts are multiples of 128 columns. Several rounds have one order of
          // instructions, in which none waits for the one before.
          const int at = begin + i * kRound;
          if (kAtOnce > 1 || at < count) {
            P::quantize_four(segment, m, at, value[i], whole[m], at < count);
          }
        }
      }
    }
  }

  // Leaves the sums of squares of the warps' columns; after all columns, all threads must take part.
  template <typename Squares>
  __device__ __forceinline__ void leave_squares(Squares& of_warps) const {
    if constexpr (kNormed) {
      of_warps.leave(squares);
    }
  }

 private:
  template <typename U>
  __device__ __forceinline__ void ask_for(Words<U, 4>& to, const U* row, int column) const {
    if constexpr (kRowsAligned) {
      to.clear();
      if (column < k) {
        to.load_here(row + column);
      }
    } else {
      to.load_some(row, column, k);
    }
  }
  template <typename U>
  static __device__ __forceinline__ void take(float (&value)[4], const Words<U, 4>& words, const U* row) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      value[v] = words.get(Matrix<U>(row), v);
    }
  }
};

// Rows that were rounded before are copied in units of 16 columns.
template <typename P>
struct PackedActivations<P, int8> {
  static constexpr int kM = P::kM;
  static constexpr int kThreads = P::kThreads;
  static constexpr int kSegment = P::kSegment;
  static constexpr bool kRowScales = P::kRowScales;
  using Form = typename P::Form;
  using Segment = typename P::Segment;

  const int8* values;
  const float* scales;
  int k;
  float whole[kM] = {};

  __device__ __forceinline__ PackedActivations(const int8* a, const float* scales_a, const float* /*norm*/, int columns)
      : values(a), scales(scales_a), k(columns) {}

  __device__ __forceinline__ void measure_rows() {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      whole[m] = scales[m];
    }
  }
  __device__ __forceinline__ float scale_of_row(int m) const { return whole[m]; }
  __device__ __forceinline__ void ask(int /*first*/) const {}
  template <typename Squares>
  __device__ __forceinline__ void leave_squares(Squares& /*of_warps*/) const {}  // they were normalised before

  __device__ __forceinline__ void fill(Segment segment, int first, int count, bool /*asked*/) const {
    constexpr int kUnits = kSegment / 16;  // of a row
    constexpr int kItems = kM * kUnits;
    constexpr int kTurns = (kItems + kThreads - 1) / kThreads;
    constexpr int kAtOnce = kTurns < 4 ? kTurns : 4;
    static_assert(kUnits % 32 == 0, "a warp has units of one row");
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x); begin < kItems; begin += kAtOnce * kThreads) {
      Words4 unit[kAtOnce];
      float scale[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int item = begin + i * kThreads;
        const int row = item / kUnits;
        const int column = first + item % kUnits * 16;
        unit[i] = Words4{};
        scale[i] = 0.0f;
        if (item < kItems && column < k) {
          unit[i] = load_vector<4>(reinterpret_cast<const int*>(values + static_cast<long long>(row) * k + column));
          if constexpr (!kRowScales) {
            scale[i] = scales[static_cast<long long>(column / 32) * kM + row];
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int item = begin + i * kThreads;
        // All lanes of a warp stay together.
        if (item < kItems && item % kUnits / 32 * 512 < count) {
          store(segment, item / kUnits, item % kUnits, unit[i], scale[i]);
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ void store(Segment segment, int row, int unit, const Words4& words, float scale) {
    Words4 turned;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      turned.element[place_of_word(w)] = words.element[w];
    }
    segment.units(row)[unit] = turned;
    if constexpr (!kRowScales) {
      int lower = 0;
      int upper = 0;
      if constexpr (Form::kHasMin) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          lower = dot4(words.element[w], 0x01010101, lower);
        }
        upper = __shfl_xor_sync(0xffffffffu, lower, 1);
      }
      if (unit % 2 == 0) {
        segment.scales(row)[unit / 2] = P::pair_of(scale, lower, upper);
      }
    }
  }
};
