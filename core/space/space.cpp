#include "core/space/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/argument_error.hpp"
#include "core/data_hash.hpp"
#include "core/error.hpp"
#include "core/space/enumeration.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

// Beyond the memory of any device, and small enough that sizes in bytes are added without overflow.
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 46;

std::string device_limit_problem(const Geometry& geometry, const DeviceLimits& limits) {
  // Each alone first: three large factors could wrap around to a small product.
  const bool each_fits = std::all_of(geometry.block.begin(), geometry.block.end(),
                                     [&](std::uint32_t size) { return size <= limits.max_threads_per_block; });
  if (!each_fits || geometry.threads() > limits.max_threads_per_block) {
    return fmt::format("a block of {} x {} x {} threads; the device allows {}", geometry.block[0], geometry.block[1],
                       geometry.block[2], limits.max_threads_per_block);
  }
  if (geometry.block[2] > kMaxBlockZ) {
    return fmt::format("a block of {} threads along z; devices allow {}", geometry.block[2], kMaxBlockZ);
  }
  if (geometry.shared_bytes > limits.max_shared_bytes_per_block) {
    return fmt::format("{} bytes of shared memory per block; the device has {}", geometry.shared_bytes,
                       limits.max_shared_bytes_per_block);
  }
  const std::array<std::int64_t, 3> most{limits.max_grid_x, limits.max_grid_y, limits.max_grid_z};
  for (std::size_t i = 0; i < 3; ++i) {
    if (geometry.grid[i] > most[i]) {
      return fmt::format("a grid of {} blocks in dimension {}; the device allows {}", geometry.grid[i], i, most[i]);
    }
  }
  return {};
}

std::uint32_t launch_number(const Expression& expression, std::span<const std::int64_t> slots, std::int64_t least,
                            const char* what) {
  const std::int64_t value = expression.evaluate(slots);
  if (value < least || value > std::numeric_limits<std::int32_t>::max()) {
    throw Error(fmt::format("{} '{}' is {}, not a number from {} to 2^31-1", what, expression.text(), value, least));
  }
  return static_cast<std::uint32_t>(value);
}

std::int64_t parse_integer(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) {
    throw ArgumentError(fmt::format("dimension {} is '{}', not an integer", name, text));
  }
  return value;
}

// The value given for `name`, removed from the list; nothing if absent.
std::optional<std::string> take(std::vector<std::pair<std::string, std::string>>& values, const std::string& name) {
  const auto at = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == name; });
  if (at == values.end()) {
    return std::nullopt;
  }
  std::string value = at->second;
  values.erase(at);
  return value;
}

// Throws Error for the first name that is neither a dimension nor an element type.
void check_names(const Space& space, const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> known;
  for (const Dimension& dimension : space.dimensions) {
    known.push_back(dimension.name);
  }
  for (const TypeVariable& variable : space.types) {
    known.push_back(variable.name);
  }
  for (const auto& [name, value] : values) {
    if (name != kDataName && std::find(known.begin(), known.end(), name) == known.end()) {
      throw ArgumentError(fmt::format("kernel '{}' has no dimension or type '{}'{}; it has {}", space.kernel, name,
                                      did_you_mean(name, known), fmt::join(known, ", ")));
    }
  }
}

std::string unknown_type_text(const TypeVariable& variable, const std::string& name) {
  std::vector<std::string> allowed;
  for (const ElementType type : variable.allowed) {
    allowed.emplace_back(name_of(type));
  }
  return fmt::format("unknown element type '{}' for {}{}; it may be {}", name, variable.name,
                     did_you_mean(name, allowed), fmt::join(allowed, ", "));
}

// Operations or bytes of a problem.
double amount(const Expression& expression, std::span<const std::int64_t> slots, const Problem& problem) {
  try {
    return static_cast<double>(expression.evaluate(slots));
  } catch (const Error& error) {
    throw ArgumentError(fmt::format("{} is not possible: {}", problem.text(), error.what()));
  }
}

