#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/checkpoint/weight_source.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/formats/float16x.hpp"

namespace pascaline {

/// Heads of `size` elements that are filled up with zeros to `padded`: each quarter of a head at the beginning of one
/// of these. Of the first `paired` heads the elements of the first and the second half then take turns.
struct HeadLayout {
  std::int64_t size = 0;
  std::int64_t padded = 0;
  std::int64_t width = 1;  ///< values of an element of a head
  std::int64_t paired = 0;
};

/// A part of the device's memory, and the tensors that it is filled from.
struct WeightUpload {
  DeviceSpan to;
  std::vector<const TensorSpec*> from;  ///< rows of these in turn
  ElementType type = ElementType::float32;
  std::optional<HeadLayout> heads;  ///< then of one tensor
  WeightLayout layout = WeightLayout::stacked;
  std::int64_t rows = 0;   ///< of a matrix in a format
  std::int64_t width = 0;  ///< likewise
  bool in_host = false;    ///< `to` is the host's memory
};

/// Fills an upload piece by piece. One thread uses it; both arguments must outlive it.
class UploadFiller {
 public:
  /// Of a matrix in float16x this reads all of it, to choose exponent width and bias by the least squared error over
  /// all of its tensors, unless these are stored in one such format already. Throws as `operator()`.
  UploadFiller(const WeightSource& source, const WeightUpload& upload);
  /// Writes what `piece` holds of the upload, beginning at its byte `offset`. Throws ModelError, of the source and with
  /// tensor and row of a value that its format cannot hold.
  void operator()(std::span<std::byte> piece, std::size_t offset) const;

 private:
  const WeightSource* source_;
  const WeightUpload* upload_;
  Float16x float16x_;  // of a matrix in that format
};

}  // namespace pascaline
