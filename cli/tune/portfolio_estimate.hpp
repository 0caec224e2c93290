#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline::cli {

/// What `pascaline portfolio --estimate` is asked.
struct PortfolioEstimateOptions {
  std::vector<std::string> workloads;  ///< files
  std::string architecture;            ///< "sm_61"
  std::vector<int> sm_counts{20, 3};
  std::size_t compile = 200;
  std::vector<std::string> same_code;
  VariantOptions variants;
  std::string cache;  ///< empty: the user's
};

void add_portfolio_estimate_options(CLI::App& command, PortfolioEstimateOptions& options);

/// Chooses portfolios for the kernels, or those of the workloads, from estimates of machine code, and prints them.
/// `kernel` has the folders and problems; returns the exit code.
[[nodiscard]] int estimate_portfolios(PortfolioEstimateOptions options, const KernelOptions& kernel,
                                      const std::vector<std::string>& kernels, std::size_t size, bool as_json);

}  // namespace pascaline::cli
