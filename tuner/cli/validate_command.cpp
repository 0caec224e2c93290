#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/model_error.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "tuner/cli/model_options.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct ValidateCommandOptions {
  ModelCommandOptions model;
  std::string reference;
  double tolerance = 1e-3;
  bool as_json = false;
};

template <typename T>
std::vector<T> values_of(const Safetensors& file, const StoredTensor& tensor, StoredType type, std::size_t rank) {
  if (tensor.type != type || tensor.shape.size() != rank) {
    throw ModelError(fmt::format("{}: {} is {} of {} dimensions; {} of {} is needed", file.path().string(),
                                 quoted_name(tensor.name), name_of(tensor.type), tensor.shape.size(), name_of(type),
                                 rank));
  }
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  return values;
}

// Logits recorded elsewhere, and what they follow.
struct Reference {
  std::vector<std::int32_t> tokens;
  std::vector<float> pixels;
  std::vector<PatchView> pictures;
  std::vector<float> logits;
  std::vector<std::int32_t> decode_tokens;
  std::vector<float> decode_logits;
};

void read_pictures(const Safetensors& file, const VisionConfig& vision, Reference& reference) {
  const StoredTensor* const pixels = file.find("pixel_values");
  if (pixels == nullptr) {
    return;
  }
  reference.pixels = values_of<float>(file, *pixels, StoredType::F32, 2);
  const auto grids = values_of<std::int32_t>(file, file.at("image_grid_thw"), StoredType::I32, 2);
  const auto width = static_cast<std::size_t>(vision.patch_values());
  std::size_t first = 0;
  for (std::size_t i = 0; i + 2 < grids.size(); i += 3) {
    const bool still = grids[i] == 1 && grids[i + 1] > 0 && grids[i + 2] > 0;
    const std::size_t count =
        still ? static_cast<std::size_t>(grids[i + 1]) * static_cast<std::size_t>(grids[i + 2]) * width : 0;
    if (!still || count > reference.pixels.size() - first) {
      throw ModelError(fmt::format("{}: picture {} of image_grid_thw is no still picture that pixel_values holds",
                                   file.path().string(), i / 3 + 1));
    }
    reference.pictures.push_back(
        {grids[i + 1], grids[i + 2], std::span<const float>(reference.pixels).subspan(first, count)});
    first += count;
  }
  if (first != reference.pixels.size()) {
    throw ModelError(fmt::format("{}: pixel_values has more patches than image_grid_thw says", file.path().string()));
  }
}

// Logits of so many tokens, [tokens, vocabulary].
std::vector<float> read_logits(const Safetensors& file, const char* name, std::size_t tokens, std::int64_t vocabulary) {
  std::vector<float> logits = values_of<float>(file, file.at(name), StoredType::F32, 2);
  if (logits.size() != tokens * static_cast<std::size_t>(vocabulary)) {
    throw ModelError(fmt::format("{}: {} has not the logits of {} tokens and a vocabulary of {}", file.path().string(),
                                 name, tokens, vocabulary));
  }
  return logits;
}

Reference read_reference(const std::string& name, const ModelConfig& config) {
  const Safetensors file(name);
  Reference reference;
  reference.tokens = values_of<std::int32_t>(file, file.at("input_ids"), StoredType::I32, 1);
  read_pictures(file, config.vision, reference);
  reference.logits = read_logits(file, "logits", reference.tokens.size(), config.text.vocab);
  if (const StoredTensor* const tokens = file.find("decode_ids")) {
    reference.decode_tokens = values_of<std::int32_t>(file, *tokens, StoredType::I32, 1);
    reference.decode_logits = read_logits(file, "decode_logits", reference.decode_tokens.size(), config.text.vocab);
  }
  return reference;
}

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

std::vector<Agreement> compare(Model& model, const Reference& reference) {
  const auto vocabulary = static_cast<std::size_t>(model.config().text.vocab);
  std::vector<Agreement> parts{Agreement("prefill")};
  model.clear();
  model.append({reference.tokens, reference.pictures}, [&](std::int64_t first, std::span<const float> logits) {
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
    (void)model.append({reference.tokens, reference.pictures});
    for (std::size_t i = 0; i < reference.decode_tokens.size(); ++i) {
      model.choose(reference.decode_tokens[i]);
      (void)model.step();
      parts[2].add(model.logits(), std::span<const float>(reference.decode_logits).subspan(i * vocabulary, vocabulary));
    }
  }
  return parts;
}

ModelRequest request_of(const Reference& reference) {
  ModelRequest request;
  request.tokens = static_cast<std::int64_t>(reference.tokens.size() + reference.decode_tokens.size());
  request.pictures = static_cast<std::int64_t>(reference.pictures.size());
  for (const PatchView& picture : reference.pictures) {
    request.patches += picture.rows * picture.columns;
    request.longest_side = std::max({request.longest_side, picture.rows, picture.columns});
  }
  return request;
}

int validate(const ValidateCommandOptions& options) {
  ModelFolder folder = options.model.read_for_numbers();
  const Reference reference = read_reference(options.reference, folder.config());
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
      "The file holds input_ids I32[S] and logits F32[S, vocabulary] of reading them; with pictures pixel_values\n"
      "F32[patches, values] and image_grid_thw I32[pictures, 3]; and, if steps were recorded, decode_ids I32[T] and\n"
      "decode_logits F32[T, vocabulary], each token given as it stands there. A row is clear if its largest logit\n"
      "exceeds the next by more than 0.01.\n"
      "Exit code 3 if a part is beyond the tolerance.\n\nExample:\n"
      "  pascaline validate --model Qwen3-VL-2B-Instruct --reference golden.safetensors --weights float32");
  command->callback([&action, options] { action = [options] { return validate(*options); }; });
}

}  // namespace pascaline::cli