// Of a buffer. The scales of a format of matrices take less than its values.
std::int64_t max_elements(ElementType type) {
  const std::int64_t bits = kMaxBufferBytes * (is_packed_format(type) ? 4 : 8);
  return bits / static_cast<std::int64_t>(bits_of(type));
}

std::int64_t numbers_of(const Argument& argument) {
  return argument.composite && argument.kind == ArgumentKind::buffer
             ? static_cast<std::int64_t>(argument.composite->members.size())
             : 1;
}

}  // namespace

std::vector<ElementType> Space::types_of(const Argument& argument) const {
  for (const TypeVariable& variable : types) {
    if (variable.name == argument.type_variable) {
      return variable.allowed;
    }
  }
  if (!argument.composite) {
    return {argument.type};
  }
  std::vector<ElementType> found;
  for (const CompositeType::Member& member : argument.composite->members) {
    if (std::ranges::find(found, member.type) == found.end()) {
      found.push_back(member.type);
    }
  }
  return found;
}

bool is_int8_work(std::string_view arithmetic, const Problem& problem) {
  return arithmetic == "int8" || std::ranges::any_of(problem.types, [&](const auto& type) {
           return type.first == arithmetic && is_packed_format(type.second);
         });
}

Config Space::general_default() const { return default_config({.compute_capability = 0}); }

std::string ArchitectureDefaults::name() const {
  const std::string device = compute_capability == kAny ? "any device" : fmt::format("sm_{}", compute_capability);
  return device + (condition ? " if " + condition->text() : "");
}

Config Space::default_config(const DeviceLimits& limits) const { return config_at(default_indices(limits)); }

std::vector<std::uint16_t> Space::default_indices(const DeviceLimits& limits) const {
  for (const ArchitectureDefaults& own : defaults) {
    if (own.compute_capability == limits.compute_capability && !own.condition) {
      return own.indices;
    }
  }
  std::vector<std::uint16_t> indices;
  indices.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    indices.push_back(static_cast<std::uint16_t>(parameter.default_index));
  }
  return indices;
}

std::vector<Config> Space::portfolio_for(const DeviceLimits& limits) const {
  const auto own = std::find_if(portfolios.begin(), portfolios.end(), [&](const ArchitecturePortfolio& known) {
    return known.compute_capability == limits.compute_capability;
  });
  std::vector<Config> configs;
  for (const std::vector<std::uint16_t>& indices : own == portfolios.end() ? portfolio : own->members) {
    configs.push_back(config_at(indices));
  }
  return configs;
}

Config Space::config_at(std::span<const std::uint16_t> indices) const {
  std::vector<Config::Setting> settings;
  settings.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    settings.emplace_back(parameters[i].name, parameters[i].values.at(indices[i]));
  }
  return Config(std::move(settings));
}

std::vector<std::uint16_t> Space::indices_of(const Config& config) const {
  std::vector<std::uint16_t> indices;
  for (const Parameter& parameter : parameters) {
    const Value* value = config.find(parameter.name);
    if (value == nullptr) {
      throw Error(
          fmt::format("the configuration gives no value for parameter '{}' of kernel '{}'", parameter.name, kernel));
    }
    const auto at = std::find(parameter.values.begin(), parameter.values.end(), *value);
    if (at == parameter.values.end()) {
      throw Error(fmt::format("{} is not among the values of parameter '{}' of kernel '{}'", to_text(*value),
                              parameter.name, kernel));
    }
    indices.push_back(static_cast<std::uint16_t>(at - parameter.values.begin()));
  }
  if (config.settings().size() != parameters.size()) {
    for (const auto& [name, value] : config.settings()) {
      if (std::none_of(parameters.begin(), parameters.end(), [&key = name](const auto& p) { return p.name == key; })) {
        throw Error(fmt::format("kernel '{}' has no parameter '{}'", kernel, name));
      }
    }
  }
  return indices;
}

