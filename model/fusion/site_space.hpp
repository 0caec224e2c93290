#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/space/space.hpp"
#include "model/fusion/site_key.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

// A kind of site as if it were a kernel: what tunes, stores and dispatches problems of kernels then does so with
// sites. Its one parameter is which alternative computes it, and "single" is the default.

/// The parameter's name.
inline constexpr const char* kAlternativeParameter = "ALTERNATIVE";

/// An alternative of a site, without what runs it.
struct AlternativeFacts {
  const char* name;
  const char* what;
  bool (*fits)(const SiteKey& key);
};

/// Whether a kernel of that name is a kind of site.
[[nodiscard]] bool is_site(std::string_view kernel) noexcept;
/// In the order of a pass: token, logits, prompt, image.
[[nodiscard]] std::vector<std::string> site_kernels();
/// What it is, for people; throws Error, as all that follow, if there is no such kind of site.
[[nodiscard]] const char* site_description(std::string_view kernel);
/// Its alternatives, "single" first.
[[nodiscard]] std::vector<AlternativeFacts> alternatives_of(std::string_view kernel);
/// Kernels that any of them may launch.
[[nodiscard]] std::vector<std::string> kernels_of_site(std::string_view kernel);
[[nodiscard]] Space site_space(std::string_view kernel);
/// Its text is the hashes of the kernels' sources, so that its own hash is one of all of them. Throws as
/// KernelSource::load.
[[nodiscard]] KernelSource site_source(std::string_view kernel, const std::filesystem::path& kernels);

/// The key that a problem of a site names. Throws Error for other dimensions or types than the site has.
[[nodiscard]] SiteKey site_key(const Problem& problem);
/// The configuration that stands for the alternative, and the alternative that one stands for; empty if for none.
[[nodiscard]] Config config_of_alternative(std::string_view name);
[[nodiscard]] std::string alternative_of(const Config& config);
/// Whether two problems of sites are of one model: they differ at most in what varies from pass to pass, rows and
/// context.
[[nodiscard]] bool same_but_for_sizes(const Problem& a, const Problem& b);

}  // namespace pascaline
