#pragma once

#include <string>

namespace pascaline {

/// What `--nvrtc` would have to be so that code of a measurement is compiled again as it was: the version that
/// measured, if it is here; else, and where $PASCALINE_NVRTC decides, nothing.
[[nodiscard]] std::string wish_of_measured(const std::string& architecture, const std::string& version);

}  // namespace pascaline
