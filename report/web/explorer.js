// Configurations of a problem: choose some, and see them side by side.

const mostChosen = 8;

function explorerKept(entry) {
  return keep('explorer ' + entry.key, {chosen: null, all: false, relative: false});
}

/** The state of a problem's explorer: trials chosen, none before the reader chose (then the best and the default). */
function explorerState(entry) {
  const state = explorerKept(entry);
  const rows = entry.problem.configurations.rows;
  if (state.chosen === null) {
    const wanted = [rows.find((row) => row.best), rows.find((row) => row.default)];
    const first = [...new Set(wanted.filter((row) => row).map((row) => row.trial))];
    const others = rows.filter((row) => isKnown(row.median_us) && !first.includes(row.trial)).map((row) => row.trial);
    return {...state, shown: first.length >= 2 ? first : [...first, ...others].slice(0, 2), kept: state};
  }
  return {...state, shown: state.chosen.filter((trial) => rows.some((row) => row.trial === trial)), kept: state};
}

function explorerPart(entry) {
  const {configurations} = entry.problem;
  if (configurations.rows.length === 0) return note('No configuration was tried, so there is none to look at.');
  return part((renew) => {
    const state = explorerState(entry);
    const toggle = (trial, on) => {
      state.kept.chosen = on ? [...state.shown, trial].slice(-mostChosen) : state.shown.filter((one) => one !== trial);
      rememberSelection(entry, state.kept.chosen);
      renew();
    };
    const chosen = state.shown.map((trial) => configurations.rows.find((row) => row.trial === trial));
    return [
      paragraph('Tick two or more configurations (at most ' + mostChosen + '). ', configurations.shown < configurations.of
        ? 'Of ' + count(configurations.of) + ' tried, the report holds ' + count(configurations.shown) +
          ': the best, the default, the finalists and a spread of the rest.' : ''),
      configurationsTable(entry, state.shown, toggle),
      chosen.length === 0 ? note('No configuration is chosen.') : element('div', {class: 'explored'},
        sideBySide(entry, chosen, state, renew), samplesPart(entry, chosen, state, renew)),
    ];
  });
}

/** Puts the choice into the address, so that it can be passed on. */
function rememberSelection(entry, trials) {
  try {
    history.replaceState(null, '', '#/problem/' + entry.problem.id + (trials.length ? '/' + trials.join(',') : ''));
  } catch (refused) {
    // Some viewers of files have no history: the choice is then not in the address.
  }
}

function rowName(row) {
  const marks = [row.best ? 'best' : '', row.default ? 'default' : ''].filter((mark) => mark);
  return '#' + row.trial + (marks.length ? ' (' + marks.join(', ') + ')' : '');
}

function configurationsTable(entry, chosen, toggle) {
  const {configurations} = entry.problem;
  const varied = variedColumns(configurations);
  const values = (row) => varied.map((at) => configurations.columns[at] + '=' + row.values[at]).join(' ');
  return table({
    key: 'configurations ' + entry.key, caption: 'Configurations of ' + entry.problem.text, rows: configurations.rows,
    tall: true, sort: 'median', search: (row) => [rowName(row), values(row), words(row.status), row.reason].join(' '),
    filters: [{id: 'status', label: 'Show', options: [
      {id: 'all', label: 'all', accept: () => true},
      {id: 'ok', label: 'ok', accept: (row) => row.status === 'ok'},
      {id: 'failed', label: 'not ok', accept: (row) => row.status !== 'ok'},
      {id: 'finals', label: 'finalists', accept: (row) => row.stage === 'finals'},
    ]}],
    rowClass: (row) => [row.status === 'ok' ? '' : 'failed', chosen.includes(row.trial) ? 'chosen' : ''].join(' ').trim() || null,
    columns: [
      {id: 'trial', title: 'Trial', value: (row) => row.trial, cell: (row) => checkbox('choose ' + row.trial, rowName(row),
        chosen.includes(row.trial), (on) => toggle(row.trial, on))},
      {id: 'median', title: 'Median', unit: 'µs', numeric: true, ascending: true, value: (row) => row.median_us,
        cell: (row) => timeCell(isKnown(row.median_us) ? row : null)},
      {id: 'status', title: 'Status', value: (row) => row.status, cell: (row) => [words(row.status),
        row.stage === 'finals' ? element('span', {class: 'interval'}, 'finals') : null]},
      {id: 'registers', title: 'Registers', numeric: true, value: (row) => row.registers},
      {id: 'shared', title: 'Shared', unit: 'B', numeric: true, value: (row) => row.shared_bytes},
      {id: 'occupancy', title: 'Occupancy', numeric: true, value: (row) => row.occupancy, cell: (row) => percent(row.occupancy || null)},
      {id: 'config', title: 'Parameters that vary', wide: true, value: values, cell: (row) => [
        element('span', {class: 'code'}, values(row)), row.reason ? element('span', {class: 'reason muted'}, ' ' + row.reason) : null]},
    ],
  });
}

