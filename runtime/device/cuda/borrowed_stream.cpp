#include "runtime/device/cuda/borrowed_stream.hpp"

#include <utility>

#include "core/error.hpp"

namespace pascaline {
namespace {

// CU_STREAM_LEGACY, another name of stream 0.
constexpr std::uintptr_t kLegacy = 1;

CuStream stream_of(ForeignStream stream) {
  return stream.handle == kLegacy ? nullptr
                                  : reinterpret_cast<CuStream>(stream.handle);  // NOLINT(performance-no-int-to-ptr)
}

// The legacy default stream cannot be captured, and may not even be asked while another one is.
bool is_capturing(const DriverApi& driver, CuStream stream) {
  int status = 0;
  if (stream != nullptr) {
    driver(driver.is_capturing, stream, &status);
  }
  return status != 0;
}

}  // namespace

bool is_captured(ForeignStream stream) { return is_capturing(DriverApi::get(), stream_of(stream)); }

void BorrowedStream::enter(const ForeignStream* stream) {
  previous_ = context_.borrow_thread();
  try {
    if (joined_ == nullptr) {
      make_events();
    }
    captured_ = false;
    if (stream != nullptr) {
      context_.use_stream(stream_of(*stream));
      look_at_capture();
    }
  } catch (...) {
    leave();
    throw;
  }
}

void BorrowedStream::leave() noexcept {
  captured_ = false;
  context_.use_own_stream();
  context_.give_back(std::exchange(previous_, nullptr));
}

void BorrowedStream::make_events() {
  const DriverApi& driver = context_.driver();
  for (CuEvent* event : {&shared_, &in_capture_, &joined_}) {
    if (*event == nullptr) {
      driver(driver.event_create, event, kCuEventWithoutTime);
    }
  }
}

void BorrowedStream::look_at_capture() {
  const DriverApi& driver = context_.driver();
  captured_ = is_capturing(driver, context_.stream());
  capture_ = 0;
  if (captured_ && driver.capture_info.address != nullptr) {
    int status = 0;
    driver(driver.capture_info, context_.stream(), &status, &capture_);
  }
}

void BorrowedStream::wait_for(ForeignStream other) {
  const CuStream stream = stream_of(other);
  if (captured_ || stream == context_.stream()) {
    return;
  }
  const DriverApi& driver = context_.driver();
  driver(driver.event_record, joined_, stream);
  driver(driver.stream_wait, context_.stream(), joined_, 0U);
}

// A handle may come back for another stream while work of a destroyed one goes on, so that only the legacy stream's is
// taken for the same stream. An event that was never recorded is not waited for.
void BorrowedStream::begin_shared() {
  const DriverApi& driver = context_.driver();
  if (captured_) {
    if (capture_ != 0 && capture_ == last_capture_) {
      driver(driver.stream_wait, context_.stream(), in_capture_, 0U);
    }
  } else if (context_.stream() != nullptr || shared_on_ != nullptr) {
    driver(driver.stream_wait, context_.stream(), shared_, 0U);
  }
}

void BorrowedStream::end_shared() {
  const DriverApi& driver = context_.driver();
  if (captured_) {
    driver(driver.event_record, in_capture_, context_.stream());
    last_capture_ = capture_;
  } else {
    driver(driver.event_record, shared_, context_.stream());
    shared_on_ = context_.stream();
  }
}

void BorrowedStream::drop() noexcept {
  for (CuEvent* event : {&shared_, &in_capture_, &joined_}) {
    if (*event != nullptr) {
      context_.driver().event_destroy.address(std::exchange(*event, nullptr));
    }
  }
  shared_on_ = nullptr;
  last_capture_ = 0;
}

}  // namespace pascaline
