#include "tuner/simulation/simulated_world.hpp"

#include <cmath>
#include <numbers>

#include "core/util/hash.hpp"

namespace pascaline {

double normal_of(const std::string& text) {
  const std::string digits = hash_hex(text);
  const auto uniform = [&](std::size_t at) {
    return (static_cast<double>(std::stoull(digits.substr(at, 8), nullptr, 16)) + 1) / 4294967297.0;
  };
  return std::sqrt(-2 * std::log(uniform(0))) * std::cos(2 * std::numbers::pi * uniform(8));
}

}  // namespace pascaline
