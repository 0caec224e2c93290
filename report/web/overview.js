// What was tuned, on what, what it gained, and what is left.

function overviewPage() {
  if (report.database.trials + report.database.finals === 0) return emptyOverview();
  return [
    element('h1', {}, report.title),
    note([
      inFilter(),
      dates(
          Math.min(...report.contexts.map((one) => one.first_unix_ms)),
          Math.max(...report.contexts.map((one) => one.last_unix_ms)))
    ].filter((text) => text)
             .join(' ')),
    tiles([
      {
        label: 'Trials',
        value: count(report.database.trials),
        detail: 'in ' + plural(report.database.sessions, 'session')
      },
      {label: 'Problems with a winner', value: decidedTile().value, detail: decidedTile().detail},
      {label: 'Kernels', value: count(kernelNames().length), detail: kernelNames().join(', ')},
      {
        label: 'Tuning time',
        value: duration(sum(report.contexts.map((one) => one.spent_ms))),
        detail: 'over ' + plural(report.contexts.length, 'device and toolkit', 'devices and toolkits')
      },
    ]),
    report.contexts.length === 0 ? note('The database has no trials of the kernel and device asked for.') : null,
    report.compilers.map(compilersPart),
    report.contexts.map(contextOverview),
    section('Sessions', sessionsTable()),
  ];
}

function emptyOverview() {
  return [
    element('h1', {}, report.title), note(inFilter()),
    paragraph(
        'The database ', element('code', {}, report.database.file), ' holds no trials yet. ',
        report.sessions.length ?
            'Its sessions are below; a trial is stored as soon as its configuration has been tried.' :
            'Run pascaline sweep to fill it.'),
    report.sessions.length ? section('Sessions', sessionsTable()) : null
  ];
}

function decidedTile() {
  const all = [...problemsById.values()].filter((entry) => entry.kernel.current);
  const decided = all.filter((entry) => entry.problem.decided);
  const provisional = decided.filter((entry) => entry.problem.provisional).length;
  return {
    value: count(decided.length) + ' of ' + count(all.length),
    detail: provisional ?
        count(provisional) + ' of them provisional: the best by the search\'s trials, as no time was left for finals' :
        'decided in finals'
  };
}

/** Which compiler's code is the fastest, where several built the same kernels for one device. */
function compilersPart(comparison) {
  const named = comparison.compilers.map((compiler) => compiler.name);
  return section(
      'Compilers on ' + comparison.device,
      facts(comparison.compilers.map(
          (compiler) =>
              [compiler.name,
               'the fastest of ' + count(compiler.fastest_of) + ' of ' + plural(comparison.rows.length, 'problem') +
                   '; choosing for each problem is ' + times(compiler.gain) + ' as fast as this one alone'])),
      table({
        key: 'compilers ' + [comparison.device, comparison.target, comparison.driver_version].join(' '),
        caption: 'The best configuration of each compiler, ' + targetName(comparison.target) +
            '; small differences may be luck',
        rows: comparison.rows,
        columns: [
          {id: 'problem', title: 'Problem', value: (row) => row.problem, cell: (row) => row.problem},
          ...named.map((name, index) => ({
                         id: 'compiler' + index,
                         title: name,
                         numeric: true,
                         value: (row) => (row.best[index] ? row.best[index].median_us : null),
                         cell: (row) => (row.best[index] ? time(row.best[index].median_us) : null)
                       })),
          {id: 'fastest', title: 'Fastest', value: (row) => named[row.fastest], cell: (row) => named[row.fastest]}, {
            id: 'speedup',
            title: 'Over the slowest',
            numeric: true,
            value: (row) => row.speedup,
            cell: (row) => times(row.speedup)
          }
        ]
      }));
}

