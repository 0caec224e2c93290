#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/error_bound.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "tuner/measure/given_data.hpp"
#include "tuner/measure/input_drawing.hpp"
#include "tuner/measure/readback.hpp"
#include "tuner/measure/reference_run.hpp"

namespace pascaline {

/// The reference of a problem gives nothing to compare results with.
class ReferenceError : public Error {
 public:
  using Error::Error;
};

/// Bytes that fill outputs and scratch before a launch. The first is NaN in every floating-point type, but may be an
/// integer's right value, as NaN may be: what still passes is launched again with the second.
inline constexpr std::array<std::uint8_t, 2> kPoisons{0xFF, 0x3C};

/// Throws ReferenceError if the reference cannot be launched with its configuration.
void require_reference_fits(const BoundSpace& space, const ReferenceRun& reference);

/// Buffers of one problem on a device, its drawn inputs, and what the outputs must be (in float64).
class ProblemData {
 public:
  /// Allocates the buffers; `reference` is the code that results are compared with, a kernel a launch, launched with
  /// `baseline`, and
  /// `drawing` that of the kernel that draws inputs, if the device is to. Contents that are `given` are neither drawn
  /// nor computed. Throws OutOfMemoryError, before anything is allocated, if the problem needs more memory than is
  /// available, CudaError or EmulatorError.
  ProblemData(Device& device, const BoundSpace& space, std::vector<Kernel> reference, Config baseline,
              const std::optional<Binary>& drawing = std::nullopt, GivenData given = {});
  /// The same for a reference of one launch, with the untuned configuration as the baseline.
  ProblemData(Device& device, const BoundSpace& space, Kernel reference);

  /// Draws fresh inputs and computes the reference again. Throws ReferenceError if that leaves an element of an `out`
  /// buffer unwritten, computes one from memory that was never written, or changes no output at all.
  void draw(std::uint64_t seed);
  /// The same with these contents of the inputs, in the order of the arguments.
  void set_inputs(std::vector<std::vector<std::byte>> inputs);
  /// Returns true if an input is drawn, so that another seed gives others.
  [[nodiscard]] bool draws() const;
  /// How long the last `draw` took.
  [[nodiscard]] double draw_ms() const noexcept { return draw_ms_; }

  /// Fills every output with that byte, and refills `inout` buffers with their inputs.
  void poison_outputs(std::uint8_t poison = kPoisons.front());
  /// Whether an element that still holds the first poison could be taken for a right one.
  [[nodiscard]] bool poison_may_pass() const noexcept { return poison_may_pass_; }
  /// A sentence for each output that a kernel could fill with one value and be right: the reference has the same
  /// everywhere, or the tolerance is too large. It says nothing of the shape.
  [[nodiscard]] std::vector<std::string> weak_checks() const;
  /// Puts the drawn contents of the inputs back where they have changed.
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
  /// Elements of each output as they are compared (Argument::compare), in the order of the arguments.
  using Results = std::vector<std::vector<double>>;
  [[nodiscard]] Results outputs();
  /// The same of the reference, and how far each element may be off.
  [[nodiscard]] Results expected() const;
  [[nodiscard]] std::vector<ErrorBound> bounds() const;
  /// Whether the outputs are as near to these as they would have to be to a reference's.
  [[nodiscard]] bool agrees_with(const Results& others);
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
    std::span<const std::byte> given;      ///< of an input whose contents are
    std::span<const std::byte> answer;     ///< of an output whose contents are
    DrawnMatrix drawn;                     ///< of in and inout buffers
    std::vector<std::byte> initial;        ///< instead, if they were set; of inout buffers also to upload them faster
    std::vector<double> expected;          ///< of out and inout buffers, as they are compared
    std::vector<bool> mask;                ///< of their elements, those that count; empty: all
    std::optional<Buffer> expected_there;  ///< the same on the device, if it compares
    std::uint64_t expected_checksum = 0;   ///< of `expected_there`
    std::vector<double> slack;             ///< of its elements, where the reference has some; `bound` takes it
    std::optional<ErrorBound> bound;
    std::uint64_t checksum = 0;  ///< of an input on the device
  };

  void refill(const Slot& slot);
  [[nodiscard]] std::vector<std::byte> contents(const Slot& slot);
  // These are about what the reference leaves in place of an output.
  [[nodiscard]] std::size_t result_bytes(const Slot& slot) const;
  [[nodiscard]] std::vector<double> result_values(const Slot& slot, std::span<const std::byte> bytes) const;
  [[nodiscard]] std::vector<double> poisoned_result(const Slot& slot, std::uint8_t poison) const;
  void keep_expected(Slot& slot, bool is_there);
  [[nodiscard]] ErrorBound::Verdict compare(const Slot& slot);
  // What it leaves in the outputs, which `results` stand for, where they and scratch held that poison.
  struct MoreBuffers;
  [[nodiscard]] Results launch_reference(LaunchArguments& arguments, std::vector<Buffer>& results, MoreBuffers& more,
                                         std::uint8_t poison);
  void require_written(const Results& first, const Results& second) const;
  void require_changes();
  [[nodiscard]] std::string reference_text() const;
  [[nodiscard]] static bool accepts(const Slot& slot, double value);
  [[nodiscard]] static bool accepts_everywhere(const Slot& slot, double value);
  void use_inputs();
  void read_masks();
  void take_answers();
  static void leave_out_masked(const Slot& slot, std::vector<double>& values);
  [[nodiscard]] static std::vector<double> compared(const Slot& slot, std::vector<double> values);
  void compute_reference();
  [[nodiscard]] bool reference_is_itself() const noexcept { return space_->space().reference.by_default; }

  Device* device_;
  const BoundSpace* space_;
  std::vector<Kernel> reference_;  ///< of each launch
  Config baseline_;                ///< which the reference is launched with
  InputDrawing drawing_;
  GivenData given_;
  std::vector<Slot> slots_;
  bool poison_may_pass_ = false;
  std::vector<NamedPointer> named_;
  Readback readback_;
  bool keeps_expected_ = true;
  double draw_ms_ = 0;
};

}  // namespace pascaline
