#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/model/logit_reference.hpp"
#include "cli/model/model_options.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct ValidateCommandOptions {
  ModelCommandOptions model;
  std::string reference;
  double tolerance = 1e-3;
  bool as_json = false;
};

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

// How far logits are from those recorded, summed over rows.
class Agreement {
 public:
  explicit Agreement(std::string part) : part_(std::move(part)) {}

  void add(std::span<const float> own, std::span<const float> expected) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double difference = static_cast<double>(own[i]) - expected[i];
      difference_ += difference * difference;
      own_ += static_cast<double>(own[i]) * own[i];
      expected_ += static_cast<double>(expected[i]) * expected[i];
      product_ += static_cast<double>(own[i]) * expected[i];
      largest_ = std::isnan(difference) ? difference : std::max(largest_, std::abs(difference));
    }
    const auto best = [](std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
    const bool same = best(own) == best(expected);
    const bool clear = margin_of(expected) > kClearMargin;
    ++rows_;
    same_best_ += same ? 1 : 0;
    clear_rows_ += clear ? 1 : 0;
    same_clear_ += same && clear ? 1 : 0;
  }

  [[nodiscard]] double relative_error() const { return std::sqrt(difference_ / expected_); }
  [[nodiscard]] json to_json() const {
    return {{"part", part_},
            {"rows", rows_},
            {"relative_l2", relative_error()},
            {"max_abs", largest_},
            {"cosine", cosine()},
            {"top1_agreement", top1()},
            {"clear_rows", clear_rows_},
            {"clear_rows_agreeing", same_clear_}};
  }
  void print() const {
    fmt::print(
        "{:<8} {:>6} rows  relative L2 {:.3e}  max {:.3e}  cosine {:.8f}  top-1 {:.2f} % ({} of the {} clear ones)\n",
        part_, rows_, relative_error(), largest_, cosine(), 100 * top1(), same_clear_, clear_rows_);
  }

 private:
  [[nodiscard]] double cosine() const { return product_ / std::sqrt(own_ * expected_); }
  [[nodiscard]] double top1() const { return static_cast<double>(same_best_) / static_cast<double>(rows_); }

  std::string part_;
  std::int64_t rows_ = 0;
  std::int64_t same_best_ = 0;
  std::int64_t clear_rows_ = 0;
  std::int64_t same_clear_ = 0;
  double difference_ = 0;
  double own_ = 0;
  double expected_ = 0;
  double product_ = 0;
  double largest_ = 0;
};

std::vector<Agreement> compare(Model& model, const LogitReference& reference) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  std::vector<Agreement> parts{Agreement("prefill")};
  model.clear();
  model.append({reference.tokens, reference.images}, [&](std::int64_t first, std::span<const float> logits) {
    for (std::size_t row = 0; row * vocabulary < logits.size(); ++row) {
      const std::size_t place = (static_cast<std::size_t>(first) + row) * vocabulary;
      parts[0].add(logits.subspan(row * vocabulary, vocabulary),
                   std::span<const float>(reference.logits).subspan(place, vocabulary));
    }
  });
  if (!reference.decode_tokens.empty()) {
    parts.emplace_back("decode");
    for (std::size_t i = 0; i < reference.decode_tokens.size(); ++i) {
      model.append({std::span(&reference.decode_tokens[i], 1), {}});
      parts[1].add(model.logits(), std::span<const float>(reference.decode_logits).subspan(i * vocabulary, vocabulary));
    }
    // The same as an answer is made, with steps that are recorded where the device can.
    parts.emplace_back("steps");
    model.clear();
    (void)model.append({reference.tokens, reference.images});
    for (std::size_t i = 0; i < reference.decode_tokens.size(); ++i) {
      model.choose(reference.decode_tokens[i]);
      (void)model.step();
      parts[2].add(model.logits(), std::span<const float>(reference.decode_logits).subspan(i * vocabulary, vocabulary));
    }
  }
  return parts;
}

int validate(const ValidateCommandOptions& options) {
  ModelFolder folder = options.model.read_for_numbers();
  const LogitReference reference = read_reference(options.reference, folder.config());
  const auto session = options.model.open(std::move(folder), request_of(reference));
  const std::vector<Agreement> parts = compare(session->model(), reference);
  bool good = true;
  json all = json::array();
  for (const Agreement& part : parts) {
    good = good && part.relative_error() <= options.tolerance;  // false for NaN, too
    all.push_back(part.to_json());
    if (!options.as_json) {
      part.print();
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", json{{"device", session->device_name()},
                            {"tolerance", options.tolerance},
                            {"within_tolerance", good},
                            {"parts", all}}
                           .dump(2));
  } else {
    fmt::print("{}: {} a relative L2 error of {:g}\n", session->device_name(), good ? "within" : "beyond",
               options.tolerance);
  }
  return good ? kSuccess : kNegative;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("validate", "Compare a model's logits with recorded ones");
  const auto options = std::make_shared<ValidateCommandOptions>();
  options->model.add_to(*command);
  command->add_option("--reference", options->reference, "Safetensors file of what another implementation computed")
      ->required();
  command->add_option("--tolerance", options->tolerance, "Largest relative L2 error of each part")
      ->check(number_within(0, 1e6))
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "The file has input_ids I32[S] and their logits F32[S, vocabulary]; with images also pixel_values\n"
      "F32[patches, values] and image_grid_thw I32[images, 3]; and, if steps were recorded, decode_ids I32[T] and\n"
      "decode_logits F32[T, vocabulary], the tokens fed one by one. A row is clear if its largest logit\n"
      "exceeds the next by more than 0.01.\n"
      "Exit code 3 if a part exceeds the tolerance.\n\nExample:\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --reference golden.safetensors --weights float32");
  command->callback([&action, options] { action = [options] { return validate(*options); }; });
}

}  // namespace pascaline::cli
