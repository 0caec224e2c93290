// All kernels, and one kernel: its shapes, where they stand under the roofline, and how they were searched.

function kernelsPage() {
  if (report.contexts.length === 0) return [element('h1', {}, 'Kernels'), note('There are no trials to show.')];
  return [
    element('h1', {}, 'Kernels'),
    report.contexts.map(
        (context) =>
            element('section', {class: 'context'}, element('h2', {}, contextName(context)), kernelsPart(context)))
  ];
}

function kernelPage(name) {
  const found = kernelsNamed(name);
  if (found.length === 0) {
    return [
      element('h1', {}, name),
      note('The report has no trials of a kernel with this name. ', link(['kernels'], 'All kernels'))
    ];
  }
  return [
    element('nav', {class: 'crumbs', 'aria-label': 'You are here'}, link(['kernels'], 'Kernels')),
    element('h1', {}, name), found.map(({context, kernel}) => kernelPart(context, kernel))
  ];
}

function kernelPart(context, kernel) {
  return element(
      'section', {class: 'context'}, element('h2', {}, contextName(context)),
      note(
          'Source ', element('span', {class: 'code'}, kernel.source_hash.slice(0, 12)),
          kernel.current ? ', the latest one measured here.' :
                           ', an earlier version: the current source may take other times.',
          Object.keys(sharedSizes(kernel)).length ? ' All shapes have ' + configText(sharedSizes(kernel)) + '.' : null),
      problemsTable(context, kernel), rooflinePart(context, kernel), element('h3', {}, 'How it was searched'),
      kernelSearches(context, kernel));
}

function problemsTable(context, kernel) {
  return table({
    key: 'problems ' + contextKey(context) + kernel.name + kernel.source_hash,
    className: 'problems',
    caption: 'Shapes of ' + kernel.name + '. Times are medians per launch in microseconds with their 95 % intervals',
    rows: kernel.problems,
    most: 25,  // so that what is below the table is found
    search: (problem) => problem.text + ' ' + configText(problem.best_config),
    filters: [{
      id: 'state',
      label: 'Show',
      options: [
        {id: 'all', label: 'all shapes', accept: () => true},
        {id: 'decided', label: 'decided in finals', accept: (problem) => problem.decided && !problem.provisional},
        {id: 'provisional', label: 'provisional', accept: (problem) => problem.provisional},
        {id: 'undecided', label: 'undecided', accept: (problem) => !problem.decided},
        {id: 'nothing', label: 'without a usable time', accept: (problem) => !problem.best},
      ]
    }],
    empty: 'The kernel has no problems here.',
    columns: problemColumns(kernel),
  });
}

function problemColumns(kernel) {
  const columns = [
    {
      id: 'problem',
      title: 'Shape',
      value: (problem) => problem.text,
      cell: (problem) => [link(['problem', problem.id], problemText(kernel, problem)), problemNote(problem)]
    },
    {id: 'count', title: 'Calls', numeric: true, value: (problem) => problem.count, help: 'Calls in the workload'},
    {
      id: 'default',
      title: 'Default',
      unit: 'µs',
      numeric: true,
      value: (problem) => problem.default && problem.default.median_us,
      cell: (problem) => problem.baseline_config ? [timeCell(problem.default), '*'] : timeCell(problem.default),
      help: '* where the default is not usable: time of the usable configuration nearest to it'
    },
    {
      id: 'best',
      title: 'Best',
      unit: 'µs',
      numeric: true,
      value: (problem) => problem.best && problem.best.median_us,
      cell: (problem) => timeCell(problem.best)
    },
    {
      id: 'speedup',
      title: 'Speedup',
      numeric: true,
      value: (problem) => problem.speedup && problem.speedup.value,
      cell: (problem) => speedupCell(problem.speedup),
      help: 'Default / best, with the interval that follows from those of both times'
    },
    {
      id: 'confidence',
      title: 'Confidence',
      numeric: true,
      value: (problem) => problem.confidence,
      cell: (problem) => confidence(problem.confidence),
      help: 'Probability that the best is not slower than the default'
    },
    {id: 'gflops', title: rateUnit(kernel), numeric: true, value: (problem) => problem.gflops},
    {id: 'gbs', title: 'GB/s', numeric: true, value: (problem) => problem.gbs},
    {
      id: 'share',
      title: 'Of roofline',
      numeric: true,
      value: (problem) => problem.roofline_share,
      cell: (problem) => percent(problem.roofline_share),
      help: 'Shortest time that arithmetic and memory allow / best time; above 100 % where data stays in the cache'
    },
    {
      id: 'energy',
      title: 'Energy',
      unit: 'mJ',
      numeric: true,
      value: (problem) => problem.energy_mj,
      help: 'Per launch of the best configuration'
    },
    {id: 'trials', title: 'Trials', numeric: true, value: (problem) => problem.trials},
  ];
  // A column without a single value would only take room.
  return columns.filter(
      (column) => !['count', 'share', 'energy'].includes(column.id) ||
          kernel.problems.some((problem) => isKnown(column.value(problem))));
}

function problemNote(problem) {
  if (!problem.best)
    return element('span', {class: 'interval'}, 'nothing usable: ' + (statusText(problem.statuses) || 'no trials'));
  return problem.decided ? null : element('span', {class: 'interval'}, 'undecided');
}

