#include "runtime/checkpoint/tensor_names.hpp"

#include <algorithm>
#include <array>

namespace pascaline {
namespace {

struct PrefixRule {
  std::string_view from;
  std::string_view to;
};

constexpr std::array<PrefixRule, 9> kPrefixRules{{{"language_model.model.", "model.language_model."},
                                                  {"language_model.lm_head.", "lm_head."},
                                                  {"language_model.", "model.language_model."},
                                                  {"vision_tower.", "model.visual."},
                                                  {"visual.", "model.visual."},
                                                  {"layers.", "model.language_model.layers."},
                                                  {"embed_tokens.", "model.language_model.embed_tokens."},
                                                  {"norm.", "model.language_model.norm."},
                                                  {"lm_head.", "lm_head."}}};

constexpr std::array<std::string_view, 14> kQuantisationLeaves{
    "weight_scale", "weight_scale_inv", "weight_packed", "weight_shape", "weight_zero_point",
    "input_scale",  "scales",           "biases",        "qweight",      "qzeros",
    "g_idx",        "absmax",           "quant_map",     "SCB"};

}  // namespace

std::string official_tensor_name(std::string_view stored) {
  constexpr std::string_view kModel = "model.";
  std::string_view name = stored;
  if (name.starts_with(kModel)) {
    name.remove_prefix(kModel.size());
  }
  for (const PrefixRule& rule : kPrefixRules) {
    if (name.starts_with(rule.from)) {
      return std::string(rule.to).append(name.substr(rule.from.size()));
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
