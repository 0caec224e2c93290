#include "tests/tuner/kernels/naive_reference.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "runtime/dispatch/planner.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/problem_data.hpp"

namespace pascaline::testing {
namespace {

template <typename T>
void store_as(std::span<std::byte> to, T value) {
  std::memcpy(to.data(), &value, sizeof value);
}

void store_element(ElementType type, std::span<std::byte> to, double value) {
  switch (type) {
    case ElementType::float16:
      return store_as(to, half_from_float(static_cast<float>(value)));
    case ElementType::float32:
      return store_as(to, static_cast<float>(value));
    case ElementType::int8:
      return store_as(to, static_cast<std::int8_t>(value));
    case ElementType::int32:
      return store_as(to, static_cast<std::int32_t>(value));
    case ElementType::int64:
      return store_as(to, static_cast<std::int64_t>(value));
    default:
      throw Error("naive references are given no inputs of this type: " + std::string(name_of(type)));
  }
}

std::vector<std::byte> packed_matrix(ElementType format, std::size_t columns, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  const std::size_t rows = floats.size() / columns;
  const auto width = static_cast<std::int64_t>(columns);
  const std::size_t group_bytes = layout_of(format).group_bytes(width);
  std::vector<std::byte> packed(
      static_cast<std::size_t>(layout_of(format).bytes(static_cast<std::int64_t>(rows), width)));
  std::vector<std::byte> row(file_row_bytes(format, width));
  for (std::size_t i = 0; i < rows; ++i) {
    (void)quantize_row(format, std::span(floats).subspan(i * columns, columns), row);
    pack_row(format, row, width, static_cast<std::int64_t>(i % 32),
             std::span(packed).subspan(i / 32 * group_bytes, group_bytes));
  }
  return packed;
}

std::vector<std::byte> bytes_of_input(const BoundSpace& bound, const Config& config, const Argument& argument,
                                      std::vector<double> values) {
  const ElementType type = bound.type_of(argument);
  values.resize(static_cast<std::size_t>(bound.value(argument, config)));
  if (is_packed_format(type)) {
    return packed_matrix(type, static_cast<std::size_t>(bound.columns(argument, config)), values);
  }
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_element(type, std::span(bytes).subspan(i * size_of(type)), values[i]);
  }
  return bytes;
}

// With the reference's results of these inputs.
template <typename Use>
void compute_reference(const Problem& wanted, const std::vector<std::vector<double>>& inputs, const Use& use) {
  const Space space = Space::load(data_folder("search_spaces") / (wanted.kernel + ".json"));
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : wanted.dimensions) {
    if (std::any_of(space.dimensions.begin(), space.dimensions.end(),
                    [&, &given = name](const Dimension& dimension) { return dimension.name == given; })) {
      values.emplace_back(name, std::to_string(value));
    }
  }
  for (const auto& [name, type] : wanted.types) {
    values.emplace_back(name, name_of(type));
  }
  Device& device = shared_emulator();
  const BoundSpace bound(space, space.problem(values), device.info().limits);
  ProblemData data(device, bound, load_reference(device, bound));
  const Config config = untuned_config(bound);
  std::vector<std::vector<std::byte>> contents;
  for (const Argument& argument : space.arguments) {
    if (argument.kind == ArgumentKind::buffer && is_input(argument)) {
      const std::size_t next = contents.size();
      contents.push_back(
          bytes_of_input(bound, config, argument, next < inputs.size() ? inputs[next] : std::vector<double>()));
    }
  }
  data.set_inputs(std::move(contents));
  use(data);
}

}  // namespace

Device& shared_emulator() {
  static const std::unique_ptr<Device> device = open_device("emulator");
  return *device;
}

Binary compile_reference(const Device& device, const BoundSpace& bound) {
  const Space& space = bound.space();
  const CompileTarget plan = compile_target(device.info(), "");
  static CubinCache cache{std::filesystem::path(PASCALINE_TEST_CACHE)};
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / (space.kernel + ".cu"));
  const CompileRequest request =
      reference_request_of(space, compile_request(bound, untuned_config(bound), source, plan.kind, plan.architecture));
  const CompileResult compiled = cache.get(Toolchain::find(plan.architecture), request);
  if (!compiled.ok) {
    throw Error("the reference kernel does not compile: " + compiled.reason);
  }
  return compiled.binary;
}

Kernel load_reference(Device& device, const BoundSpace& bound) { return device.load(compile_reference(device, bound)); }

std::vector<std::vector<double>> reference_results(const Problem& problem,
                                                   const std::vector<std::vector<double>>& inputs) {
  std::vector<std::vector<double>> results;
  compute_reference(problem, inputs, [&](const ProblemData& data) { results = data.expected(); });
  return results;
}

bool reference_accepts(const Problem& problem, const std::vector<std::vector<double>>& inputs,
                       const std::vector<double>& results) {
  bool accepted = false;
  compute_reference(problem, inputs, [&](const ProblemData& data) {
    accepted = data.bounds()[0].compare(results, data.expected()[0]).within;
  });
  return accepted;
}

}  // namespace pascaline::testing
