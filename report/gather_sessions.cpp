#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "report/gather_parts.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxStates = 400;
constexpr std::size_t kMaxDiscarded = 300;

using Reading = std::optional<double> TelemetryRow::*;
constexpr std::array<Reading, 5> kThinnedReadings{&TelemetryRow::temperature_c, &TelemetryRow::sm_clock_mhz,
                                                  &TelemetryRow::memory_clock_mhz, &TelemetryRow::power_w,
                                                  &TelemetryRow::canary_us};

// The readings with the least and the greatest of each value in `stretches` parts of the list, and the ends.
std::set<std::size_t> extremes(const std::vector<TelemetryRow>& readings, std::size_t stretches) {
  std::set<std::size_t> kept{0, readings.size() - 1};
  for (std::size_t part = 0; part < stretches; ++part) {
    const std::size_t begin = part * readings.size() / stretches;
    const std::size_t end = (part + 1) * readings.size() / stretches;
    for (const Reading value : kThinnedReadings) {
      std::optional<std::size_t> least;
      std::optional<std::size_t> greatest;
      for (std::size_t i = begin; i < end; ++i) {
        const std::optional<double>& here = readings[i].*value;
        if (here && (!least || *here < *(readings[*least].*value))) {
          least = i;
        }
        if (here && (!greatest || *here > *(readings[*greatest].*value))) {
          greatest = i;
        }
      }
      if (least) {
        kept.insert(*least);
        kept.insert(*greatest);
      }
    }
  }
  return kept;
}

// Appends; a span of the state before goes on.
void extend_states(std::vector<ReportStateSpan>& spans, const ReportStateSpan& next) {
  if (!spans.empty() && spans.back().state == next.state) {
    spans.back().to_unix_ms = std::max(spans.back().to_unix_ms, next.to_unix_ms);
    return;
  }
  if (!spans.empty()) {
    spans.back().to_unix_ms = std::max(spans.back().to_unix_ms, next.from_unix_ms);
  }
  spans.push_back(next);
}

std::vector<ReportStateSpan> states_of(const std::vector<TelemetryRow>& readings) {
  std::vector<ReportStateSpan> spans;
  for (const TelemetryRow& reading : readings) {
    extend_states(spans, {reading.unix_ms, reading.unix_ms, reading.governor_state});
  }
  if (spans.size() <= kMaxStates) {
    return spans;
  }
  // The shortest go into the spans before them.
  std::vector<std::int64_t> lengths;
  for (const ReportStateSpan& span : spans) {
    lengths.push_back(span.to_unix_ms - span.from_unix_ms);
  }
  std::nth_element(lengths.begin(), lengths.begin() + kMaxStates, lengths.end(), std::greater<>());
  const std::int64_t least = lengths[kMaxStates];
  std::vector<ReportStateSpan> longer;
  for (const ReportStateSpan& span : spans) {
    if (span.to_unix_ms - span.from_unix_ms > least) {
      extend_states(longer, span);
    }
  }
  return longer;
}

std::vector<ReportDiscarded> thinned_discards(std::vector<ReportDiscarded> all) {
  if (all.size() <= kMaxDiscarded) {
    return all;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ReportDiscarded& a, const ReportDiscarded& b) { return a.from_unix_ms < b.from_unix_ms; });
  const std::int64_t begin = all.front().from_unix_ms;
  const std::int64_t width = (all.back().from_unix_ms - begin) / static_cast<std::int64_t>(kMaxDiscarded) + 1;
  std::vector<ReportDiscarded> stretches;
  std::int64_t last = -1;
  for (const ReportDiscarded& one : all) {
    const std::int64_t stretch = (one.from_unix_ms - begin) / width;
    if (stretch != last) {
      stretches.push_back(one);
    } else {
      stretches.back().to_unix_ms = std::max(stretches.back().to_unix_ms, one.to_unix_ms);
      stretches.back().count += one.count;
    }
    last = stretch;
  }
  return stretches;
}

