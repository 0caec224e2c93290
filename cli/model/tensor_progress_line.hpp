#pragma once

#include "model/checkpoint/piece_work.hpp"

namespace pascaline::cli {

/// How far the writing of a model has come, on standard error: one line that is rewritten on a terminal, elsewhere a
/// line every ten seconds.
class TensorProgressLine {
 public:
  explicit TensorProgressLine(bool quiet);
  TensorProgressLine(const TensorProgressLine&) = delete;
  TensorProgressLine& operator=(const TensorProgressLine&) = delete;
  ~TensorProgressLine();

  void show(const TensorProgress& at);

 private:
  bool quiet_;
  bool on_terminal_;
  bool is_open_ = false;  // a line without its end
  double last_ = 0;
};

}  // namespace pascaline::cli
