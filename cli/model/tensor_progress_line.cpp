#include "cli/model/tensor_progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/util/byte_size.hpp"
#include "core/util/duration.hpp"

namespace pascaline::cli {

TensorProgressLine::TensorProgressLine(bool quiet) : quiet_(quiet), on_terminal_(::isatty(STDERR_FILENO) != 0) {}

TensorProgressLine::~TensorProgressLine() {
  if (is_open_) {
    std::fputs("\r\033[K", stderr);
  }
}

void TensorProgressLine::show(const TensorProgress& at) {
  constexpr double kApart = 10;
  constexpr double kSettled = 1;
  if (quiet_ || (!on_terminal_ && at.seconds < last_ + kApart)) {
    return;
  }
  last_ = at.seconds;
  std::string line = fmt::format("{} of {} tensors, {} of {} read", at.tensors, at.all_tensors,
                                 shown_bytes(at.read_bytes), shown_bytes(at.all_bytes));
  if (at.seconds > kSettled && at.read_bytes > 0) {
    const double left = static_cast<double>(at.all_bytes - at.read_bytes) / static_cast<double>(at.read_bytes);
    line += fmt::format(", {} left", duration_text(at.seconds * left));
  }
  fmt::print(stderr, "{}{}{}", on_terminal_ ? "\r" : "pascaline: ", line, on_terminal_ ? "\033[K" : "\n");
  is_open_ = on_terminal_;
}

}  // namespace pascaline::cli
