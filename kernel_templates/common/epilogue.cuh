#pragma once

#include "activation.cuh"
#include "types.cuh"
#include "vector.cuh"

// What is done with a matrix product's float sums before they are stored; the search spaces' dimension EPILOGUE.

constexpr int kEpilogueNone = 0;
constexpr int kEpilogueBias = 1;
constexpr int kEpilogueBiasGeluTanh = 2;
constexpr int kEpilogueBiasGeluErf = 3;
constexpr int kEpilogueResidual = 4;
constexpr int kEpilogueSwiglu = 5;  // columns 2i and 2i+1 are a gate and its factor: column i is silu(gate) · factor
constexpr int kEpilogueBiasResidual = 6;
constexpr int kEpilogueSwigluInt8 = 7;  // as kEpilogueSwiglu, rounded to int8 with scales; matmul_q only

template <int EPILOGUE>
struct Epilogue {
  static_assert(EPILOGUE >= 0 && EPILOGUE <= 7, "a known epilogue");
  static constexpr bool kHasBias = EPILOGUE == kEpilogueBias || EPILOGUE == kEpilogueBiasGeluTanh ||
                                   EPILOGUE == kEpilogueBiasGeluErf || EPILOGUE == kEpilogueBiasResidual;
  static constexpr bool kHasResidual = EPILOGUE == kEpilogueResidual || EPILOGUE == kEpilogueBiasResidual;
  static constexpr bool kHalves =
      EPILOGUE == kEpilogueSwiglu || EPILOGUE == kEpilogueSwigluInt8;  // the output has half the columns
};

// One sum with the bias of its column and the residual of its place; not for kEpilogueSwiglu.
template <int EPILOGUE>
__device__ __forceinline__ float finish(float sum, float bias, float residual) {
  if constexpr (EPILOGUE == kEpilogueBiasGeluTanh) {
    return gelu_tanh(sum + bias);
  } else if constexpr (EPILOGUE == kEpilogueBiasGeluErf) {
    return gelu_erf(sum + bias);
  } else if constexpr (Epilogue<EPILOGUE>::kHasBias || Epilogue<EPILOGUE>::kHasResidual) {
    return sum + bias + residual;
  } else {
    return sum;
  }
}

// The first `inside` of COUNT elements, zeros for the others. ALIGNED: all or none are inside, and lie at a whole
// vector.
template <bool ALIGNED, int COUNT, typename T>
__device__ __forceinline__ Vector<T, COUNT> load_inside(const T* address, int inside) {
  Vector<T, COUNT> out{};
  if constexpr (ALIGNED) {
    if (inside > 0) {
      out = load_vector<COUNT>(address);
    }
  } else {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      if (j < inside) {
        out.element[j] = address[j];
      }
    }
  }
  return out;
}

// Finishes COUNT sums of neighbouring columns, the first at (row, column) of [rows, columns], and stores them; column
// is a multiple of COUNT. ALIGNED: columns is a multiple of 4 (so that rows start at whole vectors), COUNT 4 or less.
template <int EPILOGUE, bool ALIGNED, int COUNT, typename T>
__device__ __forceinline__ void store_finished(T* out, const float* sums, const float* bias, const T* residual,
                                               long long row, int column, int columns) {
  using Form = Epilogue<EPILOGUE>;
  constexpr int kStored = Form::kHalves ? COUNT / 2 : COUNT;
  if constexpr (Form::kHalves) {
    static_assert(COUNT % 2 == 0, "pairs of columns");
    T* place = out + row * (columns / 2) + column / 2;
    Vector<T, kStored> values;
#pragma unroll
    for (int j = 0; j < kStored; ++j) {
      values.element[j] = from_float<T>(silu(sums[2 * j]) * sums[2 * j + 1]);
    }
    if constexpr (ALIGNED) {
      if (column < columns) {
        store_vector(place, values);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kStored; ++j) {
        if (column + 2 * j + 1 < columns) {
          place[j] = values.element[j];
        }
      }
    }
  } else {
    const long long offset = row * columns + column;
    const int inside = columns - column < COUNT ? columns - column : COUNT;
    Vector<float, COUNT> extra{};
    Vector<T, COUNT> other{};
    if constexpr (Form::kHasBias) {
      extra = load_inside<ALIGNED, COUNT>(bias + column, inside);
    }
    if constexpr (Form::kHasResidual) {
      other = load_inside<ALIGNED, COUNT>(residual + offset, inside);
    }
    Vector<T, COUNT> values;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      values.element[j] = from_float<T>(finish<EPILOGUE>(sums[j], extra.element[j], to_float(other.element[j])));
    }
    if constexpr (ALIGNED) {
      if (inside > 0) {
        store_vector(out + offset, values);
      }
    } else {
#pragma unroll
      for (int j = 0; j < COUNT; ++j) {
        if (j < inside) {
          out[offset + j] = values.element[j];
        }
      }
    }
  }
}

#ifdef PASCALINE_REFERENCE

// `finish` in float64; for kEpilogueSwiglu `sum` is the factor of `gate`.
template <int EPILOGUE>
__device__ __forceinline__ double finished(double sum, double gate, double extra, double other) {
  const double x = sum + extra;
  if constexpr (Epilogue<EPILOGUE>::kHalves) {
    return gate / (1.0 + exp(-gate)) * sum;
  } else if constexpr (EPILOGUE == kEpilogueBiasGeluTanh) {
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  } else if constexpr (EPILOGUE == kEpilogueBiasGeluErf) {
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
  } else {
    return x + other;
  }
}

// Stores a product's element at `place` in [rows, columns], and in `column`; for kEpilogueSwiglu, with the product of
// the column before it as `gate`, only in odd columns.
template <int EPILOGUE, typename T>
__device__ __forceinline__ void store_finished(double* c, double sum, double gate, const float* bias, const T* residual,
                                               long long place, int column) {
  using Form = Epilogue<EPILOGUE>;
  if constexpr (Form::kHalves) {
    if (column % 2 == 1) {
      c[place / 2] = finished<EPILOGUE>(sum, gate, 0.0, 0.0);
    }
  } else {
    double extra = 0.0;
    double other = 0.0;
    if constexpr (Form::kHasBias) {
      extra = bias[column];
    }
    if constexpr (Form::kHasResidual) {
      other = to_float(residual[place]);
    }
    c[place] = finished<EPILOGUE>(sum, gate, extra, other);
  }
}

#endif
