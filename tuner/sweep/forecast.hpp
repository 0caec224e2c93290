#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace pascaline {

/// The first look at a problem that waits for it, as the agenda expects it.
struct FirstLook {
  double seconds = 0;   ///< of a device, with preparation, builds and finals
  double model_us = 0;  ///< of the model, with the problem's default; 0 where no calls of a model are known
};

/// How far a limit of time reaches that is too short for a first look at every problem.
struct Forecast {
  std::string device{};  ///< name of the kind of device
  double limit_s = 0;
  std::size_t reached = 0;                ///< problems, those included that were looked at before
  std::size_t problems = 0;               ///< of the plan
  std::optional<double> reached_share{};  ///< of the model's time; nothing where no calls are known
  double needed_s = 0;                    ///< that all first looks take
};

/// Time that there is for the looks.
struct TimeForLooks {
  double limit_s = 0;
  double devices = 1;  ///< that work side by side
};
/// Seconds until that many devices have looked at all of them.
[[nodiscard]] double seconds_for(std::span<const FirstLook> looks, double devices);
/// Problems that were looked at before.
struct SeenBefore {
  std::size_t problems = 0;
  double model_us = 0;
};
/// `looks`: in the agenda's order. Nothing if the time suffices.
[[nodiscard]] std::optional<Forecast> forecast(std::span<const FirstLook> looks, const SeenBefore& seen,
                                               const TimeForLooks& time);

/// "1 min reaches about 4 of 106 shapes here, 31 % of the model's time; about 25 min reach all".
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

}  // namespace pascaline