function contextOverview(context) {
  const failed = failedTrials(context.statuses);
  return element(
      'section', {class: 'context'}, element('h2', {}, context.device.name), facts([
        ['Device', deviceFacts(context.device) || context.device.kind],
        ['Toolkit', [context.toolkit.compiler, context.toolkit.version].join(' ')],
        ['Target', targetName(context.toolkit.target)],
        ['Driver', context.toolkit.driver_version || 'none'],
        ['First and last trial', dates(context.first_unix_ms, context.last_unix_ms)],
        ['Time spent', duration(context.spent_ms)],
        ['Trials', countsText(context)],
        [
          'Mean speedup over defaults',
          isKnown(context.mean_speedup) ? times(context.mean_speedup) + ', geometric, of the decided problems' : unknown
        ],
        ['Not usable', failed ? link(['failures'], statusText(failedStatuses(context.statuses))) : 'none'],
      ]),
      workloadPart(context), speedupsPart(context), kernelsPart(context));
}

function workloadPart(context) {
  const workload = context.workload;
  if (!workload) {
    return [
      element('h3', {}, 'The whole model'),
      note(
          'Unknown: no sweep of a model or workload is reported here, so it is not known how often a model calls each ' +
          'problem (pascaline report --workload FILE says it).')
    ];
  }
  return [
    element('h3', {}, 'All calls of ' + workload.name),
    note(
        'Each problem\'s time multiplied by the number of calls the model makes. Problems without a winner count with their ' +
        'defaults on both sides. The interval is that of 95 %, from those of the times and the tests of the finals. The ' +
        'confidence is that of the least certain problem not won by the default.'),
    tiles(workload.totals.map(totalTile)), curvePart(context), phasesTable(context), untunedPart(context)
  ];
}

/** The model's time over that of the sweep: steps, one where a winner was decided. */
function curvePart(context) {
  const {curve} = context.workload;
  if (!curve || curve.length < 2) return null;
  return figure({
    key: 'model curve ' + contextKey(context),
    title: 'Model time while the sweep ran',
    height: 'low',
    caption:
        'The model\'s time with the winners decided until then, provisional ones among them, and the defaults of all ' +
        'other problems. Dashed: with all defaults.',
    config: () => curveConfig(curve),
    numbers: () => plainTable(
        'Model time while the sweep ran', ['Elapsed', 'Model', 'Speedup'],
        curve.map(
            (point) =>
                [duration(point.elapsed_s * 1000), time(point.model_us), times(point.default_us / point.model_us)])),
  });
}

function curveConfig(curve) {
  const line = (label, value, hue, dash) => ({
    label,
    showLine: true,
    stepped: 'before',
    borderColor: hue,
    backgroundColor: hue,
    borderDash: dash ? [6, 4] : [],
    borderWidth: 2,
    pointRadius: dash ? 0 : 2,
    data: curve.map((point) => ({x: point.elapsed_s / 60, y: value(point) / 1000}))
  });
  return {
    type: 'scatter',
    data: {
      datasets: [
        line('with the winners', (point) => point.model_us, seriesColour(0), false),
        line('with all defaults', (point) => point.default_us, seriesColour(1), true)
      ]
    },
    options: {
      scales: {
        x: {min: 0, title: {display: true, text: 'Minutes since the sweep began'}},
        y: {min: 0, title: {display: true, text: 'Model time, ms'}}
      },
      plugins: {tooltip: {callbacks: {label: (item) => item.dataset.label + ': ' + time(item.raw.y * 1000)}}},
    },
  };
}

function totalTile(total) {
  const known = isKnown(total.speedup);
  return {
    label: ['All phases, each problem once', configText(total.types)].filter((text) => text).join(': '),
    value: known ? times(total.speedup) : '–',
    detail: [
      known ? range(total.speedup_low, total.speedup_high, ratioText) + ', confidence ' + confidence(total.confidence) :
              null,
      known ? time(total.default_us) + ' to ' + time(total.best_us) : null,
      count(total.tuned) + ' of ' + count(total.problems) + ' problems tuned' +
          (isKnown(total.decided_share) ? ', ' + percent(total.decided_share) + ' of the default time' : '')
    ].filter((text) => text)
                .join('; ')
  };
}

