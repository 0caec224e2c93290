#include "tuner/services/services.hpp"

#include <utility>

#include "tuner/measure/measure_client.hpp"

namespace pascaline {

SweepServices real_services() {
  return {std::make_shared<MachineClock>(), [] { return list_devices(); },
          [](CompilePoolOptions options) { return std::make_unique<CompilePool>(std::move(options)); },
          [](MeasureClientOptions options) { return std::make_unique<MeasureClient>(std::move(options)); }};
}

}  // namespace pascaline
