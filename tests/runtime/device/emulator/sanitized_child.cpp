#include <cstdio>

#include "support.hpp"

// The program that sanitizer_test.cpp runs under AddressSanitizer: sanitized_child FUNCTION INDEX runs that kernel of
// sanitized.cu with the index; `guards` checks guard bands instead.
namespace pascaline::testing {
namespace {

int run_kernel(const std::string& function, int index) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "sanitized.cu", function, true);
  const Buffer data = to_device(*device, std::vector<int>(101, 1));
  run(*device, kernel, {{20, 1, 1}, {96, 1, 1}, 96 * 4}, data.data(), index);
  std::printf("result %d\n", to_host<int>(*device, data)[100]);
  return 0;
}

int check_guards() {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "beyond");
  const Buffer data = device->allocate(10 * 4);
  const bool before = device->guards_intact(data);
  run(*device, kernel, {}, data.data(), 10);
  const bool after = device->guards_intact(data);
  std::printf("intact %d then %d then %d\n", before, after, device->guards_intact(data));
  return 0;
}

int deadlock_then_work() {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "sanitized.cu", "deadlock", true);
  const Buffer data = device->allocate(404);
  try {
    run(*device, kernel, {{1, 1, 1}, {96, 1, 1}, 0}, data.data(), 0);
  } catch (const EmulatorError& error) {
    std::printf("%s\n", error.what());
  }
  return run_kernel("correct", 0);
}

}  // namespace
}  // namespace pascaline::testing

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: sanitized_child FUNCTION INDEX\n");
    return 2;
  }
  const std::string function = arguments[1];
  if (function == "guards") {
    return pascaline::testing::check_guards();
  }
  return function == "deadlock" ? pascaline::testing::deadlock_then_work()
                                : pascaline::testing::run_kernel(function, std::atoi(arguments[2]));
}