function rooflinePart(context, kernel) {
  const withBest = kernel.problems.filter((problem) => problem.best);
  const drawn = withBest.filter((problem) => problem.flops > 0 && problem.bytes > 0);
  const missing = [];
  if (!isKnown(peakRate(context, kernel)))
    missing.push('The device\'s peak rates are unknown, so no roofline can be drawn.');
  if (drawn.length < withBest.length) {
    missing.push(
        plural(withBest.length - drawn.length, 'shape') + ' without floating-point work or memory traffic ' +
        (withBest.length - drawn.length === 1 ? 'has' : 'have') + ' no place in the plot.');
  }
  const said = missing.length ? note(missing.join(' ')) : null;
  if (drawn.length === 0)
    return [
      element('h3', {}, 'Roofline'), note('No shape with a usable time does arithmetic that could be plotted.'), said
    ];
  return [
    figure({
      key: 'roofline ' + contextKey(context) + kernel.name + kernel.source_hash,
      title: 'Roofline',
      caption: 'Arithmetic rate against operations per byte, both logarithmic. Filled: best. Hollow: default.' +
          (isKnown(peakRate(context, kernel)) ? ' Roof: ' + roofSource(context, kernel) : ''),
      config: () => rooflineConfig(context, kernel, drawn),
      numbers: () => plainTable(
          'Roofline',
          ['Shape', 'Operations per byte', rateUnit(kernel) + ', default', rateUnit(kernel) + ', best', 'Of roofline'],
          drawn.map(
              (problem) =>
                  [problemText(kernel, problem), number(problem.flops / problem.bytes),
                   number(rate(problem, problem.default)), number(rate(problem, problem.best)),
                   percent(problem.roofline_share)])),
    }),
    said
  ];
}

/** What a kernel's rates are counted in. */
function rateUnit(kernel) {
  return kernel.arithmetic === 'int8' ? 'GOP/s (int8)' : 'GFLOP/s';
}

/** Most operations of that kind, 10⁹ a second; null where they are not known. */
function peakRate(context, kernel) {
  if (!context.roofline) return null;
  return kernel.arithmetic === 'int8' ? context.roofline.peak_int8_gops : context.roofline.peak_gflops;
}

function roofSource(context, kernel) {
  return kernel.arithmetic === 'int8' ? 'dp4a instead of ' + context.roofline.source : context.roofline.source;
}

/** 10⁹ operations a second. */
function rate(problem, summary) {
  return summary ? problem.flops / summary.median_us / 1e3 : null;
}

function rooflineConfig(context, kernel, problems) {
  const point = (problem, summary) => (
      {x: problem.flops / problem.bytes, y: rate(problem, summary), text: problem.text, share: problem.roofline_share});
  const best = problems.map((problem) => point(problem, problem.best));
  const defaults = problems.filter((problem) => problem.default).map((problem) => point(problem, problem.default));
  const datasets = [
    {label: 'Best', data: best, borderColor: colour('series-1'), backgroundColor: colour('series-1'), pointRadius: 5},
    {
      label: 'Default',
      data: defaults,
      borderColor: colour('series-2'),
      backgroundColor: 'transparent',
      pointRadius: 5,
      pointStyle: 'rect',
      pointBorderWidth: 1.5
    },
  ];
  const xs = best.map((one) => one.x);
  let x = logBounds(xs, 3);
  const ys = [...best, ...defaults].map((one) => one.y);
  const peak = peakRate(context, kernel);
  const unit = rateUnit(kernel);
  if (isKnown(peak)) {
    const bandwidth = context.roofline.memory_gbps;
    const ridge = peak / bandwidth;
    x = logBounds([...xs, ridge], 3);
    datasets.push(
        {
          label: 'Memory, ' + number(bandwidth) + ' GB/s',
          type: 'line',
          pointRadius: 0,
          borderWidth: 2,
          borderColor: colour('series-3'),
          backgroundColor: colour('series-3'),
          pointStyle: 'line',
          data: [{x: x.min, y: x.min * bandwidth}, {x: ridge, y: peak}]
        },
        {
          label: 'Arithmetic, ' + number(peak) + ' ' + unit,
          type: 'line',
          pointRadius: 0,
          borderWidth: 2,
          borderDash: [6, 3],
          borderColor: colour('series-4'),
          backgroundColor: colour('series-4'),
          pointStyle: 'line',
          data: [{x: ridge, y: peak}, {x: x.max, y: peak}]
        });
    ys.push(peak);
  }
  return {
    type: 'scatter',
    data: {datasets},
    options: {
      scales: {x: logAxis('Operations per byte', x), y: logAxis(unit, logBounds(ys, 1.6))},
      plugins: {
        tooltip: {
          filter: (item) => item.datasetIndex < 2,
          callbacks: {
            label: (item) =>
                [shortened(item.raw.text, 60), item.dataset.label + ': ' + number(item.raw.y) + ' ' + unit,
                 item.datasetIndex === 0 && isKnown(item.raw.share) ? percent(item.raw.share) + ' of the roofline' : '']
                    .filter((line) => line)
          }
        }
      },
    }
  };
}
