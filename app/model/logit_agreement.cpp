#include "app/model/logit_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

// A token that is the likeliest by less may be another's with other rounding.
constexpr float kClearMargin = 0.01F;

// By how much the largest value exceeds the next.
float margin_of(std::span<const float> values) {
  const auto best = std::max_element(values.begin(), values.end());
  float next = -HUGE_VALF;
  for (auto value = values.begin(); value != values.end(); ++value) {
    next = value == best ? next : std::max(next, *value);
  }
  return *best - next;
}

}  // namespace

void LogitAgreement::add(std::int64_t token, std::span<const float> own, std::span<const float> expected) {
  require_finite(expected, "the reference's " + part_, token);
  require_finite(own, "the model's " + part_, token);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double difference = static_cast<double>(own[i]) - expected[i];
    difference_ += difference * difference;
    own_ += static_cast<double>(own[i]) * own[i];
    expected_ += static_cast<double>(expected[i]) * expected[i];
    product_ += static_cast<double>(own[i]) * expected[i];
    largest_ = std::max(largest_, std::abs(difference));
  }
  divergence_.add(expected, own);
  if (margin_of(expected) > kClearMargin) {
    const auto best = [](std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
    ++clear_rows_;
    same_clear_ += best(own) == best(expected) ? 1 : 0;
  }
}

double LogitAgreement::relative_error() const { return std::sqrt(difference_ / expected_); }

double LogitAgreement::cosine() const { return product_ / std::sqrt(own_ * expected_); }

nlohmann::json LogitAgreement::to_json() const {
  return {{"part", part_},
          {"rows", divergence_.tokens()},
          {"relative_l2", relative_error()},
          {"max_abs", largest_},
          {"cosine", cosine()},
          {"kl_mean", divergence_.mean()},
          {"kl_p99", divergence_.quantile(0.99)},
          {"top1_agreement", divergence_.top1_agreement()},
          {"clear_rows", clear_rows_},
          {"clear_rows_agreeing", same_clear_}};
}

std::string LogitAgreement::text() const {
  return fmt::format(
      "{:<8} {:>6} rows  relative L2 {:.3e}  max {:.3e}  cosine {:.8f}  KL {:.3e}, 99th percentile {:.3e}  top-1 "
      "{:.2f} "
      "% ({} of the {} clear ones)",
      part_, divergence_.tokens(), relative_error(), largest_, cosine(), divergence_.mean(), divergence_.quantile(0.99),
      100 * divergence_.top1_agreement(), same_clear_, clear_rows_);
}

std::vector<LogitAgreement> compare_with_reference(Model& model, const LogitReference& reference) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  const auto prompt = static_cast<std::int64_t>(reference.tokens.size());
  std::vector<LogitAgreement> parts{LogitAgreement("prefill")};
  model.clear();
  model.append({reference.tokens, reference.images}, [&](std::int64_t first, std::span<const float> logits) {
    for (std::size_t row = 0; row * vocabulary < logits.size(); ++row) {
      const auto token = static_cast<std::size_t>(first) + row;
      parts[0].add(static_cast<std::int64_t>(token) + 1, logits.subspan(row * vocabulary, vocabulary),
                   std::span<const float>(reference.logits).subspan(token * vocabulary, vocabulary));
    }
  });
  if (!reference.decode_tokens.empty()) {
    const auto add = [&](LogitAgreement& part, std::size_t i) {
      part.add(prompt + static_cast<std::int64_t>(i) + 1, model.logits(),
               std::span<const float>(reference.decode_logits).subspan(i * vocabulary, vocabulary));
    };
    parts.emplace_back("decode");
    for (std::size_t i = 0; i < reference.decode_tokens.size(); ++i) {
      model.append({std::span(&reference.decode_tokens[i], 1), {}});
      add(parts[1], i);
    }
    // The same as an answer is made, with steps that are recorded where the device can.
    parts.emplace_back("steps");
    model.clear();
    (void)model.append({reference.tokens, reference.images});
    for (std::size_t i = 0; i < reference.decode_tokens.size(); ++i) {
      model.choose(reference.decode_tokens[i]);
      (void)model.step();
      add(parts[2], i);
    }
  }
  return parts;
}

}  // namespace pascaline
