#include "runtime/device/sm61/kernel_code.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/cubin_file.hpp"

namespace pascaline::sm61 {
namespace {

void check_architecture(const CubinFile& cubin) {
  if (!reads_architecture(cubin.sm())) {
    throw Error(fmt::format("the cubin is for sm_{}; machine code is read of sm_50 to sm_62 only", cubin.sm()));
  }
}

const CubinSection& code_of(const CubinFile& cubin, std::string_view function) {
  const CubinSection* code = cubin.find(fmt::format(".text.{}", function));
  if (code == nullptr) {
    throw Error(fmt::format("the cubin has no machine code of a kernel {}", clean_line(function)));
  }
  return *code;
}

KernelCode read(const CubinFile& cubin, const CubinSymbol& symbol, const CubinSection& code) {
  KernelCode kernel;
  kernel.name = symbol.name;
  kernel.registers = cubin.registers(code, symbol);
  kernel.shared_bytes = cubin.shared_bytes(symbol.name);
  kernel.local_bytes = cubin.local_bytes(symbol);
  kernel.instructions = decode(code.bytes);
  kernel.flow = find_control_flow(kernel.instructions);
  kernel.costs = loop_costs(kernel.instructions, kernel.flow);
  kernel.hottest = hottest_loop(kernel.flow, kernel.costs);
  return kernel;
}

}  // namespace

bool reads_architecture(int sm) noexcept { return sm >= 50 && sm <= 62; }

KernelCode read_kernel(std::string_view cubin, std::string_view function) {
  const CubinFile file(cubin);
  check_architecture(file);
  const CubinSection& code = code_of(file, function);
  const CubinSymbol* symbol = file.find_function(function);
  if (symbol == nullptr || !symbol->entry) {
    throw Error(fmt::format("the cubin has no kernel {}", clean_line(function)));
  }
  return read(file, *symbol, code);
}

std::vector<KernelCode> read_kernels(std::string_view cubin) {
  const CubinFile file(cubin);
  check_architecture(file);
  std::vector<KernelCode> kernels;
  std::uint64_t code_bytes = 0;
  for (const CubinSymbol* symbol : file.kernels()) {
    const CubinSection& code = code_of(file, symbol->name);
    code_bytes += code.bytes.size();
    if (code_bytes > cubin.size()) {
      throw Error("damaged cubin: its sections of code overlap; compile it again");
    }
    kernels.push_back(read(file, *symbol, code));
  }
  return kernels;
}

}  // namespace pascaline::sm61
