// One problem: its figures, its searches, its configurations and its parameters.

function problemPage(id, trials) {
  const entry = problemsById.get(Number(id));
  if (!entry) {
    return [
      element('h1', {}, 'No such problem'),
      note('The report has no problem with this number. ', link(['kernels'], 'All kernels'))
    ];
  }
  selectTrials(entry, trials);
  const {context, kernel, problem} = entry;
  return [
    element(
        'nav', {class: 'crumbs', 'aria-label': 'You are here'}, link(['kernels'], 'Kernels'), ' / ',
        link(['kernels', kernel.name], kernel.name)),
    element('h1', {}, problem.text),
    note(contextName(context)),
    kernel.current ? null : paragraph('These results are of an earlier version of the kernel\'s source.'),
    problemTiles(entry),
    problemFacts(entry),
    limitsPart(entry),
    section('How it was searched', ...takenOver(entry), problemSearches(entry)),
    paretoPart(entry),
    section('Configurations', explorerPart(entry)),
    section('Parallel coordinates', coordinatesPart(entry)),
    section('Effect of each parameter', effectsPart(entry)),
    section('Pairs of parameters', heatPart(entry)),
  ];
}

/** Takes a choice of trials over from the address ("12,40"). */
function selectTrials(entry, trials) {
  if (!trials) return;
  const held = entry.problem.configurations.rows;
  const wanted = trials.split(',').map(Number).filter((trial) => held.some((row) => row.trial === trial));
  if (wanted.length) explorerKept(entry).chosen = [...new Set(wanted)].slice(0, mostChosen);
}

// Where the default is not usable, the usable configuration nearest to it stands in.
function baselineText(problem) {
  if (!problem.baseline_config) return '';
  const values = Object.entries(problem.baseline_config).map(([name, value]) => name + '=' + value);
  return '; of ' + values.join(' ') + ', the usable configuration nearest to the default (' + problem.baseline_why +
      ')';
}

function decidedText(problem) {
  return problem.provisional ? 'provisional' : 'decided in finals';
}

function problemTiles({context, kernel, problem}) {
  return tiles([
    {
      label: 'Best',
      value: problem.best ? time(problem.best.median_us) : 'none',
      detail: problem.best ?
          range(problem.best.low_us, problem.best.high_us, number) + ' µs, ' + plural(problem.best.count, 'sample') :
          'no configuration worked'
    },
    {
      label: problem.baseline_config ? 'Baseline' : 'Default',
      value: problem.default ? time(problem.default.median_us) : 'unknown',
      detail: problem.default ? range(problem.default.low_us, problem.default.high_us, number) + ' µs, ' +
              plural(problem.default.count, 'sample') + baselineText(problem) :
                                'it has no time'
    },
    {
      label: 'Speedup',
      value: problem.speedup ? times(problem.speedup.value) : 'unknown',
      detail: problem.speedup ? range(problem.speedup.low, problem.speedup.high, times) : 'needs both times'
    },
    {
      label: 'Confidence',
      value: isKnown(problem.confidence) ? confidence(problem.confidence) : 'unknown',
      detail: problem.decided ? (problem.default ? decidedText(problem) : 'the default has no time') :
                                'undecided: fastest trial of the search'
    },
    achievedTile(kernel, problem),
    {
      label: 'Share of the roofline',
      value: isKnown(problem.roofline_share) ? percent(problem.roofline_share) : 'unknown',
      detail: isKnown(problem.roofline_us) ? 'bound: ' + time(problem.roofline_us) :
          context.roofline                 ? 'needs a time' :
                                             'peak rates unknown'
    },
  ]);
}

/** Operations and bytes a second; a kernel that only moves data has no operations. */
function achievedTile(kernel, {gflops, gbs}) {
  if (isKnown(gflops))
    return {label: 'Achieved', value: number(gflops), detail: rateUnit(kernel) + '; ' + number(gbs) + ' GB/s'};
  if (isKnown(gbs)) return {label: 'Achieved', value: number(gbs), detail: 'GB/s'};
  return {label: 'Achieved', value: 'unknown', detail: 'needs a time and the work per launch'};
}

/** What limits winner and default, estimated from their machine code; nothing where it was not asked. */
function limitsPart({problem}) {
  if (!problem.limits) return null;
  return section(
      'What limits it', facts(problem.limits.map((limit) => [sentence(limit.role), limit.text])),
      note(
          'Estimates from the machine code and a model of an SM, which was not checked on a card of this architecture; ' +
          'a range is what is not known of it. Only what limits a kernel and how variants compare should be read from them.'));
}

/** What searches began with that other devices measured; nothing where they began with nothing of the kind. */
function takenOver({problem}) {
  return problem.searches.filter((search) => search.other_devices)
      .map(
          (search) => paragraph(
              (problem.searches.length > 1 ? 'The search of session ' + search.session : 'This search') +
              ' began with ' + search.other_devices.map((other) => other.text).join(', and ') + '.'));
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function problemFacts({problem}) {
  return facts([
    [
      'Best configuration',
      problem.best_config ? element('span', {class: 'code'}, configText(problem.best_config)) : null
    ],
    ['Trials', countsText(problem)],
    ['Not usable', statusText(failedStatuses(problem.statuses)) || 'none'],
    ['Calls in the workload', isKnown(problem.count) ? count(problem.count) : null],
    ['Work', number(problem.flops) + ' operations, ' + number(problem.bytes) + ' bytes'],
    ['Energy per launch', isKnown(problem.energy_mj) ? withUnit(problem.energy_mj, 'mJ') : 'unknown'],
  ]);
}
