#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/model/logit_reference.hpp"
#include "model/logit_divergence.hpp"

namespace pascaline {

/// How far logits are from those recorded, summed over rows.
class LogitAgreement {
 public:
  explicit LogitAgreement(std::string part) : part_(std::move(part)) {}

  /// The logits that follow token number `token`, from 1; throws as `require_finite`.
  void add(std::int64_t token, std::span<const float> own, std::span<const float> expected);

  [[nodiscard]] double relative_error() const;
  [[nodiscard]] nlohmann::json to_json() const;
  /// One line.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] double cosine() const;

  std::string part_;
  LogitDivergence divergence_;
  std::int64_t clear_rows_ = 0;
  std::int64_t same_clear_ = 0;
  double difference_ = 0;
  double own_ = 0;
  double expected_ = 0;
  double product_ = 0;
  double largest_ = 0;
};

/// The prompt read at once; and, if steps were recorded, their tokens read one by one, and as an answer is made. Throws
/// as LogitAgreement::add and Model do.
[[nodiscard]] std::vector<LogitAgreement> compare_with_reference(Model& model, const LogitReference& reference);

}  // namespace pascaline
