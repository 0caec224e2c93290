#include "model/checkpoint/weight_source.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "model/checkpoint/convert.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/stored_formats.hpp"

namespace pascaline {

WeightSource::WeightSource(std::vector<TensorSpec> tensors, Read read, Announce announce, StoredRows rows,
                           Announce forget, Where where)
    : tensors_(std::move(tensors)),
      read_(std::move(read)),
      announce_(std::move(announce)),
      rows_(std::move(rows)),
      forget_(std::move(forget)),
      where_(std::move(where)),
      taken_(tensors_.size()) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      throw Error(fmt::format("two tensors have the name {}", quoted_name(tensors_[i].name)));
    }
    parameters_ += tensors_[i].elements();
  }
}

std::size_t WeightSource::index_of(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    throw ModelError(fmt::format("the model has no tensor {}", quoted_name(name)));
  }
  return found->second;
}

const TensorSpec& WeightSource::take(std::string_view name) {
  const std::size_t index = index_of(name);
  if (taken_[index]) {
    throw ModelError(fmt::format("tensor {} was taken before; every tensor is used once", quoted_name(name)));
  }
  taken_[index] = true;
  return tensors_[index];
}

void WeightSource::require_all_taken() const {
  std::vector<std::string> left;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!taken_[i]) {
      left.push_back(tensors_[i].name);
    }
  }
  if (!left.empty()) {
    throw ModelError(fmt::format("{} of the model's {} tensors were not used: {}", left.size(), tensors_.size(),
                                 quoted_names(left)));
  }
}

void WeightSource::read(const TensorSpec& tensor, ElementType type, std::int64_t first,
                        std::span<std::byte> out) const {
  const std::size_t index = index_of(tensor.name);
  if (type != ElementType::float32 && type != ElementType::float16 && type != ElementType::bfloat16) {
    throw Error(fmt::format("weights are float32, float16 or bfloat16, not {}", name_of(type)));
  }
  const std::int64_t total = tensors_[index].elements();
  const auto count = static_cast<std::int64_t>(out.size() / size_of(type));
  if (out.size() % size_of(type) != 0 || first < 0 || first > total || count > total - first) {
    throw Error(fmt::format("{} bytes of {} from element {} on do not fit the {} elements of tensor {}", out.size(),
                            name_of(type), first, total, quoted_name(tensor.name)));
  }
  if (!has_values()) {
    throw ModelError(fmt::format("tensor {} has no values here", quoted_name(tensor.name)));
  }
  read_(index, type, first, out);
}

std::optional<WeightSource::Rows> WeightSource::rows(const TensorSpec& tensor) const {
  const std::size_t index = index_of(tensor.name);
  return rows_ ? rows_(index) : std::nullopt;
}

std::string WeightSource::where(const TensorSpec& tensor) const {
  const std::size_t index = index_of(tensor.name);
  return where_ ? where_(index) : fmt::format("tensor {}", quoted_name(tensor.name));
}

void WeightSource::announce(const TensorSpec& tensor) const {
  const std::size_t index = index_of(tensor.name);
  if (announce_) {
    announce_(index);
  }
}

void WeightSource::forget(const TensorSpec& tensor) const {
  const std::size_t index = index_of(tensor.name);
  if (forget_) {
    forget_(index);
  }
}

WeightSource checkpoint_weights(Checkpoint checkpoint) {
  // Shared because what a std::function holds must be copyable.
  const auto shared = std::make_shared<const Checkpoint>(std::move(checkpoint));
  return {shared->tensors(),
          [shared](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
            shared->read(index, type, first, out);
          },
          [shared](std::size_t index) { MappedFile::read_ahead(shared->stored(index).bytes); },
          [shared](std::size_t index) -> std::optional<WeightSource::Rows> {
            if (shared->is_transposed(index)) {
              return WeightSource::Rows{*shared->format(index), {}, {}, [shared, index](std::int64_t row, auto out) {
                                          shared->read_file_row(index, row, out);
                                        }};
            }
            const StoredTensor& tensor = shared->stored(index);
            if (tensor.type != StoredType::U8 || !shared->format(index)) {
              return std::nullopt;
            }
            return WeightSource::Rows{*shared->format(index), tensor.bytes, shared->order(index)};
          },
          [shared](std::size_t index) { shared->forget(index); },
          [shared](std::size_t index) { return shared->where(index); }};
}

}  // namespace pascaline
