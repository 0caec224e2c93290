// A night on the device: temperature, clocks, power, canary, the governor's states and discarded samples.

const governorStates = ['preheating', 'measuring', 'settling', 'cooling', 'gave_up'];

function thermalPage(id) {
  const heading = element('h1', {}, 'Thermal log');
  const logged = report.sessions.filter((session) => session.telemetry && session.telemetry.unix_ms.length > 0);
  if (report.sessions.length === 0) return [heading, note('The database holds no sessions, so nothing was logged.')];
  const asked = id === undefined ? null : sessionById(Number(id));
  if (logged.length === 0 && !asked) {
    return [
      heading,
      note(
          'No session has readings: the device reports neither temperature nor clock (the emulated device does ' +
          'not), or the results were imported without them.'),
      discardedPart(report.sessions)
    ];
  }
  const newest = [...logged].sort((a, b) => b.started_unix_ms - a.started_unix_ms)[0];
  const state = keep('thermal', {chosen: null, asked: null});
  if (asked && state.asked !== id) {
    state.asked = id;
    state.chosen = 'session ' + asked.id;
  }
  const options = thermalOptions(logged, asked);
  return [
    heading, part((renew) => {
      const chosen = options.find((option) => option.id === state.chosen) ||
          options.find((option) => option.sessions.includes(newest));
      const pick = choice('thermal session', 'Night or session', options, chosen.id, (next) => {
        state.chosen = next;
        renew();
      });
      return [element('div', {class: 'controls'}, pick), thermalLog(chosen.sessions, chosen.id)];
    })
  ];
}

const nightGapMs = 6 * 3600000;

/** What can be looked at: nights (sessions of a device with little time between them), and each session. */
function thermalOptions(logged, asked) {
  const each = logged.concat(asked && !logged.includes(asked) ? [asked] : [])
                   .sort((a, b) => b.started_unix_ms - a.started_unix_ms)
                   .map((session) => ({
                          id: 'session ' + session.id,
                          sessions: [session],
                          label: '#' + session.id + ', ' + date(session.started_unix_ms) + ', ' + session.device
                        }));
  return [...nights(logged), ...each];
}

/** The nights with more than one session, the newest first. */
function nights(logged) {
  const found = [];
  for (const session of [...logged].sort((a, b) => a.started_unix_ms - b.started_unix_ms)) {
    const last =
        found.find((night) => night.device === session.device && session.started_unix_ms - night.end < nightGapMs);
    const end = session.finished_unix_ms || greatest(session.telemetry.unix_ms);
    if (last) {
      last.sessions.push(session);
      last.end = Math.max(last.end, end);
    } else {
      found.unshift({device: session.device, end, sessions: [session]});
    }
  }
  return found.filter((night) => night.sessions.length > 1)
      .map((night) => ({
             id: 'night ' + night.sessions[0].id,
             sessions: night.sessions,
             label: dates(night.sessions[0].started_unix_ms, night.end) + ', ' +
                 plural(night.sessions.length, 'session') + ', ' + night.device
           }));
}

function thermalLog(sessions, key) {
  const logs = sessions.filter((session) => session.telemetry && session.telemetry.unix_ms.length > 0);
  const one = sessions.length === 1 ? sessions[0] : null;
  return [
    one ? facts([
      ['Device', one.device], ['Time', dates(one.started_unix_ms, one.finished_unix_ms)],
      ['Spent', duration(one.spent_ms)], ['State', sessionState(one)], ['Trials', countsText(one)],
      ['Readings', one.telemetry ? count(one.telemetry.readings) : 'none']
    ]) :
          null,
    logs.length === 0 ?
        note('This session has no readings: its device reports none, or it was imported without them.') :
        [stateKey(logs), readingFigures(logs, key), readingsTable(logs), statesTable(logs)],
    discardedPart(sessions),
  ];
}

const readings = [
  {name: 'temperature_c', title: 'Temperature', unit: '°C', series: 1},
  {name: 'sm_clock_mhz', title: 'SM clock', unit: 'MHz', series: 0},
  {name: 'memory_clock_mhz', title: 'Memory clock', unit: 'MHz', series: 3},
  {name: 'power_w', title: 'Power', unit: 'W', series: 2},
  {name: 'canary_us', title: 'Canary kernel', unit: 'µs', series: 4},
];