/** Places of the columns whose values are not the same in all rows. */
function variedColumns(configurations) {
  return configurations.columns.map((name, at) => at).filter((at) =>
    configurations.rows.some((row) => row.values[at] !== configurations.rows[0].values[at]));
}

// What a configuration is seen by besides its parameters: title, value, how it is shown.
const measuredFigures = [
  ['Median', (row) => row.median_us, (value) => withUnit(value, 'µs')],
  ['95 % interval', (row) => (isKnown(row.low_us) ? row.low_us + row.high_us : null),
    (value, row) => range(row.low_us, row.high_us, number) + noBreakSpace + 'µs'],
  ['Samples that count', (row) => row.samples_counted, count],
  ['Status', (row) => row.status, words],
  ['Stage', (row) => row.stage, words],
  ['Reason', (row) => row.reason || null, (value) => value],
  ['Registers a thread', (row) => row.registers, count],
  ['Shared memory a block', (row) => row.shared_bytes, (value) => count(value) + noBreakSpace + 'B'],
  ['Occupancy', (row) => row.occupancy || null, percent],
  ['Local memory a thread (spills)', (row) => row.local_bytes, (value) => count(value) + noBreakSpace + 'B'],
  ['Loads from local memory', (row) => row.local_loads, count],
  ['Stores to local memory', (row) => row.local_stores, count],
  ['Machine instructions', (row) => row.instructions, count],
  ['Fused multiply-adds', (row) => row.ffma, count],
  ['Temperature', (row) => row.temperature_c, (value) => withUnit(value, '°C')],
  ['SM clock', (row) => row.sm_clock_mhz, (value) => withUnit(value, 'MHz')],
  ['Power', (row) => row.power_w, (value) => withUnit(value, 'W')],
  ['Energy of a launch', (row) => row.energy_mj, (value) => withUnit(value, 'mJ')],
  ['Greatest error', (row) => row.max_error, number],
  ['Session', (row) => row.session, (value) => '#' + value],
];

function sideBySide(entry, chosen, state, renew) {
  const {columns} = entry.problem.configurations;
  const parameters = columns.map((name, at) => ({title: name, code: true, values: chosen.map((row) => row.values[at]),
    cells: chosen.map((row) => String(row.values[at] === null ? unknown : row.values[at]))}));
  const figures = measuredFigures.map(([title, value, show]) => ({title, values: chosen.map(value),
    cells: chosen.map((row) => (isKnown(value(row)) ? show(value(row), row) : unknown))}));
  const differs = (line) => line.values.some((value) => value !== line.values[0]);
  const wanted = [...parameters.filter((line) => state.all || chosen.length < 2 || differs(line)),
    ...figures.filter((line) => line.values.some(isKnown))];
  const hidden = parameters.length - wanted.filter((line) => line.code).length;
  const line = (one) => element('tr', {class: one.code && chosen.length > 1 && differs(one) ? 'differs' : null},
    element('th', {scope: 'row', class: one.code ? 'code' : null}, one.title),
    one.cells.map((cell) => element('td', {class: 'number'}, cell)));
  const compared = comparedTimes(chosen);
  return element('div', {class: 'side-by-side'}, element('h3', {}, 'Side by side'),
    element('div', {class: 'controls'}, checkbox('all parameters', 'Show parameters that are the same too', state.all, (on) => {
      state.kept.all = on;
      renew();
    })),
    scrollBox('Chosen configurations side by side', element('table', {class: 'compared'},
      caption('Chosen configurations side by side; parameters that differ are marked',
        hidden ? '; ' + plural(hidden, 'parameter') + ' that ' + (hidden === 1 ? 'is' : 'are') + ' the same not shown' : ''),
      element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, 'Trial'),
        chosen.map((row) => element('th', {scope: 'col', class: 'number'}, rowName(row))))),
      element('tbody', {}, compared ? line(compared) : null, wanted.map(line)))));
}

