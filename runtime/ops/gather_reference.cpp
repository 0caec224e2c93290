#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// `y[t] = table[indices[t]]`, zeros for an index that is no row; dimensions TOKENS, WIDTH, VOCABULARY.
void reference_gather(const Problem& problem, std::span<const std::vector<double>> inputs,
                      std::span<std::vector<double>> outputs) {
  const auto tokens = static_cast<std::size_t>(problem.dimension("TOKENS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const auto vocabulary = static_cast<double>(problem.dimension("VOCABULARY"));
  worker_pool().run(tokens, std::max<std::size_t>(1, 16'384 / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      const double index = inputs[1][token];
      double* y = outputs[0].data() + token * width;
      if (index >= 0 && index < vocabulary) {
        std::copy_n(inputs[0].data() + static_cast<std::size_t>(index) * width, width, y);
      } else {
        std::fill_n(y, width, 0.0);
      }
    }
  });
}

}  // namespace pascaline
