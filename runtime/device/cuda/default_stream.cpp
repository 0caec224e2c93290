#include "runtime/device/cuda/default_stream.hpp"

#include "runtime/device/cuda/driver_api.hpp"

namespace pascaline {

void synchronize_default_stream() {
  const DriverApi& driver = DriverApi::get();
  driver(driver.stream_synchronize, CuStream{});
}

}  // namespace pascaline
