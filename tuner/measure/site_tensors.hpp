#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/ops/tensor.hpp"
#include "tuner/measure/input_drawing.hpp"

namespace pascaline {

/// Tensors of a site on a device: inputs and weights are drawn, the same for the same seed; what a site changes or
/// writes is kept apart, to be compared.
class SiteTensors {
 public:
  /// Both must outlive it. All that follow throw OutOfMemoryError and what the device throws.
  SiteTensors(DeviceMemory& memory, InputDrawing& drawing, std::uint64_t seed)
      : memory_(&memory), drawing_(&drawing), seed_(seed) {}

  /// Values from `low` to `high`, which a site only reads.
  [[nodiscard]] TensorView read(ElementType type, std::initializer_list<std::int64_t> extents, double low, double high);
  /// A linear layer's weight, by which values keep their magnitude.
  [[nodiscard]] TensorView weight(ElementType type, std::int64_t rows, std::int64_t columns);
  /// These values, int32.
  [[nodiscard]] TensorView integers(std::span<const std::int32_t> values, std::initializer_list<std::int64_t> extents);
  [[nodiscard]] TensorView floats(std::span<const float> values, std::initializer_list<std::int64_t> extents);
  /// Values that a site changes.
  [[nodiscard]] TensorView changed(const char* name, ElementType type, std::initializer_list<std::int64_t> extents,
                                   double low, double high);
  /// These values, which a site changes.
  [[nodiscard]] TensorView changed(const char* name, std::span<const float> values,
                                   std::initializer_list<std::int64_t> extents);
  /// What a site writes and does not read.
  [[nodiscard]] TensorView written(const char* name, std::initializer_list<std::int64_t> extents);
  /// float32; nothing of it counts afterwards.
  [[nodiscard]] TensorView scratch(std::initializer_list<std::int64_t> extents);

  /// Puts what a site changes back, and not-a-number into what it writes and into scratch.
  void restore();
  /// Results as they are now become those to be compared with.
  void keep_results();
  /// How the results differ from those kept.
  struct Difference {
    double error = 0;  ///< the largest, as a share of the largest value of its tensor
    std::string where;
    bool is_number = true;
  };
  [[nodiscard]] Difference difference() const;

 private:
  struct Result {
    std::string name;
    TensorView tensor;
    std::vector<std::byte> initial;  // empty: written only
    std::vector<double> kept;
  };

  TensorView allocate(ElementType type, std::initializer_list<std::int64_t> extents);
  TensorView kept_as_changed(const char* name, const TensorView& tensor);
  void draw(const TensorView& to, std::int64_t rows, std::int64_t columns, double low, double high);
  void upload(const TensorView& to, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<double> values_of(const TensorView& tensor) const;

  DeviceMemory* memory_;
  InputDrawing* drawing_;
  std::uint64_t seed_;
  std::vector<RawBuffer> buffers_;
  std::vector<Result> results_;
  std::vector<TensorView> scratch_;
};

}  // namespace pascaline
