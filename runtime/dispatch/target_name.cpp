#include <fmt/format.h>

#include <string_view>

#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kMachineCodePrefix = "sm_";
constexpr std::string_view kPtxTargetPrefix = "compute_";

}  // namespace

std::string target_name(const std::string& architecture, BinaryKind kind) {
  return kind == BinaryKind::ptx && architecture.starts_with(kMachineCodePrefix)
             ? fmt::format("{}{}", kPtxTargetPrefix, architecture.substr(kMachineCodePrefix.size()))
             : architecture;
}

std::string architecture_of_target(const std::string& target) {
  return target.starts_with(kPtxTargetPrefix)
             ? fmt::format("{}{}", kMachineCodePrefix, target.substr(kPtxTargetPrefix.size()))
             : target;
}

}  // namespace pascaline
