#include <cstdio>

#include "core/problem.hpp"
#include "core/util/paths.hpp"
#include "core/util/statistics.hpp"
#include "db/store.hpp"
#include "model/session/session.hpp"

int main() {
  const pascaline::Problem problem{.kernel = "matmul",
                                   .dimensions = {{"M", 1}, {"N", 2048}, {"K", 2048}},
                                   .types = {{"STORAGE", pascaline::ElementType::float32}}};
  if (problem.text() != "matmul M=1 N=2048 K=2048 STORAGE=float32") {
    std::printf("unexpected text: %s\n", problem.text().c_str());
    return 1;
  }
  const pascaline::Store store("consumer.db", pascaline::OpenMode::create);
  pascaline::ModelSessionOptions nowhere;
  nowhere.model = "no such folder";
  try {
    const pascaline::ModelSession session(nowhere);
    return 1;
  } catch (const pascaline::Error& error) {
    std::printf("%s\n", error.what());
  }
  std::printf("%s, spaces in %s\n", problem.text().c_str(), pascaline::data_folder("search_spaces").c_str());
  return 0;
}
