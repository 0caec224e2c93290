#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pascaline {

/// Throws Error if one of the logits is not finite: it names the model, the token (by its number, from 1) that they
/// follow, and the logit. `model` stands at the beginning of the message: "the float32 model".
void require_finite(std::span<const float> logits, std::string_view model, std::int64_t token);

/// Logarithm of the sum of the exponentials of logits, which turns one into a log probability; in float64, without
/// overflow. Minus infinity for none.
[[nodiscard]] double log_sum_exp(std::span<const float> logits) noexcept;

/// How far what a model says of the next token is from what another one says, which it is measured by, over many
/// tokens: the Kullback-Leibler divergence KL(reference ‖ own) in nats, how often the likeliest token is the same (of
/// equal ones the first), and, where the next token is known, the perplexity of both. All in float64.
class LogitDivergence {
 public:
  /// Logits that follow one token, as many of both models, all finite; and the token that came next, if it is known.
  void add(std::span<const float> reference, std::span<const float> own, std::optional<std::int32_t> next = {});

  [[nodiscard]] std::int64_t tokens() const noexcept { return static_cast<std::int64_t>(divergences_.size()); }
  /// Of those the ones whose next token is known.
  [[nodiscard]] std::int64_t predicted() const noexcept { return predicted_; }
  /// NaN without tokens, as the others are.
  [[nodiscard]] double mean() const noexcept;
  /// The divergence that this share of the tokens, 0 to 1, does not exceed; linear between tokens.
  [[nodiscard]] double quantile(double share) const;
  /// Share of the tokens.
  [[nodiscard]] double top1_agreement() const noexcept;
  /// Exponential of the mean negative log-likelihood of the next tokens.
  [[nodiscard]] double perplexity() const noexcept;
  [[nodiscard]] double reference_perplexity() const noexcept;

 private:
  std::vector<double> divergences_;
  std::int64_t same_top1_ = 0;
  std::int64_t predicted_ = 0;
  double own_loss_ = 0;  // negative log-likelihoods
  double reference_loss_ = 0;
};

}  // namespace pascaline
