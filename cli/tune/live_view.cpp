#include "cli/tune/live_view.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "app/text.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "report/text.hpp"

namespace pascaline::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{200};
constexpr std::chrono::seconds kPlainInterval{10};
constexpr int kUnknownColumns = 80;

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() || part.empty() ? "" : between) + part;
  }
  return text;
}

std::string stage_text(const DeviceProgress& device) {
  if (device.stage != "search" && device.stage != "finals" && device.stage != "neighbours" &&
      device.stage != "waiting for the compiler" && !(device.stage == "paused" && device.done > 0)) {
    return device.stage;
  }
  return fmt::format("{} {}", device.stage, device.done) +
         (device.planned > 0 ? fmt::format("/{}", device.planned) : "");
}

std::string place_text(const DeviceProgress& device) {
  return joined(
      {device.place.index > 0 ? fmt::format("[{}/{}]", device.place.index, device.place.count) : "", device.problem},
      " ");
}

std::string best_text(const DeviceProgress& device) {
  if (device.best_us > 0 && device.default_us > 0) {
    return fmt::format("best {} = {:.2f}x the default ({})", time_text(device.best_us),
                       device.default_us / device.best_us, time_text(device.default_us));
  }
  if (device.best_us > 0) {
    return "best " + time_text(device.best_us);
  }
  return device.default_us > 0 ? "default " + time_text(device.default_us) : "no time yet";
}

std::string condition_text(const DeviceProgress& device) {
  const auto reading = [](const std::optional<double>& value, const char* unit) {
    return value ? fmt::format("{:.0f} {}", *value, unit) : "";
  };
  std::string governor = device.governor.state;
  std::replace(governor.begin(), governor.end(), '_', ' ');
  return joined(
      {reading(device.card.temperature_c, "°C"), reading(device.card.sm_clock_mhz, "MHz"),
       reading(device.card.power_w, "W"),
       // What leaves the card alone does not measure.
       device.stage == "paused" && device.governor.reason.empty() ? ""
                                                                  : joined({governor, device.governor.reason}, ": "),
       device.pause_reason.empty() ? "" : "paused: " + device.pause_reason},
      "  ");
}

// Trials, compilers and problems: what changes only when something happens.
std::string progress_text(const SweepView& view) {
  return joined(
      {counts_text(view),
       view.compile_workers > 0 ? fmt::format("compiling {}/{}", view.compiling, view.compile_workers) : "",
       view.problems > 0 ? fmt::format("{}/{}", view.problems_done, counted(view.problems, "problem")) : "",
       view.problems_untried > 0 && view.trials > 0 ? fmt::format("{} not started yet", view.problems_untried) : ""},
      " · ");
}

std::string elapsed_text(const SweepView& view) {
  if (view.budget_left_s && *view.budget_left_s <= 0) {
    return clock_text(view.elapsed_s) + " elapsed, time is up: finishing";
  }
  return clock_text(view.elapsed_s) + " elapsed" + (view.eta_s ? ", about " + clock_text(*view.eta_s) + " left" : "") +
         (view.budget_left_s ? ", ends in " + clock_text(*view.budget_left_s) + " at the latest" : "");
}

std::string plain_text(const SweepView& view) {
  std::string text;
  for (const DeviceProgress& device : view.devices) {
    const bool has_times = device.best_us > 0 || device.default_us > 0;
    text += joined({device.device, place_text(device), stage_text(device)}, " ") +
            (has_times ? ", " + best_text(device) : "") + "; ";
  }
  return clean_line(text + progress_text(view));
}

bool has_cursor() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0;
}

winsize window_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0) {
    size = {};
  }
  return size;
}

}  // namespace

std::vector<std::string> view_lines(const SweepView& view) {
  std::vector<std::string> lines;
  for (const DeviceProgress& device : view.devices) {
    const std::string label = device.label.empty() ? "" : "(" + device.label + ")";
    lines.push_back(clean_line(
        joined({joined({device.device, device.name}, " "), place_text(device), stage_text(device), label}, "   ")));
    lines.push_back(clean_line("  " + joined({best_text(device), condition_text(device)}, "   ")));
  }
  if (!view.no_time.empty()) {
    lines.push_back(no_time_text(view.no_time));
  }
  if (!view.provisional.empty()) {
    lines.push_back(provisional_text(view.provisional));
  }
  lines.push_back(progress_text(view) + " · " + elapsed_text(view));
  return lines;
}

