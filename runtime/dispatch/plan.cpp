#include "runtime/dispatch/plan.hpp"

namespace pascaline {

std::string_view name_of(Provenance provenance) noexcept {
  switch (provenance) {
    case Provenance::exact:
      return "exact";
    case Provenance::nearest:
      return "nearest";
    case Provenance::default_config:
      return "default";
    case Provenance::fallback:
      return "fallback";
  }
  return "";
}

}  // namespace pascaline
