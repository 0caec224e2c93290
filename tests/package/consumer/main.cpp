#include <cstdio>

#include "core/paths.hpp"
#include "core/problem.hpp"
#include "core/statistics.hpp"
#include "db/store.hpp"
#include "runtime/gpu/device.hpp"

int main() {
  const pascaline::Problem problem{.kernel = "matmul",
                                   .dimensions = {{"M", 1}, {"N", 2048}, {"K", 2048}},
                                   .types = {{"STORAGE", pascaline::ElementType::float32}}};
  if (problem.text() != "matmul M=1 N=2048 K=2048 STORAGE=float32") {
    std::printf("unexpected text: %s\n", problem.text().c_str());
    return 1;
  }
  const pascaline::Store store("consumer.db", pascaline::OpenMode::create);
  std::printf("%s, spaces in %s\n", problem.text().c_str(), pascaline::data_folder("search_spaces").c_str());
  return 0;
}
