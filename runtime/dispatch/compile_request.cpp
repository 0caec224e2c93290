#include "runtime/dispatch/compile_request.hpp"

#include <span>

namespace pascaline {
namespace {

LaunchedFunction launched_function(const BoundSpace& bound, const Launch& launch, const Config& config) {
  std::vector<LaunchedArgument> arguments;
  for (const std::size_t index : launch.arguments) {
    const Argument& argument = bound.space().arguments[index];
    using Role = LaunchedArgument::Role;
    if (argument.texture) {
      arguments.push_back({argument.name, Role::scalar, ElementType::uint64});
      continue;
    }
    const Role role = argument.kind == ArgumentKind::scalar ? Role::scalar
                      : argument.access == Access::scratch  ? Role::scratch
                      : is_output(argument)                 ? Role::output
                                                            : Role::input;
    arguments.push_back({argument.name, role, bound.type_of(argument), argument.composite});
  }
  return {launch.function, std::move(arguments), static_cast<std::int64_t>(bound.geometry(launch, config).threads())};
}

}  // namespace

CompileRequest compile_request(const BoundSpace& bound, const Config& config, const KernelSource& source,
                               BinaryKind kind, const std::string& architecture) {
  CompileRequest request;
  request.source = &source;
  request.defines = bound.defines(config);
  request.options = bound.options(config);
  request.kind = kind;
  request.architecture = architecture;
  const std::vector<Launch>& launches = bound.space().launches;
  LaunchedFunction first = launched_function(bound, launches.front(), config);
  request.function = std::move(first.function);
  request.arguments = std::move(first.arguments);
  request.threads = first.threads;
  for (const Launch& launch : std::span(launches).subspan(1)) {
    request.then.push_back(launched_function(bound, launch, config));
  }
  return request;
}

}  // namespace pascaline