void Space::check(const Problem& problem) const {
  if (problem.kernel != kernel) {
    throw ArgumentError(
        fmt::format("a problem of kernel '{}' does not belong to the space of '{}'", problem.kernel, kernel));
  }
  if (problem.dimensions.size() != dimensions.size() || problem.types.size() != types.size()) {
    throw ArgumentError(fmt::format("a problem of kernel '{}' needs {} dimensions and {} element types", kernel,
                                    dimensions.size(), types.size()));
  }
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto& [name, value] = problem.dimensions[i];
    if (name != dimensions[i].name) {
      throw ArgumentError(
          fmt::format("dimension {} of kernel '{}' is '{}', not '{}'", i, kernel, dimensions[i].name, name));
    }
    if (value < dimensions[i].minimum) {
      throw ArgumentError(fmt::format("dimension {} of kernel '{}' is {}, below its minimum {}", name, kernel, value,
                                      dimensions[i].minimum));
    }
    if (value > dimensions[i].maximum) {
      throw ArgumentError(fmt::format("dimension {} of kernel '{}' is {}, above its maximum {}", name, kernel, value,
                                      dimensions[i].maximum));
    }
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto& [name, type] = problem.types[i];
    const auto& allowed = types[i].allowed;
    if (name != types[i].name || std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
      throw ArgumentError(fmt::format("element type {}={} does not fit kernel '{}'", name, name_of(type), kernel));
    }
  }
}

Problem Space::problem(const std::vector<std::pair<std::string, std::string>>& values) const {
  check_names(*this, values);  // first, as a name that is misspelt leaves another without a value
  auto left = values;
  Problem problem;
  problem.kernel = kernel;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::string& name = dimensions[i].name;
    const auto text = take(left, name);
    problem.dimensions.emplace_back(name, text ? parse_integer(name, *text) : default_dimension(i, problem.dimensions));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TypeVariable& variable = types[i];
    const auto text = take(left, variable.name);
    const auto type = text ? element_type_from(*text) : std::optional(default_type(i, problem.types));
    if (!type) {
      throw ArgumentError(unknown_type_text(variable, *text));
    }
    problem.types.emplace_back(variable.name, *type);
  }
  problem.data = take(left, std::string(kDataName)).value_or("");
  if (!problem.data.empty() && !is_data_hash(problem.data)) {
    throw ArgumentError(fmt::format("{}={} is not a hash of contents", kDataName, problem.data));
  }
  if (!left.empty()) {
    throw ArgumentError(fmt::format("{} is given twice for a problem of kernel '{}'", left.front().first, kernel));
  }
  check(problem);
  return problem;
}

std::int64_t Space::default_dimension(std::size_t index,
                                      std::span<const std::pair<std::string, std::int64_t>> earlier) const {
  const Dimension& dimension = dimensions[index];
  if (!dimension.default_value) {
    throw ArgumentError(fmt::format("a problem of kernel '{}' needs dimension {}", kernel, dimension.name));
  }
  std::vector<std::int64_t> slots(parameters.size(), 0);
  for (const auto& [name, value] : earlier) {
    slots.push_back(value);
  }
  return dimension.default_value->evaluate(slots);
}

ElementType Space::default_type(std::size_t index, std::span<const std::pair<std::string, ElementType>> earlier) const {
  const TypeVariable& variable = types[index];
  return variable.like ? earlier[*variable.like].second : variable.allowed.front();
}

Problem Space::example_problem() const {
  Problem problem;
  problem.kernel = kernel;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Dimension& dimension = dimensions[i];
    problem.dimensions.emplace_back(
        dimension.name, dimension.default_value ? default_dimension(i, problem.dimensions) : dimension.example);
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    problem.types.emplace_back(types[i].name, default_type(i, problem.types));
  }
  return problem;
}

bool is_input(const Argument& argument) noexcept {
  return argument.kind == ArgumentKind::buffer && (argument.access == Access::in || argument.access == Access::inout);
}

bool is_mixed(const Argument& argument) noexcept {
  return argument.kind == ArgumentKind::buffer && !argument.members.empty();
}

bool is_output(const Argument& argument) noexcept {
  return argument.kind == ArgumentKind::buffer && (argument.access == Access::out || argument.access == Access::inout);
}

double Space::raw_size() const noexcept {
  double size = 1;
  for (const Parameter& parameter : parameters) {
    size *= static_cast<double>(parameter.values.size());
  }
  return size;
}

