#include "runtime/dispatch/compile_request.hpp"

namespace pascaline {

CompileRequest compile_request(const BoundSpace& bound, const Config& config, const KernelSource& source,
                               BinaryKind kind, const std::string& architecture) {
  CompileRequest request;
  request.source = &source;
  request.function = bound.space().launch.function;
  request.defines = bound.defines(config);
  request.options = bound.options(config);
  request.kind = kind;
  request.architecture = architecture;
  return request;
}

}  // namespace pascaline