function phasesTable(context) {
  const {name, phases} = context.workload;
  return table({
    key: 'phases ' + contextKey(context),
    caption: 'Speedup of ' + name + ' over the default configurations',
    rows: phases,
    columns: [
      {id: 'phase', title: 'Phase', value: phaseTitle, cell: phaseName},
      {
        id: 'speedup',
        title: 'Speedup',
        numeric: true,
        value: (phase) => phase.speedup,
        cell: (phase) => isKnown(phase.speedup) ?
            withInterval(
                element('strong', {}, times(phase.speedup)), range(phase.speedup_low, phase.speedup_high, ratioText)) :
            null
      },
      {
        id: 'confidence',
        title: 'Confidence',
        numeric: true,
        value: (phase) => phase.confidence,
        cell: (phase) => confidence(phase.confidence)
      },
      {
        id: 'default',
        title: 'Default',
        numeric: true,
        value: (phase) => (phase.tuned ? phase.default_us : null),
        cell: (phase) => (phase.tuned ? time(phase.default_us) : null)
      },
      {
        id: 'best',
        title: 'Best',
        numeric: true,
        value: (phase) => (phase.tuned ? phase.best_us : null),
        cell: (phase) => (phase.tuned ? time(phase.best_us) : null)
      },
      {
        id: 'tuned',
        title: 'Tuned problems',
        numeric: true,
        value: (phase) => (phase.problems ? phase.tuned / phase.problems : null),
        cell: (phase) => count(phase.tuned) + ' of ' + count(phase.problems)
      },
    ],
  });
}

function phaseName(phase) {
  const symbols = configText({...phase.symbols, ...phase.types});
  return [
    phase.phase, phase.per && phase.per !== phase.phase ? ' (one ' + phase.per + ')' : '',
    symbols ? element('span', {class: 'interval'}, symbols) : null
  ];
}

function untunedPart(context) {
  const {phases} = context.workload;
  // A problem may be one of several phases.
  const listed = new Set(phases.flatMap((phase) => phase.untuned.map((one) => one.problem)));
  const more = sum(phases.map((phase) => phase.untuned_more));
  const total = listed.size + more;
  if (total === 0) return note('Every problem of it is tuned.');
  const rows = phases.flatMap(
      (phase) => phase.untuned.map((one) => [phaseTitle(phase), one.problem, one.kernel, count(one.count)]));
  return details(
      'untuned ' + contextKey(context), 'Still untuned: ' + plural(total, 'problem'),
      () => element(
          'div', {},
          plainTable(
              'Problems that are not tuned, or whose default has no time, by phase',
              ['Phase', 'Problem', 'Kernel', 'Calls'], rows, 3),
          more ? note('And ' + count(more) + ' more.') : null));
}

function phaseTitle(phase) {
  return [phase.phase, configText({...phase.symbols, ...phase.types})].join(' ').trim();
}

function speedupsPart(context) {
  const kernels = context.kernels.filter((kernel) => kernel.current);
  const rows = kernels.map((kernel) => kernel.problems.filter((problem) => problem.speedup));
  if (sum(rows.map((row) => row.length)) === 0) {
    return [element('h3', {}, 'Speedup of each problem'), note('No problem has both a default and a best time yet.')];
  }
  const shown = kernels.filter((kernel, i) => rows[i].length > 0);
  return figure({
    key: 'speedups ' + contextKey(context),
    title: 'Speedup of each problem over its default',
    height: shown.length > 8                   ? 'tall' :
        sum(rows.map((row) => row.length)) < 8 ? 'low' :
                                                 null,
    caption: 'One point per problem, with the interval that follows from those of its times; hollow while undecided.',
    config: () => speedupsConfig(shown),
    numbers: () => plainTable(
        'Speedup by kernel', ['Kernel', 'Decided problems', 'Geometric mean', 'Lowest', 'Highest'],
        shown.map((kernel) => [kernel.name, ...speedupFigures(kernel)])),
  });
}

