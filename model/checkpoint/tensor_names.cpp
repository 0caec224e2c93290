#include "model/checkpoint/tensor_names.hpp"

#include <algorithm>
#include <array>

#include "model/checkpoint/families/model_family.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::string_view, 14> kQuantisationLeaves{
    "weight_scale", "weight_scale_inv", "weight_packed", "weight_shape", "weight_zero_point",
    "input_scale",  "scales",           "biases",        "qweight",      "qzeros",
    "g_idx",        "absmax",           "quant_map",     "SCB"};

}  // namespace

std::string official_tensor_name(std::string_view stored, ModelFamily family) {
  constexpr std::string_view kModel = "model.";
  std::string_view name = stored;
  if (name.starts_with(kModel)) {
    name.remove_prefix(kModel.size());
  }
  for (const NamePrefix& prefix : traits_of(family).prefixes) {
    if (name.starts_with(prefix.stored)) {
      return std::string(prefix.official).append(name.substr(prefix.stored.size()));
    }
  }
  return std::string(stored);
}

bool is_quantisation_tensor(std::string_view stored) noexcept {
  const std::size_t dot = stored.rfind('.');
  const std::string_view leaf = dot == std::string_view::npos ? stored : stored.substr(dot + 1);
  return std::find(kQuantisationLeaves.begin(), kQuantisationLeaves.end(), leaf) != kQuantisationLeaves.end() ||
         stored.find(".quant_state.") != std::string_view::npos;
}

}  // namespace pascaline