double Space::tolerance(ElementType type) const {
  for (const auto& [known, value] : tolerances) {
    if (known == type) {
      return value;
    }
  }
  throw SpaceError(file, "/tolerance", fmt::format("has no entry for element type {}", name_of(type)));
}

BoundSpace::BoundSpace(const Space& space, Problem problem, const DeviceLimits& limits)
    : space_(&space), problem_(std::move(problem)), limits_(limits) {
  space.check(problem_);
  slots_.resize(space.parameters.size());
  for (const auto& [name, value] : problem_.dimensions) {
    slots_.push_back(value);
  }
  for (const auto& [name, type] : problem_.types) {
    const auto of_type = type_slots(type);
    slots_.insert(slots_.end(), of_type.begin(), of_type.end());
  }
  for (const auto& [name, member] : limit_members()) {
    slots_.push_back(limits_.*member);
  }
  default_indices_ = find_default();
  for (std::size_t i = 0; i < default_indices_.size(); ++i) {
    std::vector<std::int64_t>& values = integers_.emplace_back();
    for (const Value& value : space.parameters[i].values) {
      values.push_back(integer_of(value));
    }
    slots_[i] = values[default_indices_[i]];
  }
}

BoundSpace BoundSpace::measured() const {
  Problem problem = problem_;
  for (std::size_t i = 0; i < problem.dimensions.size(); ++i) {
    const Dimension& dimension = space_->dimensions[i];
    std::int64_t& value = problem.dimensions[i].second;
    if (dimension.measured_at_most) {
      value = std::min(value, std::max(dimension.minimum, dimension.measured_at_most->evaluate(slots_)));
    }
  }
  return {*space_, std::move(problem), limits_};
}

std::vector<std::uint16_t> BoundSpace::find_default() const {
  for (const std::int64_t capability : {limits_.compute_capability, ArchitectureDefaults::kAny}) {
    const auto own = std::ranges::find_if(space_->defaults, [&](const ArchitectureDefaults& known) {
      return known.compute_capability == capability &&
             (!known.condition || known.condition->try_evaluate(slots_).value_or(0) != 0);
    });
    if (own != space_->defaults.end()) {
      return own->indices;
    }
  }
  return space_->default_indices({.compute_capability = 0});
}

std::vector<std::int64_t> BoundSpace::slots_of(const Config& config) const {
  const std::vector<std::uint16_t> indices = space_->indices_of(config);
  std::vector<std::int64_t> slots = slots_;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    slots[i] = integers_[i][indices[i]];
  }
  return slots;
}

