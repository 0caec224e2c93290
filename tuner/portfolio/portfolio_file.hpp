#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"

namespace pascaline {

/// In place of a file: no portfolio.
inline constexpr std::string_view kNoPortfolio = "none";

/// Gives the spaces the portfolios of a file instead of their own: an object with, for each kernel, an object of
/// `portfolio` and `portfolios` as a search space has them, of up to 4096 configurations. A kernel that the file does
/// not name gets none. Throws SpaceError with the place of what is wrong.
void use_portfolio_file(std::vector<Space>& spaces, const std::filesystem::path& file);

/// The same of a text; `name` stands for the file in messages.
void use_portfolios(std::vector<Space>& spaces, std::string_view text, const std::string& name);

/// Takes the portfolios away.
void use_no_portfolio(std::vector<Space>& spaces);

/// The architecture whose own portfolio a device with those limits has or should have: that of its compute capability
/// if the space has a default or portfolio for it, else none (empty), which is the general one.
[[nodiscard]] std::string portfolio_architecture(const Space& space, const DeviceLimits& limits);

/// Configurations as a space or such a file has them: an object of `portfolio`, or of `portfolios` with the
/// architecture, each configuration with what differs from the default there, in the order of the parameters. What is
/// that default is left out. Throws Error if the architecture is none.
[[nodiscard]] nlohmann::ordered_json portfolio_json(const Space& space, const std::string& architecture,
                                                    const std::vector<Config>& members);

}  // namespace pascaline
