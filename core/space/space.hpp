#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/composite_type.hpp"
#include "core/config.hpp"
#include "core/device/device_limits.hpp"
#include "core/problem.hpp"
#include "core/space/expression.hpp"
#include "core/space/performance_model.hpp"

namespace pascaline {

/// A tunable parameter: its values in order and how the compiler is told.
struct Parameter {
  std::string name;
  std::string description;
  std::vector<Value> values;
  std::size_t default_index = 0;
  /// Empty: a macro `-DNAME=value`. Otherwise a compiler option the value is appended to, e.g. `--maxrregcount=`.
  std::string option;
  /// With `option`: the value at which the option is left away.
  std::optional<Value> omit;
};

/// A condition every valid configuration meets.
struct Constraint {
  Expression require;
  std::string reason;  ///< shown to whoever broke it
};

/// One dimension of a problem.
struct Dimension {
  std::string name;
  std::string description;
  bool fixed = false;   ///< must be equal for a tuned result to be reused (e.g. a head dimension)
  bool varies = false;  ///< differs from call to call of one program (e.g. the tokens of a prompt)
  std::int64_t minimum = 1;
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
  std::int64_t example = 1024;              ///< a typical value, used where no problem is given
  std::optional<Expression> default_value;  ///< over the dimensions before it; taken where a problem does not name it
  /// Where a kernel does as much for larger values, which only make buffers larger: the largest that is measured.
  std::optional<Expression> measured_at_most;
};

/// A type variable and the element types it may stand for; the macro of that name is bound to the type's name.
struct TypeVariable {
  std::string name;
  std::vector<ElementType> allowed;
  std::optional<std::size_t> like;  ///< where a problem does not name it, it has the type of this earlier variable
};

/// An integer macro computed from parameters and the problem (e.g. whether rows are aligned).
struct DerivedMacro {
  std::string name;
  Expression value;
};

enum class ArgumentKind : std::uint8_t { buffer, scalar };
enum class Access : std::uint8_t { in, out, inout, scratch };
enum class Fill : std::uint8_t { none, zero, uniform, normal, ramp, row_ramp, constant, sorted, permutation };

/// How an output is compared with what it must be: element by element, sorted, or by the sum of its elements.
enum class Comparison : std::uint8_t { each, any_order, sum };

/// How a kernel reads an input buffer through a texture object: with `tex1Dfetch`, or with `tex2D` where the buffer is
/// a matrix.
struct TextureUse {
  bool interpolates = false;      ///< tex2D averages the four nearest elements, weighted by distance
  bool zero_outside = false;      ///< tex2D gives 0 outside, not the nearest element
  bool unit_coordinates = false;  ///< tex2D's coordinates are from 0 to 1
  bool unit_values = false;       ///< integers are read as floats: from 0 to 1, signed ones from -1 to 1
};

/// One argument of the launched functions, in the order of their parameters where there is one function, or a variable
/// of the kernel's file that a launch needs.
struct Argument {
  std::string name;
  ArgumentKind kind = ArgumentKind::buffer;
  std::string type_variable;                ///< name of a type variable, or empty for a fixed type
  ElementType type = ElementType::float32;  ///< used if type_variable is empty
  Access access = Access::in;               ///< buffers
  std::string symbol;                       ///< of a buffer: the variable of the file that it is copied to; else empty
  bool passed = true;                       ///< the function has a parameter for it
  std::optional<TextureUse> texture;        ///< of a buffer: the parameter is a texture object over it, not its address
  Expression value;                         ///< buffer: extent in elements; scalar: its value
  std::optional<Expression> columns;        ///< of a buffer that is a matrix, which formats of matrices must be
  Fill fill = Fill::none;
  double low = -1.0;                       ///< uniform, sorted, ramps: lower end; normal: mean; constant: the value
  double high = 1.0;                       ///< uniform, sorted, ramps: upper end; normal: standard deviation
  std::optional<Expression> low_value;     ///< replaces `low`
  std::optional<Expression> high_value;    ///< replaces `high`
  Comparison compare = Comparison::each;   ///< outputs
  std::string mask;                        ///< of an output: the input that is 0 where any result is right; else empty
  std::optional<double> number;            ///< of a scalar that is not a whole number: its value, instead of `value`
  std::optional<CompositeType> composite;  ///< of a buffer or scalar of these instead of `type`
  /// The value or fill of each member of `composite`; empty for a buffer of vectors that is filled as one of numbers of
  /// `type`.
  std::vector<Argument> members;
};

/// Tells whether the argument is a buffer whose numbers differ in type or fill, or have gaps between them.
[[nodiscard]] bool is_mixed(const Argument& argument) noexcept;

/// Whether the argument is a buffer whose contents the kernel is given.
[[nodiscard]] bool is_input(const Argument& argument) noexcept;
/// Whether the argument is a buffer whose contents are a result.
[[nodiscard]] bool is_output(const Argument& argument) noexcept;

/// A function of the kernel's file, its launch geometry and its arguments.
struct Launch {
  std::string function;  ///< its name, or an expression: "app::kernel<TILE, float>" (why_no_function)
  std::array<Expression, 3> block;
  std::array<Expression, 3> grid;
  Expression shared_bytes;             ///< dynamic shared memory
  std::vector<std::size_t> arguments;  ///< of the space's that are passed, in the order of its parameters
};

/// What a result is compared with.
struct Reference {
  std::optional<Launch> kernel;  ///< naive kernel in the same file with the same arguments, outputs in float64
  bool by_default = false;       ///< instead: what the kernel itself gives in its default configuration
  /// The naive kernel's further arguments, after the others: float64 scratch for results between, if it has some, and
  /// how far each element of the output `slack` may be off besides the tolerance, if that is named.
  std::optional<Argument> workspace;
  std::string slack;
};

/// How the elements of the outputs are summed, from which follows how far rounding may take them.
struct Summation {
  Expression terms;                      ///< numbers added one after the other for an element
  std::vector<std::size_t> of;           ///< arguments of which a term is the product; empty: not told
  std::optional<Expression> product_of;  ///< sums that are multiplied for an element; absent: 1
  bool positive = false;                 ///< no term is negative: nothing cancels
  std::optional<ElementType> type;       ///< added up in; absent: float64 for outputs of that type, else float32
};

/// Launch geometry in numbers.
struct Geometry {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  [[nodiscard]] std::uint32_t threads() const noexcept { return block[0] * block[1] * block[2]; }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// What the defaults are for devices of one compute capability, for all problems or some, or of any for some.
struct ArchitectureDefaults {
  static constexpr std::int64_t kAny = -1;
  std::int64_t compute_capability = 0;  ///< ten times the major and the minor number, or kAny
  std::optional<Expression> condition;  ///< that a problem must meet, over dimensions, types and device limits
  std::vector<std::uint16_t> indices;   ///< of each parameter's value

