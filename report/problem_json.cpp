#include "report/document_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

// A number of the machine code; null where nothing is known of the code, as on the emulated device: code always has
// registers and instructions.
auto code_figure(int Resources::*value, int Resources::*of_any_code) {
  return [value, of_any_code](const ReportConfiguration& shown) {
    const Resources& resources = shown.trial.resources;
    return resources.*of_any_code > 0 ? std::optional(resources.*value) : std::nullopt;
  };
}

template <typename Value>
auto time_part(Value TimeSummary::*part) {
  return [part](const ReportConfiguration& shown) {
    return shown.trial.time ? std::optional((*shown.trial.time).*part) : std::nullopt;
  };
}

struct ShownConfigurations {
  const ReportProblem* problem = nullptr;
};

const Fields<ShownConfigurations>& fields_of(const ShownConfigurations*) {
  static const auto fields =
      Fields<ShownConfigurations>("configurations", "Some of the problem's trials.")
          .add(
              "shown", [](const ShownConfigurations& of) { return of.problem->configurations.size(); },
              "Number of rows.")
          .add(
              "of", [](const ShownConfigurations& of) { return of.problem->counts.trials + of.problem->counts.finals; },
              "Number of its trials and measurements in finals.")
          .add(
              "columns",
              [](const ShownConfigurations& of) {
                std::vector<std::string> names;
                std::ranges::transform(of.problem->parameters, std::back_inserter(names), &ReportParameter::name);
                return names;
              },
              "Names of the parameters.")
          .add(
              "rows", [](const ShownConfigurations& of) { return of.problem->configurations; },
              "The best, the defaults, finalists, the fastest, an even spread of the rest, and failures of each kind.");
  return fields;
}

}  // namespace

const Fields<TimeSummary>& fields_of(const TimeSummary*) {
  static const auto fields = Fields<TimeSummary>("time", "Median of the times of launches.")
                                 .add("median_us", &TimeSummary::median_us, "Median time of a launch.", "µs")
                                 .add("low_us", &TimeSummary::low_us, "Lower end of the median's 95 % interval.", "µs")
                                 .add("high_us", &TimeSummary::high_us, "Upper end of that interval.", "µs")
                                 .add("count", &TimeSummary::count, "Launches counted.");
  return fields;
}

const Fields<ReportSpeedup>& fields_of(const ReportSpeedup*) {
  static const auto fields =
      Fields<ReportSpeedup>("speedup", "Time of the default / time of the best.")
          .add("value", &ReportSpeedup::value, "Ratio of the medians.")
          .add("low", &ReportSpeedup::low, "Lower end of the interval that the medians' intervals allow.")
          .add("high", &ReportSpeedup::high, "Upper end of that interval.");
  return fields;
}

const Fields<TakenOver>& fields_of(const TakenOver*) {
  static const auto fields =
      Fields<TakenOver>("other_device", "Measurements of another device that a search began with.")
          .add("device", &TakenOver::device, "Name of that device.")
          .add("problem", &TakenOver::measured, "Problem of those trials: this one or one near it.")
          .add("trials", &TakenOver::trials, "Usable trials that the search's expectation began with; 0: none.")
          .add("winner", &TakenOver::winner, "That device's winner was among the first configurations proposed.")
          .add(
              "text", [](const TakenOver& of) { return taken_over_text(of); },
              "The same in words, as the end of a sentence.");
  return fields;
}

const Fields<ReportSearch>& fields_of(const ReportSearch*) {
  static const auto fields =
      Fields<ReportSearch>("search", "Best time so far in one session.")
          .add("session", &ReportSearch::session, "Row of the session.")
          .add("searcher", &ReportSearch::searcher, "Name of the searcher.")
          .add("seed", &ReportSearch::seed, "Seed of the searcher.")
          .add("trials", &ReportSearch::trials,
               "Numbers, from 1, of the session's trials at which the best time fell, and of the last; at most 200.")
          .add("elapsed_s", coarse(&ReportSearch::elapsed_s),
               "From the start of the first trial to the end of each of these; null: unknown.", "s")
          .add("best_us", coarse(&ReportSearch::best_us), "Best time after each of these.", "µs")
          .add("total", &ReportSearch::total, "Number of trials, failed ones among them.")
          .add(
              "other_devices",
              [](const ReportSearch& search) {
                return IfPresent<std::vector<TakenOver>>{search.taken_over.empty() ? std::nullopt
                                                                                   : std::optional(search.taken_over)};
              },
              "Measurements of other devices that the search began with.");
  return fields;
}

