// C = A · Bᵀ by the fastest variant that a database knows: tuned_matmul [DEVICE [DATABASE]]
#include <cstdio>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "runtime/ops/matmul.hpp"

namespace {

constexpr std::int64_t kRows = 64;

void multiply(const char* id, const char* database) {
  using namespace pascaline;
  const auto device = open_device(id);
  DispatcherOptions options;
  if (database != nullptr) {
    options.database = database;
  }
  Dispatcher dispatcher(*device, options);

  const std::vector<float> ones(kRows * kRows, 1.0F);
  std::vector<float> result(ones.size());
  const Buffer a = device->allocate(sizeof(float) * ones.size());
  const Buffer b = device->allocate(sizeof(float) * ones.size());
  const Buffer c = device->allocate(sizeof(float) * result.size());
  device->upload(a, std::as_bytes(std::span(ones)));
  device->upload(b, std::as_bytes(std::span(ones)));

  const auto view = [](const Buffer& buffer) {
    return TensorView(buffer.data(), ElementType::float32, {kRows, kRows});
  };
  ops::run(dispatcher, ops::Matmul{view(a), view(b), view(c)});    // does not wait
  device->download(std::as_writable_bytes(std::span(result)), c);  // waits
  std::printf("%g\n", static_cast<double>(result[0]));
  for (const Miss& miss : dispatcher.misses()) {
    std::printf("%s is not tuned: %s\n", miss.problem.text().c_str(), miss.reason.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    multiply(argc > 1 ? argv[1] : "emulator", argc > 2 ? argv[2] : nullptr);
  } catch (const pascaline::Error& error) {
    std::fprintf(stderr, "tuned_matmul: %s\n", error.what());
    return 1;
  }
  return 0;
}
