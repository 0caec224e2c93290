#include "runtime/device/cuda/cuda_context.hpp"

#include <fmt/format.h>

#include <atomic>

#include "core/error.hpp"
#include "runtime/device/cuda/thread_context.hpp"

namespace pascaline {
namespace {

std::atomic<std::uint64_t> last_generation{0};
// A context's address may come back after a reset, so threads remember a number that never does.
thread_local std::uint64_t current_generation = 0;

}  // namespace

ThreadContext::ThreadContext() noexcept {
  try {
    const DriverApi& driver = DriverApi::get();
    CuContext current = nullptr;
    if (driver.get_current.address(&current) == 0) {
      driver_ = &driver;
      context_ = current;
    }
  } catch (const Error&) {
    // Without a driver there is nothing to keep.
  }
}

ThreadContext::~ThreadContext() {
  if (driver_ != nullptr) {
    current_generation = 0;
    driver_->set_current.address(static_cast<CuContext>(context_));
  }
}

CudaContext::CudaContext(int ordinal) : driver_(DriverApi::get()) {
  driver_(driver_.device_get, &device_, ordinal);
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

CudaContext::~CudaContext() { close(); }

void CudaContext::open() {
  driver_(driver_.primary_retain, &context_, device_);
  generation_ = ++last_generation;
  make_current();
  driver_(driver_.stream_create, &stream_, kCuStreamNonBlocking);
  used_ = stream_;
  driver_(driver_.event_create, &begin_, 0U);
  driver_(driver_.event_create, &start_, 0U);
  driver_(driver_.event_create, &stop_, 0U);
}

void CudaContext::close() noexcept {
  if (context_ == nullptr) {
    return;
  }
  // Results are ignored: in a broken context every call fails, and releasing is all that is left to do.
  driver_.set_current.address(context_);
  if (stop_ != nullptr) {
    driver_.event_destroy.address(stop_);
  }
  if (start_ != nullptr) {
    driver_.event_destroy.address(start_);
  }
  if (begin_ != nullptr) {
    driver_.event_destroy.address(begin_);
  }
  if (stream_ != nullptr) {
    driver_.stream_destroy.address(stream_);
  }
  driver_.set_current.address(nullptr);
  driver_.primary_release.address(device_);
  current_generation = 0;
  context_ = nullptr;
  stream_ = nullptr;
  used_ = nullptr;
  begin_ = nullptr;
  start_ = nullptr;
  stop_ = nullptr;
}

void CudaContext::make_current() {
  if (context_ == nullptr) {
    throw CudaError("the device has no context since its reset failed; start a new process", kCuNotInitialized);
  }
  if (current_generation != generation_) {
    driver_(driver_.set_current, context_);
    current_generation = generation_;
  }
}

CuContext CudaContext::borrow_thread() {
  CuContext previous = nullptr;
  driver_(driver_.get_current, &previous);
  if (previous == context_ && context_ != nullptr) {
    current_generation = generation_;
  } else {
    current_generation = 0;
    make_current();
  }
  return previous;
}

void CudaContext::give_back(CuContext previous) noexcept {
  current_generation = 0;
  if (previous != context_) {
    driver_.set_current.address(previous);
  }
}

void CudaContext::reset() {
  close();
  // Releasing destroys the context only if nobody else in the process holds it; this does in any case.
  driver_.primary_reset.address(device_);
  try {
    open();
  } catch (const CudaError& error) {
    close();
    throw DeviceLostError(fmt::format("the device did not come back after a kernel's fault: {}", error.what()),
                          error.code());
  }
}

}  // namespace pascaline