  /// As "sm_61", "sm_61 if M > 64" or "any device if M > 64".
  [[nodiscard]] std::string name() const;
};

/// What a search begins with, after the default, on devices of one compute capability.
struct ArchitecturePortfolio {
  std::int64_t compute_capability = 0;              ///< ten times the major and the minor number
  std::vector<std::vector<std::uint16_t>> members;  ///< of each, the indices of the parameters' values

  /// As "sm_61".
  [[nodiscard]] std::string architecture() const { return "sm_" + std::to_string(compute_capability); }
};

/// Says that a problem's operations are dp4a's, not float32's. `arithmetic` is a space's: "int8", "float32", or a type
/// variable, whose packed formats are multiplied as integers.
[[nodiscard]] bool is_int8_work(std::string_view arithmetic, const Problem& problem);

/// A kernel's search space, read from `search_spaces/NAME.json`. Immutable once parsed.
struct Space {
  std::string kernel;  ///< stem of the .cu and of the .json
  std::string description;
  std::string file;                  ///< where it was read from, for messages
  std::string json;                  ///< canonical text
  std::string hash;                  ///< of `json`
  std::vector<std::string> include;  ///< folders in which headers are looked for, relative to that of `file`
  std::vector<std::string> sources;  ///< likewise, files compiled before the kernel's, or around it if it is among them
  std::vector<Dimension> dimensions;
  std::vector<TypeVariable> types;
  std::vector<CompositeType> structs;
  std::vector<Parameter> parameters;
  std::vector<ArchitectureDefaults> defaults;         ///< where they differ from the parameters'; the first that fits
  std::vector<std::vector<std::uint16_t>> portfolio;  ///< indices of the configurations a search begins with
  std::vector<ArchitecturePortfolio> portfolios;      ///< of architectures that have their own
  std::vector<Constraint> constraints;
  std::vector<DerivedMacro> derived;
  std::vector<std::string> options;  ///< of the compiler, with every configuration
  std::vector<Argument> arguments;
  std::vector<Launch> launches;  ///< at least one; several are a pipeline, launched in this order
  Reference reference;
  std::vector<std::pair<ElementType, double>> tolerances;  ///< per element type of an output
  double error_floor = 0;  ///< least scale of an error: an output whose values may all be small by chance
  std::optional<Expression> tolerance_factor;  ///< of a problem: the tolerances are that many times as large
  std::optional<Summation> summation;          ///< of the outputs' elements, where the file tells
  Expression flops;
  Expression bytes;
  std::string arithmetic = "float32";     ///< of its operations: `is_int8_work` reads it
  std::optional<PerformanceModel> model;  ///< absent: the file has no such section
  Symbols symbols;                        ///< parameters, then dimensions, then types (their size), then device limits

