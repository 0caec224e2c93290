#include "cli/fleet/rank.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::cli {
namespace {

std::optional<int> first_number(std::initializer_list<const char*> variables) {
  for (const char* const variable : variables) {
    const char* const text = std::getenv(variable);
    const std::string_view digits = text == nullptr ? "" : text;
    int value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (!digits.empty() && fault == std::errc{} && end == digits.data() + digits.size() && value >= 0) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rank> rank_here() {
  const auto rank = first_number({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
  if (!rank) {
    return std::nullopt;
  }
  const auto local =
      first_number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "SLURM_LOCALID"});
  return Rank{*rank, local.value_or(0)};
}

std::string device_of(const Rank& rank) {
  int gpus = 0;
  for (const DeviceInfo& info : list_devices()) {
    gpus += info.kind == DeviceKind::cuda ? 1 : 0;
  }
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (gpus == 1 && visible != nullptr && std::string_view(visible).find(',') == std::string_view::npos) {
    return "cuda:0";  // bound to this rank
  }
  if (rank.local >= gpus) {
    throw Error(fmt::format("rank {}, number {} on this machine, has no GPU: it has {}; start one rank per GPU",
                            rank.rank, rank.local + 1, counted(gpus, "GPU")));
  }
  return fmt::format("cuda:{}", rank.local);
}

}  // namespace pascaline::cli
