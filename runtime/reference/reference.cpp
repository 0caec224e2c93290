#include "runtime/reference/reference.hpp"

#include <array>
#include <utility>

namespace pascaline {
namespace {

constexpr std::array<std::pair<std::string_view, HostReference>, 3> kReferences{{
    {"attention_decode", reference_attention_decode},
    {"attention_prefill", reference_attention_prefill},
    {"matmul_nt", reference_matmul_nt},
}};

}  // namespace

HostReference find_host_reference(std::string_view name) noexcept {
  for (const auto& [known, function] : kReferences) {
    if (known == name) {
      return function;
    }
  }
  return nullptr;
}

}  // namespace pascaline