std::optional<std::string> BoundSpace::why_invalid(const Config& config) const {
  const std::vector<std::int64_t> slots = slots_of(config);
  for (const Constraint& constraint : space_->constraints) {
    const auto value = constraint.require.try_evaluate(slots);
    if (!value || *value == 0) {
      return fmt::format("{} ({})", constraint.reason, constraint.require.text());
    }
  }
  try {
    for (const Launch& launch : space_->launches) {
      const std::string problem = device_limit_problem(geometry(launch, config), limits_);
      if (!problem.empty()) {
        return space_->launches.size() == 1 ? problem : fmt::format("{}: {}", launch.function, problem);
      }
    }
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

Geometry BoundSpace::geometry(const Launch& launch, const Config& config) const {
  const std::vector<std::int64_t> slots = slots_of(config);
  Geometry geometry;
  for (std::size_t i = 0; i < 3; ++i) {
    geometry.block[i] = launch_number(launch.block[i], slots, 1, "block size");
    geometry.grid[i] = launch_number(launch.grid[i], slots, 1, "grid size");
  }
  geometry.shared_bytes = launch_number(launch.shared_bytes, slots, 0, "shared memory");
  return geometry;
}

std::vector<Geometry> BoundSpace::geometries(const Config& config) const {
  std::vector<Geometry> geometries;
  for (const Launch& launch : space_->launches) {
    geometries.push_back(geometry(launch, config));
  }
  return geometries;
}

std::vector<std::string> BoundSpace::defines(const Config& config) const {
  const std::vector<std::int64_t> slots = slots_of(config);
  std::vector<std::string> defines;
  for (const Parameter& parameter : space_->parameters) {
    if (parameter.option.empty()) {
      defines.push_back(parameter.name + "=" + to_text(*config.find(parameter.name)));
    }
  }
  for (const DerivedMacro& macro : space_->derived) {
    defines.push_back(fmt::format("{}={}", macro.name, macro.value.evaluate(slots)));
  }
  for (const auto& [name, type] : problem_.types) {
    defines.push_back(fmt::format("{}={}", name, name_of(type)));
  }
  return defines;
}

std::vector<std::string> BoundSpace::options(const Config& config) const {
  const std::vector<std::uint16_t> indices = space_->indices_of(config);
  std::vector<std::string> options = space_->options;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Parameter& parameter = space_->parameters[i];
    const Value& value = parameter.values[indices[i]];
    if (!parameter.option.empty() && parameter.omit != value) {
      options.push_back(parameter.option + to_text(value));
    }
  }
  return options;
}

std::int64_t BoundSpace::value(const Argument& argument, const Config& config) const {
  const std::int64_t value = argument.value.evaluate(slots_of(config));
  if (argument.kind == ArgumentKind::buffer && value < 0) {
    throw Error(fmt::format("buffer '{}' of kernel '{}' has the extent {} ('{}') for {}", argument.name, space_->kernel,
                            value, argument.value.text(), problem_.text()));
  }
  const bool is_buffer = argument.kind == ArgumentKind::buffer;
  if (is_buffer &&
      value > (argument.composite ? kMaxBufferBytes / static_cast<std::int64_t>(argument.composite->bytes())
                                  : max_elements(type_of(argument)))) {
    throw Error(
        fmt::format("buffer '{}' of kernel '{}' has the extent {} ('{}') for {}, which is more than any device "
                    "holds; make the dimensions smaller or correct the extent in the search space",
                    argument.name, space_->kernel, value, argument.value.text(), problem_.text()));
  }
  return value * numbers_of(argument);
}

ElementType BoundSpace::type_of(const Argument& argument) const {
  return argument.type_variable.empty() ? argument.type : problem_.type(argument.type_variable);
}

std::int64_t BoundSpace::columns(const Argument& argument, const Config& config) const {
  if (!argument.columns) {
    return 1;
  }
  const std::int64_t columns = argument.columns->evaluate(slots_of(config));
  const std::int64_t extent = value(argument, config) / numbers_of(argument);
  if (columns < 1 || extent % columns != 0) {
    throw Error(fmt::format("buffer '{}' of {} has {} elements, which are no rows of {} columns", argument.name,
                            problem_.text(), extent, columns));
  }
  return extent == 0 ? columns : columns * numbers_of(argument);
}

std::size_t BoundSpace::buffer_bytes(const Argument& argument, const Config& config) const {
  const auto extent = static_cast<std::size_t>(value(argument, config));
  if (argument.composite) {
    return extent / argument.composite->members.size() * argument.composite->bytes();
  }
  const ElementType type = type_of(argument);
  if (!is_matrix_format(type)) {
    return bytes_of(type, extent);
  }
  const std::int64_t width = columns(argument, config);
  return static_cast<std::size_t>(layout_of(type).bytes(static_cast<std::int64_t>(extent) / width, width));
}

std::pair<double, double> BoundSpace::fill_range(const Argument& argument) const {
  const auto end = [&](const std::optional<Expression>& expression, double number) {
    return expression ? static_cast<double>(expression->evaluate(slots_)) : number;
  };
  const double low = end(argument.low_value, argument.low);
  const double high = end(argument.high_value, argument.high);
  if ((argument.fill == Fill::sorted || argument.fill == Fill::uniform) && !(low <= high)) {
    throw Error(fmt::format("buffer '{}' of {} fills from {} to {}, which is lower", argument.name, problem_.text(),
                            low, high));
  }
  return {low, high};
}

double BoundSpace::flops() const { return amount(space_->flops, slots_, problem_); }

double BoundSpace::bytes() const { return amount(space_->bytes, slots_, problem_); }

}  // namespace pascaline
