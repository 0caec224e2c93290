#include "runtime/ops/launch.hpp"

#include <array>

#include "core/error.hpp"

namespace pascaline::ops {
namespace {

constexpr std::size_t kMaxDimensions = 16;
constexpr std::size_t kMaxTypes = 4;

Problem problem_of(std::string_view kernel, std::span<const NamedDimension> dimensions,
                   std::span<const NamedType> types) {
  Problem problem;
  problem.kernel = kernel;
  for (const auto& [name, value] : dimensions) {
    problem.dimensions.emplace_back(name, value);
  }
  for (const auto& [name, type] : types) {
    problem.types.emplace_back(name, type);
  }
  return problem;
}

}  // namespace

void launch(Dispatcher& dispatcher, KernelName kernel, std::span<const NamedDimension> dimensions,
            std::span<const NamedType> types, std::span<void* const> buffers) {
  if (dimensions.size() > kMaxDimensions || types.size() > kMaxTypes) {
    throw Error("a problem has too many dimensions or types; raise the limits in runtime/ops/launch.cpp");
  }
  std::array<std::int64_t, kMaxDimensions> values;  // as many as there are dimensions
  std::array<ElementType, kMaxTypes> elements;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    values[i] = dimensions[i].value;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    elements[i] = types[i].type;
  }
  const Prepared* prepared =
      dispatcher.find(dispatcher.kernel(kernel), std::span<const std::int64_t>(values).first(dimensions.size()),
                      std::span<const ElementType>(elements).first(types.size()));
  if (prepared == nullptr) {
    prepared = &dispatcher.prepare(problem_of(kernel.text(), dimensions, types));
  }
  dispatcher.launch(*prepared, buffers);
}

}  // namespace pascaline::ops