  /// Reads and checks a file; throws SpaceError with file and JSON pointer.
  static Space load(const std::filesystem::path& file);
  /// Reads and checks a text; `name` stands for the file in messages.
  static Space parse(std::string_view text, const std::string& name);

  /// Types that an argument, or a member of it, may have.
  [[nodiscard]] std::vector<ElementType> types_of(const Argument& argument) const;
  /// The general default, which is no architecture's own: what runs on a device is `default_config` of its limits.
  [[nodiscard]] Config general_default() const;
  /// The default for such devices that asks nothing of the problem; where the file has none of their own, the general
  /// one. That of a problem: BoundSpace::default_config.
  [[nodiscard]] Config default_config(const DeviceLimits& limits) const;
  /// Index of each parameter's value in it.
  [[nodiscard]] std::vector<std::uint16_t> default_indices(const DeviceLimits& limits) const;
  /// What a search on such devices begins with after the default, the most useful first: their own portfolio, or where
  /// the file has none, the general one. Some may be invalid for a problem.
  [[nodiscard]] std::vector<Config> portfolio_for(const DeviceLimits& limits) const;
  /// The configuration with the value index of each parameter.
  [[nodiscard]] Config config_at(std::span<const std::uint16_t> indices) const;
  /// Index of each parameter's value; throws Error naming parameter and value if `config` is not of this space.
  [[nodiscard]] std::vector<std::uint16_t> indices_of(const Config& config) const;
  /// Checks dimensions, types and names; throws Error saying what is wrong.
  void check(const Problem& problem) const;
  /// A problem of this space from name=value pairs in any order (types too). A dimension with a default and a type that
  /// is like another may be left out; so may any type, which is then the first allowed. Throws Error.
  [[nodiscard]] Problem problem(const std::vector<std::pair<std::string, std::string>>& values) const;
  /// Value of a dimension that a problem does not name, given the ones before it; throws Error if it has none.
  [[nodiscard]] std::int64_t default_dimension(std::size_t index,
                                               std::span<const std::pair<std::string, std::int64_t>> earlier) const;
  /// Type of a variable that a problem does not name, given the ones before it.
  [[nodiscard]] ElementType default_type(std::size_t index,
                                         std::span<const std::pair<std::string, ElementType>> earlier) const;
  /// The problem of every dimension's default or else example value and each type's default.
  [[nodiscard]] Problem example_problem() const;
  /// Product of the parameters' value counts.
  [[nodiscard]] double raw_size() const noexcept;
  /// Largest relative error allowed of an output of that type, what a problem adds to it apart; throws SpaceError if
  /// the file gives none.
  [[nodiscard]] double tolerance(ElementType type) const;
};

/// A space bound to a problem and to device limits: everything that can be computed about its configurations.
class BoundSpace {
 public:
  /// `space` must outlive it; throws Error if the problem does not fit.
  BoundSpace(const Space& space, Problem problem, const DeviceLimits& limits);

