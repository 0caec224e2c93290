#include "tests/core/space/space_exercise.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"
#include "core/space/enumeration.hpp"

namespace pascaline::testing {
namespace {

// Calls what may have no value.
template <typename Call>
void allow_error(Call call) {
  try {
    call();
  } catch (const Error&) {
  }
}

Problem problem_of(const Space& space, std::int64_t size) {
  Problem problem;
  problem.kernel = space.kernel;
  for (const Dimension& dimension : space.dimensions) {
    problem.dimensions.emplace_back(dimension.name, std::clamp(size, dimension.minimum, dimension.maximum));
  }
  for (const TypeVariable& type : space.types) {
    problem.types.emplace_back(type.name, type.allowed.back());
  }
  return problem;
}

void exercise_config(const BoundSpace& bound, const Config& config) {
  const Space& space = bound.space();
  (void)bound.why_invalid(config);
  (void)bound.options(config);
  allow_error([&] { (void)bound.geometry(space.launches.front(), config); });
  allow_error([&] { (void)bound.defines(config); });
  for (const Argument& argument : space.arguments) {
    (void)bound.type_of(argument);
    allow_error([&] { (void)bound.fill_range(argument); });
    allow_error([&] { (void)bound.value(argument, config); });
    if (is_output(argument)) {
      for (const ElementType type : space.types_of(argument)) {
        allow_error([&] { (void)bound.tolerance(type); });
      }
    }
  }
  allow_error([&] { (void)bound.sum_magnitude(); });
  if (space.model) {
    std::vector<std::int64_t> slots = bound.base_slots();
    const std::vector<std::uint16_t> indices = space.indices_of(config);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      slots[i] = bound.integer_values()[i][indices[i]];
    }
    for (const auto& [key, member] : kModelMembers) {
      if (const auto& expression = (*space.model).*member) {
        (void)expression->try_evaluate(slots);
      }
    }
  }
}

void require(bool holds, const char* what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

}  // namespace

void exercise(const Space& space) {
  require(space.indices_of(space.general_default()).size() == space.parameters.size(), "the default is of its space");
  allow_error([&] { (void)space.example_problem(); });
  for (const std::int64_t size : {std::int64_t{96}, std::int64_t{1} << 40}) {
    const BoundSpace bound(space, problem_of(space, size), *limits_of_architecture("sm_61"));
    exercise_config(bound, space.general_default());
    allow_error([&] { (void)bound.measured(); });
    allow_error([&] { (void)bound.flops(); });
    allow_error([&] { (void)bound.bytes(); });
    if (space.raw_size() > 20'000) {
      continue;
    }
    Enumerator enumerator(bound);
    int left = 20;
    enumerator.for_each([&](std::span<const std::uint16_t> indices) {
      const Config config = space.config_at(indices);
      require(!bound.why_invalid(config), "what is enumerated is valid");
      exercise_config(bound, config);
      return --left > 0;
    });
  }
}

}  // namespace pascaline::testing
