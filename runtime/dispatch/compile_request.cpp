#include "runtime/dispatch/compile_request.hpp"

namespace pascaline {
namespace {

std::vector<LaunchedArgument> arguments_of(const BoundSpace& bound) {
  std::vector<LaunchedArgument> arguments;
  for (const Argument& argument : bound.space().arguments) {
    if (!argument.passed) {
      continue;
    }
    using Role = LaunchedArgument::Role;
    const Role role = argument.kind == ArgumentKind::scalar ? Role::scalar
                      : argument.access == Access::scratch  ? Role::scratch
                      : is_output(argument)                 ? Role::output
                                                            : Role::input;
    arguments.push_back({argument.name, role, bound.type_of(argument), argument.composite});
  }
  return arguments;
}

}  // namespace

CompileRequest compile_request(const BoundSpace& bound, const Config& config, const KernelSource& source,
                               BinaryKind kind, const std::string& architecture) {
  CompileRequest request;
  request.source = &source;
  request.function = bound.space().launch.function;
  request.defines = bound.defines(config);
  request.options = bound.options(config);
  request.kind = kind;
  request.architecture = architecture;
  request.arguments = arguments_of(bound);
  request.threads = static_cast<std::int64_t>(bound.geometry(bound.space().launch, config).threads());
  return request;
}

}  // namespace pascaline
