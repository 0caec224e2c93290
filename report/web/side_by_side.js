// Chosen configurations beside each other: parameters, what was measured, samples.

// What a configuration is seen by besides its parameters: title, value, how it is shown.
const measuredFigures = [
  ['Median', (row) => row.median_us, (value) => withUnit(value, 'µs')],
  [
    '95 % interval', (row) => (isKnown(row.low_us) ? row.low_us + row.high_us : null),
    (value, row) => range(row.low_us, row.high_us, number) + noBreakSpace + 'µs'
  ],
  ['Counted samples', (row) => row.samples_counted, count],
  ['Status', (row) => row.status, words],
  ['Stage', (row) => row.stage, words],
  ['Reason', (row) => row.reason || null, (value) => value],
  ['Registers per thread', (row) => row.registers, count],
  ['Shared memory per block', (row) => row.shared_bytes, (value) => count(value) + noBreakSpace + 'B'],
  ['Occupancy', (row) => row.occupancy || null, percent],
  ['Local memory per thread (spills)', (row) => row.local_bytes, (value) => count(value) + noBreakSpace + 'B'],
  ['Loads from local memory', (row) => row.local_loads, count],
  ['Stores to local memory', (row) => row.local_stores, count],
  ['Machine instructions', (row) => row.instructions, count],
  ['Fused multiply-adds', (row) => row.ffma, count],
  ['Temperature', (row) => row.temperature_c, (value) => withUnit(value, '°C')],
  ['SM clock', (row) => row.sm_clock_mhz, (value) => withUnit(value, 'MHz')],
  ['Power', (row) => row.power_w, (value) => withUnit(value, 'W')],
  ['Energy per launch', (row) => row.energy_mj, (value) => withUnit(value, 'mJ')],
  ['Largest error', (row) => row.max_error, number],
  ['Session', (row) => row.session, (value) => '#' + value],
];

function sideBySide(entry, chosen, state, renew) {
  const {columns} = entry.problem.configurations;
  const parameters =
      columns.map((name, at) => ({
                    title: name,
                    code: true,
                    values: chosen.map((row) => row.values[at]),
                    cells: chosen.map((row) => String(row.values[at] === null ? unknown : row.values[at]))
                  }));
  const figures =
      measuredFigures.map(([title, value, show]) => ({
                            title,
                            values: chosen.map(value),
                            cells: chosen.map((row) => (isKnown(value(row)) ? show(value(row), row) : unknown))
                          }));
  const differs = (line) => line.values.some((value) => value !== line.values[0]);
  const wanted = [
    ...parameters.filter((line) => state.all || chosen.length < 2 || differs(line)),
    ...figures.filter((line) => line.values.some(isKnown))
  ];
  const hidden = parameters.length - wanted.filter((line) => line.code).length;
  const line = (one) => element(
      'tr', {class: one.code && chosen.length > 1 && differs(one) ? 'differs' : null},
      element('th', {scope: 'row', class: one.code ? 'code' : null}, one.title),
      one.cells.map((cell) => element('td', {class: 'number'}, cell)));
  const compared = comparedTimes(chosen);
  return element(
      'div', {class: 'side-by-side'}, element('h3', {}, 'Side by side'),
      element(
          'div', {class: 'controls'},
          checkbox(
              'all parameters', 'Also show parameters that are the same', state.all,
              (on) => {
                state.kept.all = on;
                renew();
              })),
      scrollBox(
          'Chosen configurations side by side',
          element(
              'table', {class: 'compared'},
              caption(
                  'Chosen configurations side by side; parameters that differ are marked',
                  hidden ? '; not shown: ' + plural(hidden, 'parameter') + ' that ' + (hidden === 1 ? 'is' : 'are') +
                          ' the same' :
                           ''),
              element(
                  'thead', {},
                  element(
                      'tr', {}, element('th', {scope: 'col'}, 'Trial'),
                      chosen.map((row) => element('th', {scope: 'col', class: 'number'}, rowName(row))))),
              element('tbody', {}, compared ? line(compared) : null, wanted.map(line)))));
}

/** Each median over the least of those chosen. */
function comparedTimes(chosen) {
  const medians = chosen.map((row) => row.median_us).filter(isKnown);
  if (medians.length < 2) return null;
  const least = Math.min(...medians);
  const ratios = chosen.map((row) => (isKnown(row.median_us) ? row.median_us / least : null));
  return {
    title: 'Time relative to the fastest of these',
    values: ratios,
    cells: ratios.map((value) => (isKnown(value) ? value.toFixed(3) : unknown))
  };
}

function samplesPart(entry, chosen, state, renew) {
  const sampled = chosen.filter((row) => row.samples_us && row.samples_us.length > 0);
  if (sampled.length === 0) return note('No samples of the chosen configurations are in the report.');
  const relative = checkbox('relative samples', 'Relative to each one\'s median', state.relative, (on) => {
    state.kept.relative = on;
    renew();
  });
  return element('div', {class: 'samples'}, element('div', {class: 'controls'}, relative), figure({
                   key: 'samples ' + entry.key,
                   title: 'Samples of the chosen configurations',
                   height: 'high',
                   caption: 'Each point is a counted launch, in the order of measurement from left to right; the box ' +
                       'spans the middle half, its line is the median.',
                   config: () => samplesConfig(
                       sampled.map((row) => ({row, values: shownSamples(row, state.relative)})), state.relative),
                   numbers: () => plainTable(
                       'Samples of the chosen configurations, µs',
                       ['Trial', 'Minimum', 'Lower quartile', 'Median', 'Upper quartile', 'Maximum', 'Shown'],
                       sampled.map((row) => {
                         const ascending = [...row.samples_us].sort((a, b) => a - b);
                         return [
                           rowName(row), ...[0, 0.25, 0.5, 0.75, 1].map((share) => number(quantile(ascending, share))),
                           count(ascending.length)
                         ];
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
  const datasets = sampled.map(
      ({values}, at) => ({
        label: names[at],
        borderColor: seriesColour(at),
        backgroundColor: faded(seriesColour(at), 0.55),
        pointRadius: 3,
        pointStyle: pointShapes[at % pointShapes.length],
        data: values.map(
            (value, i) => ({y: value, x: at + (values.length > 1 ? (i / (values.length - 1) - 0.5) * 0.7 : 0)})),
      }));
  const show = (value) => (relative ? value.toFixed(4) : withUnit(value, 'µs'));
  return {
    type: 'scatter',
    data: {datasets},
    plugins: [sampleBoxes(sampled)],
    options: {
      scales: {
        x: {
          min: -0.6,
          max: sampled.length - 0.4,
          grid: {display: false},
          afterBuildTicks: (axis) => {
            axis.ticks = names.map((name, i) => ({value: i}));
          },
          ticks: {autoSkip: false, maxRotation: 60, callback: (value) => names[value] || ''}
        },
        y: linearAxis(relative ? 'Launch time relative to the median' : 'Launch time, µs', {grace: '8%'}),
      },
      plugins: {
        legend: {display: false},
        tooltip: {callbacks: {label: (item) => item.dataset.label + ': ' + show(item.raw.y)}}
      },
    }
  };
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
        const [top, middle, bottom] =
            [0.75, 0.5, 0.25].map((share) => scales.y.getPixelForValue(quantile(ascending, share)));
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