function decidedSpeedups(kernel) {
  return kernel.problems.filter((problem) => problem.decided && problem.speedup)
      .map((problem) => problem.speedup.value);
}

function speedupFigures(kernel) {
  const speedups = decidedSpeedups(kernel);
  if (speedups.length === 0) return ['0', null, null, null];
  return [
    count(speedups.length), times(geometricMean(speedups)), times(Math.min(...speedups)), times(Math.max(...speedups))
  ];
}

function speedupsConfig(kernels) {
  const datasets = kernels.map((kernel, at) => {
    const problems =
        kernel.problems.filter((problem) => problem.speedup).sort((a, b) => b.speedup.value - a.speedup.value);
    const hue = seriesColour(at);
    return {
      label: kernel.name,
      borderColor: hue,
      pointRadius: problems.length > 60 ? 2.5 : 4.5,
      pointStyle: pointShapes[at % pointShapes.length],
      backgroundColor: problems.map((problem) => (problem.decided ? faded(hue, 0.7) : 'transparent')),
      data: problems.map((problem, i) => ({
                           x: problem.speedup.value,
                           low: problem.speedup.low,
                           high: problem.speedup.high,
                           y: at + (problems.length > 1 ? (i / (problems.length - 1) - 0.5) * 0.6 : 0),
                           text: problem.text
                         })),
    };
  });
  const values =
      datasets.flatMap((set) => set.data.flatMap((point) => [point.x, point.low, point.high])).filter(isKnown);
  return {
    type: 'scatter',
    data: {datasets},
    plugins: [whiskers(true), ruler('x', 1)],
    options: {
      scales: {
        x: logAxis('Speedup (default / best)', logBounds([...values, 1], 1.08)),
        y: {
          min: -0.6,
          max: kernels.length - 0.4,
          reverse: true,
          grid: {display: false},
          afterBuildTicks: (axis) => {
            axis.ticks = kernels.map((kernel, i) => ({value: i}));
          },
          ticks: {autoSkip: false, callback: (value) => shortened(kernels[value] ? kernels[value].name : '', 18)}
        },
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          callbacks: {
            label: (item) =>
                [shortened(item.raw.text, 60), times(item.raw.x) + '  ' + range(item.raw.low, item.raw.high, times)]
          }
        }
      },
    },
  };
}

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + '…' : text;
}

function kernelsPart(context) {
  return table({
    key: 'kernels ' + contextKey(context),
    caption: 'Kernels on ' + contextName(context),
    rows: context.kernels,
    empty: 'No kernel has any trials here.',
    columns: [
      {
        id: 'name',
        title: 'Kernel',
        value: (kernel) => kernel.name,
        cell: (kernel) =>
            [link(['kernels', kernel.name], kernel.name),
             kernel.current ? null :
                              element('span', {class: 'interval'}, 'earlier source ' + kernel.source_hash.slice(0, 8))]
      },
      {id: 'problems', title: 'Problems', numeric: true, value: (kernel) => kernel.problems.length},
      {
        id: 'decided',
        title: 'Decided',
        numeric: true,
        value: (kernel) => kernel.problems.filter((one) => one.decided).length
      },
      {id: 'trials', title: 'Trials', numeric: true, value: (kernel) => sum(kernel.problems.map((one) => one.trials))},
      {
        id: 'speedup',
        title: 'Speedup, geometric mean',
        numeric: true,
        cell: (kernel) => speedupFigures(kernel)[1],
        value: (kernel) => geometricMean(decidedSpeedups(kernel))
      },
      {
        id: 'greatest',
        title: 'Highest',
        numeric: true,
        cell: (kernel) => speedupFigures(kernel)[3],
        value: (kernel) => Math.max(0, ...decidedSpeedups(kernel)) || null
      },
    ],
  });
}
