#include "model/checkpoint/weight_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxParameters = 1'000'000'000'000;

}  // namespace

std::int64_t TensorSpec::elements() const noexcept { return element_count(shape); }

std::int64_t element_count(std::span<const std::int64_t> shape) noexcept {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return -1;
    }
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      return -1;
    }
  }
  return empty ? 0 : count;
}

std::int64_t WeightEntry::rows() const {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const TensorSpec& tensor) { return sum + tensor.shape.front(); });
}

std::int64_t WeightEntry::width() const { return tensors.front().elements() / tensors.front().shape.front(); }

VisionParts::VisionParts(const VisionConfig& config) {
  const auto& indexes = config.deepstack_indexes;
  std::size_t next = kEmbedding + 1;
  for (std::int64_t block = 0; block < config.depth; ++block) {
    blocks_.push_back(next++);
    if (std::find(indexes.begin(), indexes.end(), block) != indexes.end()) {
      deepstack_.push_back(next++);
    }
  }
  merger_ = next;
}

bool VisionParts::takes_merged(std::size_t part) const noexcept {
  return part == merger_ || std::find(deepstack_.begin(), deepstack_.end(), part) != deepstack_.end();
}

std::vector<WeightEntry> weight_table(const ModelConfig& config, ModelWeights& places) {
  return traits_of(config.family).table(config, places);
}

std::vector<TensorSpec> required_tensors(const ModelConfig& config) {
  ModelWeights unused;
  std::vector<TensorSpec> tensors;
  for (WeightEntry& entry : weight_table(config, unused)) {
    std::move(entry.tensors.begin(), entry.tensors.end(), std::back_inserter(tensors));
  }
  return tensors;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : required_tensors(config)) {
    const std::int64_t count = tensor.elements();
    if (count < 0 || __builtin_add_overflow(total, count, &total) || total > kMaxParameters) {
      throw ModelError(fmt::format("these sizes imply more than {} parameters", kMaxParameters));
    }
  }
  return total;
}

}  // namespace pascaline
