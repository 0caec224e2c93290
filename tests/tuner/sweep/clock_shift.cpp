// To be preloaded: from when the file that PASCALINE_TEST_CLOCK_FILE names exists, the system's clock is an hour late.

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

constexpr time_t kShiftSeconds = 3600;

time_t shift_s() {
  static const char* const file = std::getenv("PASCALINE_TEST_CLOCK_FILE");
  return file != nullptr && ::access(file, F_OK) == 0 ? kShiftSeconds : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long code = ::syscall(SYS_clock_gettime, clock, out);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    out->tv_sec -= shift_s();
  }
  return static_cast<int>(code);
}

int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  timespec now{};
  const int code = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return code;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

}  // extern "C"