/** Each median over the least of those chosen. */
function comparedTimes(chosen) {
  const medians = chosen.map((row) => row.median_us).filter(isKnown);
  if (medians.length < 2) return null;
  const least = Math.min(...medians);
  const ratios = chosen.map((row) => (isKnown(row.median_us) ? row.median_us / least : null));
  return {title: 'Time over the fastest of these', values: ratios, cells: ratios.map((value) => (isKnown(value) ? value.toFixed(3) : unknown))};
}

function samplesPart(entry, chosen, state, renew) {
  const sampled = chosen.filter((row) => row.samples_us && row.samples_us.length > 0);
  if (sampled.length === 0) return note('No samples of the chosen configurations are in the report.');
  const relative = checkbox('relative samples', 'Each over its own median', state.relative, (on) => {
    state.kept.relative = on;
    renew();
  });
  return element('div', {class: 'samples'}, element('div', {class: 'controls'}, relative), figure({
    key: 'samples ' + entry.key, title: 'Samples of the chosen configurations', height: 'high',
    caption: 'Each point is a launch that counts, in the order taken from left to right; the box holds the middle half, its line the median.',
    config: () => samplesConfig(sampled.map((row) => ({row, values: shownSamples(row, state.relative)})), state.relative),
    numbers: () => plainTable('Samples of the chosen configurations, µs', ['Trial', 'Least', 'Lower quartile', 'Median', 'Upper quartile',
      'Greatest', 'Shown'], sampled.map((row) => {
      const ascending = [...row.samples_us].sort((a, b) => a - b);
      return [rowName(row), ...[0, 0.25, 0.5, 0.75, 1].map((share) => number(quantile(ascending, share))), count(ascending.length)];
    })),
  }));
}

/** A row's samples in µs, or over their median. */
function shownSamples(row, relative) {
  const middle = relative ? quantile([...row.samples_us].sort((a, b) => a - b), 0.5) : 1;
  return row.samples_us.map((value) => value / middle);
}

function samplesConfig(sampled, relative) {
  const names = sampled.map(({row}) => rowName(row));
  const datasets = sampled.map(({values}, at) => ({
    label: names[at], borderColor: seriesColour(at), backgroundColor: faded(seriesColour(at), 0.55), pointRadius: 3,
    pointStyle: pointShapes[at % pointShapes.length],
    data: values.map((value, i) => ({y: value, x: at + (values.length > 1 ? (i / (values.length - 1) - 0.5) * 0.7 : 0)})),
  }));
  const show = (value) => (relative ? value.toFixed(4) : withUnit(value, 'µs'));
  return {type: 'scatter', data: {datasets}, plugins: [sampleBoxes(sampled)], options: {
    scales: {
      x: {min: -0.6, max: sampled.length - 0.4, grid: {display: false},
        afterBuildTicks: (axis) => { axis.ticks = names.map((name, i) => ({value: i})); },
        ticks: {autoSkip: false, maxRotation: 60, callback: (value) => names[value] || ''}},
      y: linearAxis(relative ? 'Time of a launch over the median' : 'Time of a launch, µs', {grace: '8%'}),
    },
    plugins: {legend: {display: false}, tooltip: {callbacks: {label: (item) => item.dataset.label + ': ' + show(item.raw.y)}}},
  }};
}

function sampleBoxes(sampled) {
  return {
    id: 'boxes',
    beforeDatasetsDraw({ctx, scales}) {
      ctx.save();
      ctx.strokeStyle = colour('muted');
      ctx.fillStyle = faded(colour('muted'), 0.12);
      sampled.forEach(({values}, at) => {
        const ascending = [...values].sort((a, b) => a - b);
        const [top, middle, bottom] = [0.75, 0.5, 0.25].map((share) => scales.y.getPixelForValue(quantile(ascending, share)));
        const left = scales.x.getPixelForValue(at - 0.4);
        const right = scales.x.getPixelForValue(at + 0.4);
        ctx.lineWidth = 1;
        ctx.fillRect(left, top, right - left, bottom - top);
        ctx.strokeRect(left, top, right - left, bottom - top);
        ctx.lineWidth = 2.5;
        ctx.beginPath();
        ctx.moveTo(left, middle);
        ctx.lineTo(right, middle);
        ctx.stroke();
      });
      ctx.restore();
    },
  };
}