function readingValues(logs, name) {
  return logs.flatMap((session) => session.telemetry[name] || []).filter(isKnown);
}

function readingFigures(logs, key) {
  const known = readings.filter((one) => readingValues(logs, one.name).length > 0);
  const missing = readings.filter((one) => !known.includes(one));
  const first = Math.min(...logs.map((session) => session.telemetry.unix_ms[0]));
  const last = Math.max(...logs.map((session) => session.telemetry.unix_ms[session.telemetry.unix_ms.length - 1]));
  const discarded = logs.flatMap((session) => session.telemetry.discarded);
  return [
    known.map((reading) => figure({
                key: 'reading ' + key + reading.name,
                title: reading.title + ', ' + reading.unit,
                height: 'low',
                config: () => readingConfig(logs, reading, first, last),
                caption: readingCaption(logs, reading)
              })),
    missing.length ?
        note('Not reported by the device: ' + missing.map((one) => one.title.toLowerCase()).join(', ') + '.') :
        null,
    discarded.length ? figure({
      key: 'discarded ' + key,
      title: 'Discarded samples',
      height: 'low',
      caption: plural(sum(discarded.map((one) => one.count)), 'sample') + ' not counted, by the time they were taken.',
      config: () => discardedConfig(logs, discarded, first, last),
      numbers: () => plainTable(
          'Discarded samples by time', ['From', 'To', 'Samples'],
          discarded.map((one) => [date(one.from_unix_ms), clock(one.to_unix_ms, true), count(one.count)]))
    }) :
                       null,
  ];
}

function readingCaption(logs, reading) {
  const values = readingValues(logs, reading.name);
  if (least(values) === greatest(values)) return withUnit(values[0], reading.unit) + ' throughout.';
  return 'From ' + number(least(values)) + ' to ' + withUnit(greatest(values), reading.unit) + '.';
}

function stateKey(logs) {
  const names = stateNames(logs);
  if (names.length === 0) return note('No states of the governor were logged.');
  return element(
      'ul', {class: 'key', 'aria-label': 'Bands behind the lines: states of the governor'}, names.map((state) => {
        const box = element('i', {'aria-hidden': 'true'});
        box.style.backgroundColor = stateColour(names, state);
        return element('li', {}, box, words(state) || 'no state');
      }));
}

function readingsTable(logs) {
  const rows = readings.map((reading) => ({reading, values: readingValues(logs, reading.name)}))
                   .filter((row) => row.values.length > 0);
  return plainTable(
      'Readings: the lowest and the highest of each stretch of time are kept',
      ['Reading', 'Lowest', 'Median', 'Highest'], rows.map(({reading, values}) => {
        const ascending = [...values].sort((a, b) => a - b);
        return [reading.title, ...[0, 0.5, 1].map((share) => withUnit(quantile(ascending, share), reading.unit))];
      }));
}

function statesTable(logs) {
  const names = stateNames(logs);
  if (names.length === 0) return null;
  const states = logs.flatMap((session) => session.telemetry.states);
  const total = sum(states.map((one) => one.to_unix_ms - one.from_unix_ms)) || 1;
  return plainTable('States of the governor', ['State', 'Times', 'Total time', 'Share'], names.map((state) => {
    const of = states.filter((one) => one.state === state);
    const spent = sum(of.map((one) => one.to_unix_ms - one.from_unix_ms));
    return [words(state) || 'no state', count(of.length), duration(spent), percent(spent / total)];
  }));
}

function discardedPart(sessions) {
  const marks = [...new Set(sessions.flatMap((session) => Object.keys(session.discarded)))];
  const samples = sum(sessions.map((session) => session.samples));
  if (samples === 0)
    return note('No samples are stored for ' + (sessions.length === 1 ? 'this session.' : 'these sessions.'));
  if (marks.length === 0) return note('All ' + count(samples) + ' samples count: none was discarded.');
  return plainTable(
      'Discarded samples by reason, of ' + count(samples) + ' taken', ['Reason', 'Samples', 'Share'],
      marks.map((mark) => {
        const of = sum(sessions.map((session) => session.discarded[mark] || 0));
        return [words(mark), count(of), percent(of / samples)];
      }));
}