const Fields<ReportParameter>& fields_of(const ReportParameter*) {
  static const auto fields =
      Fields<ReportParameter>("parameter", "Times by value of a parameter, of trials of searches.")
          .add("name", &ReportParameter::name, "Name of the parameter.")
          .add(
              "values", &ReportParameter::values,
              "Values that were tried, ascending, numbers before texts, at most 64; the other lists follow this order.")
          .add("trials", &ReportParameter::trials, "Trials with each value.")
          .add("ok", &ReportParameter::ok, "Usable ones among them.")
          .add("best_us", coarse(&ReportParameter::best_us), "Best of their medians.", "µs")
          .add("median_us", coarse(&ReportParameter::median_us), "Median of their medians.", "µs")
          .add("effect", coarse(&ReportParameter::effect), "Largest / smallest `best_us`; null with fewer than two.")
          .add(
              "values_more",
              [](const ReportParameter& parameter) {
                return IfPresent<std::size_t>{parameter.values_more == 0 ? std::nullopt
                                                                         : std::optional(parameter.values_more)};
              },
              "Values left out, evenly.");
  return fields;
}

const Fields<ReportHeatPair>& fields_of(const ReportHeatPair*) {
  static const auto fields = Fields<ReportHeatPair>("heat_pair", "Best times by the values of two parameters.")
                                 .add("x", &ReportHeatPair::x, "Index of a parameter in `parameters`.")
                                 .add("y", &ReportHeatPair::y, "Index of the other.")
                                 .add("best_us", coarse(&ReportHeatPair::best_us),
                                      "A list for each value of y, in it one for each of x.", "µs");
  return fields;
}

const Fields<ReportHeat>& fields_of(const ReportHeat*) {
  static const auto fields =
      Fields<ReportHeat>("heat", "Times by pairs of parameters.")
          .add("parameters", &ReportHeat::parameters, "Those of the largest effect, the largest first.")
          .add("pairs", &ReportHeat::pairs, "Pairs of them.");
  return fields;
}

const Fields<ReportConfiguration>& fields_of(const ReportConfiguration*) {
  const auto trial = [](auto member) { return [member](const ReportConfiguration& of) { return of.trial.*member; }; };
  static const auto fields =
      Fields<ReportConfiguration>("configuration", "A trial.")
          .add("trial", &ReportConfiguration::trial_id, "Row in the database.")
          .add("values", &ReportConfiguration::values, "In the order of `columns`; null: it has no such parameter.")
          .add("status", trial(&Trial::status), "How it ended.")
          .add("stage", trial(&Trial::stage), "Stage of the sweep.")
          .add("default", trial(&Trial::is_default), "It is the default configuration.")
          .add("best", &ReportConfiguration::best, "It is the best.")
          .add("median_us", time_part(&TimeSummary::median_us), "Median time of a launch.", "µs")
          .add("low_us", time_part(&TimeSummary::low_us), "Lower end of the median's 95 % interval.", "µs")
          .add("high_us", time_part(&TimeSummary::high_us), "Upper end of that interval.", "µs")
          .add("samples_counted", time_part(&TimeSummary::count), "Launches counted.")
          .add("registers", code_figure(&Resources::registers, &Resources::registers),
               "Registers of a thread; null: unknown.")
          .add(
              "shared_bytes", [](const ReportConfiguration& of) { return of.trial.resources.static_shared_bytes; },
              "Static shared memory of a block.", "bytes")
          .add("local_bytes", code_figure(&Resources::local_bytes, &Resources::registers), "Stack of a thread.",
               "bytes")
          .add("local_loads", code_figure(&Resources::local_loads, &Resources::instructions),
               "Load instructions from local memory.")
          .add("local_stores", code_figure(&Resources::local_stores, &Resources::instructions),
               "Store instructions to local memory.")
          .add("instructions", code_figure(&Resources::instructions, &Resources::instructions), "Machine instructions.")
          .add("ffma", code_figure(&Resources::ffma, &Resources::instructions),
               "Fused multiply-add instructions among them.")
          .add(
              "occupancy",
              [](const ReportConfiguration& of) {
                return of.trial.occupancy > 0 ? std::optional(Coarse{of.trial.occupancy}) : std::nullopt;
              },
              "Resident warps / the maximum of a multiprocessor; null: unknown.")
          .add("temperature_c", coarse(&ReportConfiguration::temperature_c), "Mean over the counted samples.", "°C")
          .add("sm_clock_mhz", coarse(&ReportConfiguration::sm_clock_mhz), "Mean over the counted samples.", "MHz")
          .add("power_w", coarse(&ReportConfiguration::power_w), "Mean over the counted samples.", "W")
          .add("energy_mj", trial(&Trial::energy_mj), "Energy of a launch.", "mJ")
          .add(
              "max_error", trial(&Trial::max_error),
              "Largest [relative error](../search_spaces.md#tolerance) of the verification; null also where the result "
              "contained NaN.")
          .add("reason", trial(&Trial::reason), "Why it is not `ok`, or a note.")
          .add("session", &ReportConfiguration::session, "Row of the session.")
          .add(
              "samples_us",
              [](const ReportConfiguration& of) {
                return of.samples_us.empty() ? std::nullopt : std::optional(coarse(of.samples_us));
              },
              "Some of its counted samples in the order taken, times its clock scale.", "µs");
  return fields;
}

