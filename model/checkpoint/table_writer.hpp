#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// Adds weights to a table, whose tensors' names begin alike.
class TableWriter {
 public:
  using Shape = std::vector<std::int64_t>;
  /// Name and shape of a tensor.
  using Part = std::pair<std::string, Shape>;

  /// `table` must outlive it.
  TableWriter(std::vector<WeightEntry>& table, std::string prefix) : table_(&table), prefix_(std::move(prefix)) {}

  /// Below a further prefix.
  [[nodiscard]] TableWriter below(const std::string& prefix) const {
    TableWriter writer(*table_, prefix_ + prefix);
    writer.part_ = part_;
    return writer;
  }
  /// For weights of that part of the model.
  [[nodiscard]] TableWriter of(WeightPart part) const {
    TableWriter writer = *this;
    writer.part_ = part;
    return writer;
  }

  /// A matrix of these tensors.
  void matrix(TensorView& place, std::vector<Part> parts, WeightLayout layout = WeightLayout::stacked) const;
  /// The same of stacked tensors, which may be of several types.
  void matrix(StackedMatrix& place, std::vector<Part> parts) const;
  /// Vectors, and learned positions.
  void vector(TensorView& place, TensorKind kind, const std::string& name, Shape shape,
              WeightLayout layout = WeightLayout::stacked) const;
  /// `name`.weight and `name`.bias; where rows are elements of heads, those of the bias are, too.
  void linear(LinearWeights& place, const std::string& name, Shape shape,
              WeightLayout layout = WeightLayout::stacked) const;
  void norm(NormWeights& place, const std::string& name, std::int64_t size) const;

 private:
  std::vector<WeightEntry>* table_;
  std::string prefix_;
  WeightPart part_;
};

/// Adds a decoder of the form of Qwen3 and Llama: nothing has a bias. Its head stands apart.
void add_decoder(const TableWriter& decoder, const TextConfig& config, TextWeights& places);
/// Adds `lm_head.weight`, unless the head is the embedding.
void add_head(const TableWriter& root, const TextConfig& config, TextWeights& places);
/// The table of a model that is such a decoder and its head, with the names of kTextOnlyPrefixes.
[[nodiscard]] std::vector<WeightEntry> text_only_table(const ModelConfig& config, ModelWeights& places);
/// Under which other names its tensors may be stored.
inline constexpr std::array<NamePrefix, 4> kTextOnlyPrefixes{{{"layers.", "model.layers."},
                                                              {"embed_tokens.", "model.embed_tokens."},
                                                              {"norm.", "model.norm."},
                                                              {"lm_head.", "lm_head."}}};

}  // namespace pascaline