LiveView::LiveView(LiveViewOptions options) : options_(std::move(options)), last_status_(options_.now()) {
  options_.terminal = options_.terminal && has_cursor();
  if (options_.log) {
    log_.reset(std::fopen(options_.log->c_str(), "ae"));
    if (!log_) {
      throw Error(fmt::format("cannot open the log file {}: {}; give a file that can be written",
                              options_.log->string(), std::strerror(errno)),
                  errno);
    }
  }
}

LiveView::~LiveView() {
  try {
    finish();
  } catch (...) {  // a block that stays is all there is to lose
  }
}

void LiveView::line(const std::string& given) {
  const std::lock_guard lock(mutex_);
  const std::string text = clean_lines(given);
  if (log_ && !logged(text)) {
    give_up_log(errno);
  }
  if (options_.quiet) {
    return;
  }
  if (options_.terminal) {
    redraw(text + "\n");
  } else {
    write(text + "\n");
  }
}

void LiveView::update(const SweepView& view) {
  const std::lock_guard lock(mutex_);
  if (options_.quiet) {
    return;
  }
  if (!options_.terminal) {
    plain_status(view);
    return;
  }
  shown_ = view;
  if (!last_drawn_ || options_.now() - *last_drawn_ >= kRedrawInterval) {
    redraw("");
  }
}

void LiveView::finish() {
  const std::lock_guard lock(mutex_);
  shown_.reset();
  last_drawn_.reset();
  if (drawn_ > 0) {
    redraw("");
    last_drawn_.reset();
  }
}

// Said where faults are, as the lines of a sweep are many and may go elsewhere.
void LiveView::give_up_log(int reason) {
  log_.reset();
  if (drawn_ > 0) {  // the warning would be written into the block
    write(fmt::format("\r\033[{}A\033[J", drawn_));
    drawn_ = 0;
  }
  fmt::print(stderr, "pascaline: warning: cannot write the log file {}: {}; continuing without it\n",
             clean_line(options_.log->string()), std::strerror(reason));
}

// One write a time, so that the terminal never shows a block half drawn. Wrapping is off meanwhile: a character that
// the terminal takes for wider than it was counted must not break a line in two.
void LiveView::redraw(const std::string& above) {
  std::string text = drawn_ > 0 ? fmt::format("\r\033[{}A\033[J", drawn_) : "";
  text += above;
  drawn_ = 0;
  if (shown_) {
    text += "\033[?7l";
    for (const std::string& line : fitting_lines()) {
      text += line + "\n";
      ++drawn_;
    }
    text += "\033[?7h";
    last_drawn_ = options_.now();
  }
  write(text);
}

// Lines beyond the top of the window could not be reached again: of a block that is too high the totals stay, and as
// many devices as there is room for.
std::vector<std::string> LiveView::fitting_lines() const {
  const winsize window = window_of(options_.out);
  const int columns = options_.columns > 0 ? options_.columns : window.ws_col > 0 ? window.ws_col : kUnknownColumns;
  const int rows = options_.rows > 0 ? options_.rows : window.ws_row;
  std::vector<std::string> lines = view_lines(*shown_);
  if (rows > 0) {
    const auto room = static_cast<std::size_t>(std::max(1, rows - 1));
    const std::size_t excess = lines.size() - std::min(lines.size(), room);
    lines.erase(lines.end() - 1 - static_cast<std::ptrdiff_t>(excess), lines.end() - 1);
  }
  for (std::string& line : lines) {
    line = cut_to_columns(line, static_cast<std::size_t>(columns));
  }
  return lines;
}

void LiveView::plain_status(const SweepView& view) {
  const auto now = options_.now();
  if (now - last_status_ < kPlainInterval) {
    return;
  }
  std::string text = plain_text(view);
  if (text != last_status_text_) {
    write(text + " · " + elapsed_text(view) + "\n");
    last_status_ = now;
    last_status_text_ = std::move(text);
  }
}

// Whether the log took the text, each of its lines with the time; if not, errno says why.
bool LiveView::logged(const std::string& text) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const std::string time = fmt::format("{:%Y-%m-%d %H:%M:%S}  ", local);
  std::string entry = time;
  for (const char c : text) {
    entry += c;
    entry += c == '\n' ? time : "";
  }
  entry += '\n';
  return std::fwrite(entry.data(), 1, entry.size(), log_.get()) == entry.size() && std::fflush(log_.get()) == 0;
}

void LiveView::write(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), options_.out);
  std::fflush(options_.out);
}

}  // namespace pascaline::cli