const Fields<ParetoPoint>& fields_of(const ParetoPoint*) {
  static const auto fields =
      Fields<ParetoPoint>("pareto_point", "A configuration whose time and energy are both known.")
          .add("trial", &ParetoPoint::trial_id, "Row in the database.")
          .add("config", &ParetoPoint::config, "The configuration.")
          .add("median_us", &ParetoPoint::median_us, "Median time of a launch.", "µs")
          .add("energy_mj", &ParetoPoint::energy_mj, "Energy of a launch.", "mJ")
          .add("default", &ParetoPoint::is_default, "It is the default configuration.")
          .add("front", &ParetoPoint::on_front, "No other one is better in both.");
  return fields;
}

const Fields<ParetoProblem>& fields_of(const ParetoProblem*) {
  static const auto fields =
      Fields<ParetoProblem>("pareto", "Time and energy of a problem's configurations.")
          .add("summary", pareto_sentence, "A sentence on what the winner by energy saves and costs.")
          .add("time_winner", &ParetoProblem::time_winner, "Trial of the winner by time; null: none of the points.")
          .add("energy_winner", &ParetoProblem::energy_winner, "The same by energy.")
          .add("edp_winner", &ParetoProblem::edp_winner, "The same by energy times time.")
          .add("points", &ParetoProblem::points, "Two or more, the fastest first.");
  return fields;
}

const Fields<ReportProblem>& fields_of(const ReportProblem*) {
  static const auto fields =
      Fields<ReportProblem>("problem", "One problem on one device under one toolkit with one version of its kernel.")
          .add("id", &ReportProblem::id, "Unique in the document.")
          .add(
              "text", [](const ReportProblem& of) { return of.problem.text(); },
              "Kernel, dimensions and element types.")
          .add(
              "dimensions", [](const ReportProblem& of) { return ByName<std::int64_t>{of.problem.dimensions}; },
              "Values of its dimensions.")
          .add(
              "types", [](const ReportProblem& of) { return names_of(of.problem.types); }, "Its element types.")
          .add("count", &ReportProblem::count,
               "Calls in the workload over its phases and the values of their symbols; null: not in it.")
          .add("flops", &ReportProblem::flops, "Operations of a launch.")
          .add("bytes", &ReportProblem::bytes, "Memory traffic of a launch.", "bytes")
          .add("default", &ReportProblem::baseline, "Time of the default, or of `baseline_config`.")
          .add("baseline_config", &ReportProblem::baseline_config,
               "Usable configuration nearest to the default, where that is not usable; null if it is.")
          .add(
              "baseline_why",
              [](const ReportProblem& of) {
                return of.baseline_config ? std::optional(default_fate(of.baseline_why)) : std::nullopt;
              },
              "What became of the default then; null without `baseline_config`.")
          .add("best", &ReportProblem::best, "Best time.")
          .add("best_config", &ReportProblem::best_config, "Its configuration.")
          .add("best_trial", &ReportProblem::best_trial, "Its row in the database.")
          .add("speedup", &ReportProblem::speedup, "Null where a time is missing.")
          .add("decided", &ReportProblem::decided,
               "It has a winner; else the fastest trial and the latest default stand for it.")
          .add("provisional", &ReportProblem::provisional,
               "The winner is the best by the search's trials, without finals.")
          .add(
              "confidence", &ReportProblem::confidence,
              "Probability that the best is not slower than the default; null if it is undecided or the default has no "
              "time.")
          .add("gflops", &ReportProblem::gflops, "Rate of the best.", "10⁹ operations/s")
          .add("gbs", &ReportProblem::gbs, "Rate of the best.", "10⁹ bytes/s")
          .add("roofline_us", &ReportProblem::roofline_us,
               "Shortest time that peak arithmetic and memory bandwidth allow, the longer of both.", "µs")
          .add("roofline_share", &ReportProblem::roofline_share,
               "`roofline_us` / the best median; above 1 where data is in cache.")
          .add("energy_mj", &ReportProblem::energy_mj, "Energy of a launch of the best.", "mJ")
          .add(
              "statuses", [](const ReportProblem& of) { return by_status(of.statuses, false); },
              "Trials of searches by status, those that occur.")
          .add_counts(&ReportProblem::counts)
          .add("searches", &ReportProblem::searches, "One for each session.")
          .add("parameters", &ReportProblem::parameters, "In the order of the search space.")
          .add("heat", &ReportProblem::heat, "Null with fewer than two parameters that have an effect.")
          .add(
              "configurations", [](const ReportProblem& of) { return ShownConfigurations{&of}; }, "Some of its trials.")
          .add(
              "pareto", [](const ReportProblem& of) { return IfPresent<ParetoProblem>{of.pareto}; },
              "Where two configurations or more have both time and energy.")
          .add(
              "limits",
              [](const ReportProblem& of) {
                return IfPresent<std::vector<ReportLimit>>{of.limits.empty() ? std::nullopt : std::optional(of.limits)};
              },
              "Of the winner and the default, for code of sm_50 to sm_62 of current sources where it was asked for.");
  return fields;
}

}  // namespace pascaline
