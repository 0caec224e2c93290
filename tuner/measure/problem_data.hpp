#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error_bound.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "tuner/measure/readback.hpp"

namespace pascaline {

/// Buffers of one problem on a device, its drawn inputs, and what the outputs must be (in float64).
class ProblemData {
 public:
  /// Allocates the buffers; `reference` is the naive kernel to use, or an empty one to use the space's host
  /// reference. Throws Error if the space names a host reference that does not exist, CudaError or EmulatorError
  /// if memory is short.
  ProblemData(Device& device, const BoundSpace& space, Kernel reference);

  /// Draws fresh inputs and computes the reference again.
  void draw(std::uint64_t seed);
  /// How long the last `draw` took.
  [[nodiscard]] double draw_ms() const noexcept { return draw_ms_; }

  /// Fills every output with bytes that are NaN in every float type, and refills `inout` buffers with their inputs.
  void poison_outputs();
  /// Uploads the drawn contents of the inputs again.
  void restore_inputs();
  /// The largest error where all elements are within their bounds, or that of the element furthest beyond its own;
  /// ErrorBound says what both are. The device compares where it can and what the outputs must be is kept there; where
  /// it cannot, or any element is not within its bound by what the device says, the outputs are read back and compared
  /// here.
  struct Check {
    double max_error = 0;
    double tolerance = 0;  ///< of the element beyond its bound, 0 if there is none
    std::string where;     ///< of that element, "c[17]: 1.5 instead of 1.25", empty if there is none
    bool within = true;
    [[nodiscard]] bool passed() const noexcept { return within; }
  };
  [[nodiscard]] Check check_outputs();
  /// Frees what was kept on the device to compare outputs with, and keeps no more of it; false if there was none.
  bool free_expected();
  /// Name of a buffer whose guard band was written to, or what its results are compared with on the device, which is
  /// restored; empty if none.
  [[nodiscard]] std::string damaged_guard();
  /// Name of a buffer with access `in` that does not hold what was drawn any more, empty if none.
  [[nodiscard]] std::string changed_input();

  /// Device pointers of all buffers that are not scratch, by argument name.
  [[nodiscard]] const std::vector<NamedPointer>& buffers() const noexcept { return named_; }

 private:
  struct Slot {
    const Argument* argument = nullptr;
    ElementType type = ElementType::float32;
    std::size_t count = 0;
    std::int64_t columns = 1;  ///< of a matrix
    Buffer buffer;
    std::vector<std::byte> initial;        ///< drawn contents of in and inout buffers
    std::vector<double> expected;          ///< of out and inout buffers
    std::optional<Buffer> expected_there;  ///< the same on the device, if it compares
    std::uint64_t expected_checksum = 0;   ///< of `expected_there`
    std::vector<double> slack;             ///< of its elements, where the reference has some; `bound` takes it
    std::optional<ErrorBound> bound;
    std::uint64_t checksum = 0;  ///< of `initial` on the device
  };

  void keep_expected(Slot& slot, bool is_there);
  [[nodiscard]] ErrorBound::Verdict compare(const Slot& slot);
  void reference_on_device();
  void reference_on_host();

  Device* device_;
  const BoundSpace* space_;
  Kernel reference_;
  std::vector<Slot> slots_;
  std::vector<NamedPointer> named_;
  Readback readback_;
  bool keeps_expected_ = true;
  double draw_ms_ = 0;
};

}  // namespace pascaline