// Samples of a session, and when those that do not count were taken.
struct SessionSamples {
  std::size_t total = 0;
  std::array<std::size_t, kSampleMarks> marked{};
  std::vector<ReportDiscarded> discarded;
};

std::unordered_map<std::int64_t, SessionSamples> samples_by_session(const Store& store,
                                                                    const std::vector<TrialMoment>& moments) {
  std::unordered_map<std::int64_t, SessionSamples> by_session;
  auto moment = moments.begin();
  store.for_each_sample_count([&](const SampleCounts& counts) {
    moment = std::find_if(moment, moments.end(), [&](const TrialMoment& next) { return next.id >= counts.trial_id; });
    if (moment == moments.end() || moment->id != counts.trial_id) {
      return;  // a trial that is not asked for
    }
    SessionSamples& session = by_session[moment->session];
    session.total += counts.total;
    std::size_t discarded = 0;
    for (std::size_t mark = 1; mark < kSampleMarks; ++mark) {
      session.marked[mark] += counts.marked[mark];
      discarded += counts.marked[mark];
    }
    if (discarded > 0) {
      session.discarded.push_back({moment->started_unix_ms, moment->ended_unix_ms, discarded});
    }
  });
  return by_session;
}

void set_samples_of(ReportSession& session, SessionSamples& samples) {
  session.samples = samples.total;
  for (std::size_t mark = 1; mark < kSampleMarks; ++mark) {
    if (samples.marked[mark] > 0) {
      session.discarded.emplace_back(static_cast<SampleMark>(mark), samples.marked[mark]);
    }
  }
}

// Without trials there is nothing that says which kernel a session was of.
bool is_asked_for(const SessionRow& row, bool has_trials, const ReportOptions& options) {
  return has_trials || (options.kernel.empty() && is_wanted(options, row.device) && is_wanted(options, row.id));
}

}  // namespace

std::vector<TelemetryRow> thin_out(const std::vector<TelemetryRow>& readings, std::size_t most) {
  if (readings.size() <= most) {
    return readings;
  }
  std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  std::set<std::size_t> kept = extremes(readings, stretches);
  while (kept.size() > most && stretches > 1) {
    stretches = stretches * 3 / 4;
    kept = extremes(readings, stretches);
  }
  std::vector<TelemetryRow> points;
  std::transform(kept.begin(), kept.end(), std::back_inserter(points), [&](std::size_t at) { return readings[at]; });
  return points;
}

std::vector<ReportSession> report_sessions(const Store& store, const std::vector<SessionRow>& rows,
                                           const GatheredTrials& gathered, const ReportOptions& options) {
  auto samples = samples_by_session(store, gathered.moments);
  const std::vector<TrialTimes> times = store.trial_times();
  std::vector<ReportSession> sessions;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto counts = gathered.counts_of_session.find(row->id);
    const auto context = gathered.context_of_session.find(row->id);
    ReportSession session;
    session.row = *row;
    session.counts = counts == gathered.counts_of_session.end() ? TrialCounts() : counts->second;
    if (!is_asked_for(*row, counts != gathered.counts_of_session.end(), options)) {
      continue;
    }
    if (context != gathered.context_of_session.end()) {
      session.context = context->second;
    }
    set_samples_of(session, samples[row->id]);
    const auto known = std::find_if(times.begin(), times.end(),
                                    [&](const TrialTimes& of_session) { return of_session.session == row->id; });
    if (known != times.end()) {
      session.times = *known;
    }
    sessions.push_back(std::move(session));
  }
  const std::size_t most = detail_for(0, sessions.size()).telemetry_points;
  for (ReportSession& session : sessions) {
    const std::vector<TelemetryRow> readings = store.telemetry(session.row.id);
    std::vector<ReportDiscarded>& discarded = samples[session.row.id].discarded;
    if (!readings.empty() || !discarded.empty()) {
      session.telemetry = ReportTelemetry{thin_out(readings, most), states_of(readings),
                                          thinned_discards(std::move(discarded)), readings.size()};
    }
  }
  return sessions;
}

}  // namespace pascaline
