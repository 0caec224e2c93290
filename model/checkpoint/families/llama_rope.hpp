#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pascaline {

/// How Llama 3.1 has positions reach farther than in training: `rope_scaling` of the kind `llama3`.
struct Llama3Scaling {
  double factor = 1;
  double low = 1;      ///< waves within the trained length, up to which frequencies are divided by the factor
  double high = 4;     ///< from which on they stay; those between get something between
  double trained = 0;  ///< length, in tokens

  friend bool operator==(const Llama3Scaling&, const Llama3Scaling&) = default;
};

/// By what it divides the head_dim / 2 frequencies of rotary embedding.
[[nodiscard]] std::vector<float> llama3_divisors(const Llama3Scaling& scaling, double theta, std::int64_t head_dim);

/// The scaling that divides like this, to the rounding of float32, with a `low` of 1: multiples of low, high and
/// trained length together do the same. Nothing if there is none.
[[nodiscard]] std::optional<Llama3Scaling> find_llama3_scaling(std::span<const float> divisors, double theta);

}  // namespace pascaline
