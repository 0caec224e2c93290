#pragma once

#include "runtime/device/cuda/cuda_context.hpp"

namespace pascaline {

/// Prepares the device for a timed launch: fills its L2 with other data, and holds the stream back long enough for the
/// host to queue what is timed, so that launch latency is not measured; and holds the canary kernel. The other data is
/// read, not written: what is timed does not pay for writing back what was there before, as it does not in a model
/// whose kernels mostly read weights. Belongs to one context;
/// forget it before a reset.
class TimingAid {
 public:
  /// `l2_bytes` of the device.
  TimingAid(CudaContext& context, std::size_t l2_bytes);
  TimingAid(const TimingAid&) = delete;
  TimingAid& operator=(const TimingAid&) = delete;
  ~TimingAid();

  /// Queues both; throws CudaError.
  void prepare(bool cold_cache);
  /// Queues the canary: the same arithmetic on each of `sm_count` multiprocessors, 100 to 300 us; throws CudaError.
  void launch_canary(unsigned sm_count);

 private:
  void evict();

  CudaContext& context_;
  std::size_t evict_bytes_;
  CuAddress evict_address_ = 0;
  CuModule module_ = nullptr;
  CuFunction delay_ = nullptr;
  CuFunction canary_ = nullptr;
  CuFunction evict_ = nullptr;
};

}  // namespace pascaline
