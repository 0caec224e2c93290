#include "core/space/settings_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline {

Value read_value(const JsonNode& node) {
  if (node.value().is_boolean()) {
    return node.boolean();
  }
  if (node.value().is_number_integer()) {
    return node.integer();
  }
  if (node.value().is_number_float()) {
    return node.real();
  }
  return node.name();
}

std::size_t read_value_index(const JsonNode& node, const Parameter& parameter) {
  const Value wanted = read_value(node);
  const auto at = std::find(parameter.values.begin(), parameter.values.end(), wanted);
  if (at == parameter.values.end()) {
    node.fail(fmt::format("{} is not among the values of '{}'", to_text(wanted), parameter.name));
  }
  return static_cast<std::size_t>(at - parameter.values.begin());
}

std::vector<std::uint16_t> read_settings(const JsonNode& node, const std::vector<Parameter>& parameters,
                                         std::vector<std::uint16_t> base) {
  for (const std::string& name : node.keys()) {
    const auto parameter =
        std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& known) { return known.name == name; });
    if (parameter == parameters.end()) {
      node.at(name).fail("is not a parameter");
    }
    base[static_cast<std::size_t>(parameter - parameters.begin())] =
        static_cast<std::uint16_t>(read_value_index(node.at(name), *parameter));
  }
  return base;
}

DeviceLimits read_architecture(const JsonNode& node, const std::string& architecture) {
  const auto limits = limits_of_architecture(architecture);
  if (!limits) {
    node.fail(fmt::format("is not an architecture of code; it is one of {}", known_architectures()));
  }
  return *limits;
}

}  // namespace pascaline