  [[nodiscard]] const Space& space() const noexcept { return *space_; }
  [[nodiscard]] const Problem& problem() const noexcept { return problem_; }
  [[nodiscard]] const DeviceLimits& limits() const noexcept { return limits_; }

  /// The same for the problem that is run to measure this one: with the largest values of dimensions that are
  /// measured. Throws Error if one has none.
  [[nodiscard]] BoundSpace measured() const;

  /// The default for these limits and this problem, for which it may be invalid.
  [[nodiscard]] Config default_config() const { return space_->config_at(default_indices_); }
  /// Index of each parameter's value in it.
  [[nodiscard]] const std::vector<std::uint16_t>& default_indices() const noexcept { return default_indices_; }
  /// Why the configuration is invalid (constraint's reason, or a device limit); nothing if it is valid.
  [[nodiscard]] std::optional<std::string> why_invalid(const Config& config) const;
  /// Launch geometry; throws Error if an expression has no value or exceeds what a launch can take.
  [[nodiscard]] Geometry geometry(const Launch& launch, const Config& config) const;
  /// The same of each of the space's launches.
  [[nodiscard]] std::vector<Geometry> geometries(const Config& config) const;
  /// `-D` macros for the compiler, `NAME=value`: macro parameters, derived macros, types.
  [[nodiscard]] std::vector<std::string> defines(const Config& config) const;
  /// Compiler options: those of all configurations, then from option parameters.
  [[nodiscard]] std::vector<std::string> options(const Config& config) const;
  /// Numbers of a buffer, which of vectors and structures are several each, or the value of a scalar; throws Error if
  /// it has none or an extent is negative.
  [[nodiscard]] std::int64_t value(const Argument& argument, const Config& config) const;
  /// The type of an argument that is not mixed.
  [[nodiscard]] ElementType type_of(const Argument& argument) const;
  /// Columns of a buffer that is a matrix, 1 of any other; throws Error if its extent is not whole rows of them.
  [[nodiscard]] std::int64_t columns(const Argument& argument, const Config& config) const;
  /// Bytes of a buffer; throws as `value` and `columns`.
  [[nodiscard]] std::size_t buffer_bytes(const Argument& argument, const Config& config) const;
  /// Both ends (or mean and standard deviation) of what fills a buffer; throws Error if one has no value, or the
  /// lower one is above the other.
  [[nodiscard]] std::pair<double, double> fill_range(const Argument& argument) const;
  /// Largest relative error allowed of an output of that type in this problem, with what the rounding of its sums
  /// comes to; throws SpaceError if the file gives none, Error if an expression is below 1 or has no value.
  [[nodiscard]] double tolerance(ElementType type) const;
  /// Typical magnitude of an element, from the sums it is made of and what fills their terms; nothing if the file does
  /// not tell what is summed. Throws Error if an expression is below 1 or has no value.
  [[nodiscard]] std::optional<double> sum_magnitude() const;
  /// Operations of the problem, and the fewest bytes it must move, with the default configuration where they depend
  /// on parameters; throw Error if they have no value.
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;

  /// Slots of all symbols with the default configuration's parameters in front: base of an enumeration.
  [[nodiscard]] const std::vector<std::int64_t>& base_slots() const noexcept { return slots_; }
  /// Integer value behind each parameter's each value (0 for text and reals).
  [[nodiscard]] const std::vector<std::vector<std::int64_t>>& integer_values() const noexcept { return integers_; }

 private:
  [[nodiscard]] std::vector<std::int64_t> slots_of(const Config& config) const;
  // Of parameters; those of dimensions, types and limits must be there.
  [[nodiscard]] std::vector<std::uint16_t> find_default() const;
  [[nodiscard]] double at_least_one(const Expression& expression, const char* what) const;

  const Space* space_;
  Problem problem_;
  DeviceLimits limits_;
  std::vector<std::int64_t> slots_;
  std::vector<std::vector<std::int64_t>> integers_;
  std::vector<std::uint16_t> default_indices_;
};

}  // namespace pascaline
