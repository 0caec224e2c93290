// Two databases or sessions: what became faster or slower, what is new, what is gone.

const verdicts = [
  {id: 'slower', label: 'slower', sign: '▼', className: 'bad', meaning: 'significantly slower than before'},
  {id: 'faster', label: 'faster', sign: '▲', className: 'good', meaning: 'significantly faster than before'},
  {id: 'same', label: 'same', sign: '=', className: 'plain', meaning: 'within 5 % of before'},
  {id: 'unclear', label: 'unclear', sign: '?', className: 'plain', meaning: 'the samples cannot tell'},
  {id: 'new', label: 'new', sign: '+', className: 'plain', meaning: 'not there before'},
  {id: 'vanished', label: 'vanished', sign: '−', className: 'plain', meaning: 'no longer there'},
];

function comparisonPage() {
  const heading = element('h1', {}, 'Comparison');
  const {comparison} = report;
  if (!comparison) {
    return [
      heading,
      note(
          'This report has no comparison. Give pascaline report another database (--against FILE) or two ' +
          'sessions (--session, --against-session) to see what became faster or slower, what is new and what is gone.')
    ];
  }
  return [
    heading,
    paragraph(
        element('strong', {}, comparison.a.label), ' against ', element('strong', {}, comparison.b.label),
        ' (the older). A ratio above 1 means that ', comparison.a.label, ' is faster.'),
    comparisonTiles(comparison),
    comparison.rows.length === 0 ? note('Neither side has a problem that can be compared.') :
                                   [ratioFigure(comparison), comparisonTable(comparison)]
  ];
}

function comparisonTiles({summary}) {
  return tiles([
    {
      label: 'Geometric mean of the ratios',
      value: isKnown(summary.geometric_mean_ratio) ? ratioText(summary.geometric_mean_ratio) : 'unknown',
      detail: isKnown(summary.geometric_mean_ratio) ? 'over problems in both' : 'no problem has a time in both'
    },
    ...verdicts.map(
        (verdict) =>
            ({label: verdict.sign + ' ' + verdict.label, value: count(summary[verdict.id]), detail: verdict.meaning})),
    {label: 'Another winner', value: count(summary.changed_winner), detail: 'best configuration differs'},
  ]);
}

function verdictText(id) {
  const verdict = verdicts.find((one) => one.id === id);
  return verdict ? element('span', {class: verdict.className}, verdict.sign + ' ' + verdict.label) : words(id);
}

function bestOf(side) {
  return side ? side.best : null;
}

function ratioFigure(comparison) {
  const rows = comparison.rows.filter((row) => row.ratio).sort((a, b) => a.ratio.value - b.ratio.value);
  if (rows.length === 0) return note('No problem has a time in both, so there are no ratios to draw.');
  return figure({
    key: 'ratios',
    title: 'Ratio of the best times',
    caption: 'One point per problem that both have, from the worst to the best, with its interval. ' +
        'To the right of 1 is faster than before.',
    height: rows.length > 20 ? 'tall' : null,
    config: () => ratioConfig(rows)
  });
}

function ratioConfig(rows) {
  const hues = {faster: colour('series-3'), slower: colour('series-2')};
  const shapes = {faster: 'triangle', slower: 'rect', unclear: 'crossRot'};
  const used = verdicts.filter((verdict) => rows.some((row) => row.verdict === verdict.id));
  const datasets = used.map(
      (verdict) => ({
        label: verdict.label,
        borderColor: hues[verdict.id] || colour('series-7'),
        backgroundColor: hues[verdict.id] || 'transparent',
        pointStyle: shapes[verdict.id] || 'circle',
        pointRadius: rows.length > 150 ? 2.5 : 4.5,
        data:
            rows.map((row, y) => ({row, y})).filter((item) => item.row.verdict === verdict.id).map(({row, y}) => ({
                                                                                                     x: row.ratio.value,
                                                                                                     y,
                                                                                                     low: row.ratio.low,
                                                                                                     high:
                                                                                                         row.ratio.high,
                                                                                                     text: row.problem,
                                                                                                     device: row.device
                                                                                                   })),
      }));
  const values = rows.flatMap((row) => [row.ratio.value, row.ratio.low, row.ratio.high])
                     .filter((value) => isKnown(value) && value > 0);
  return {
    type: 'scatter',
    data: {datasets},
    plugins: [whiskers(true), ruler('x', 1)],
    options: {
      scales: {
        x: logAxis('Ratio of the best times, before / now', logBounds([...values, 1], 1.05)),
        y: {display: false, min: -1, max: rows.length}
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: (item) =>
                [shortened(item.raw.text, 60), item.raw.device,
                 ratioText(item.raw.x) + '  ' + range(item.raw.low, item.raw.high, ratioText)]
          }
        }
      },
    }
  };
}

/** What became slower first, then in the order in which verdicts are listed; of a verdict, what changed most first. */
function byVerdict(rows) {
  const place = (row) => verdicts.findIndex((verdict) => verdict.id === row.verdict);
  const change = (row) => (row.ratio && row.ratio.value > 0 ? Math.abs(Math.log(row.ratio.value)) : 0);
  return [...rows].sort((a, b) => place(a) - place(b) || change(b) - change(a));
}

function comparisonTable(comparison) {
  const either = (row) => row.a || row.b || {};
  return table({
    key: 'comparison',
    caption: 'Problems of ' + comparison.a.label + ' against ' + comparison.b.label + '. Times in µs',
    rows: byVerdict(comparison.rows),
    search:
        (row) => [row.device, row.target, row.kernel, row.problem, row.verdict, configText(either(row).config)].join(
            ' '),
    filters: [{
      id: 'verdict',
      label: 'Show',
      options: [
        {id: 'all', label: 'all', accept: () => true},
        {
          id: 'changes',
          label: 'faster or slower',
          accept: (row) => row.verdict === 'faster' || row.verdict === 'slower'
        },
        ...verdicts.map(
            (verdict) => ({id: verdict.id, label: verdict.label, accept: (row) => row.verdict === verdict.id})),
        {id: 'winner', label: 'another winner', accept: (row) => row.same_config === false},
      ]
    }],
    empty: 'There is nothing to compare.',
    columns: [
      {
        id: 'problem',
        title: 'Problem',
        wide: true,
        value: (row) => row.problem,
        cell: (row) => [row.problem, element('span', {class: 'interval'}, row.device + ', ' + targetName(row.target))]
      },
      {
        id: 'verdict',
        title: 'Verdict',
        value: (row) => verdicts.findIndex((one) => one.id === row.verdict),
        cell: (row) => verdictText(row.verdict)
      },
      {
        id: 'ratio',
        title: 'Ratio',
        numeric: true,
        value: (row) => row.ratio && row.ratio.value,
        cell: (row) =>
            (row.ratio ? withInterval(ratioText(row.ratio.value), range(row.ratio.low, row.ratio.high, ratioText)) :
                         unknown),
        help: 'Best time before / best time now'
      },
      {
        id: 'now',
        title: 'Now',
        unit: 'µs',
        numeric: true,
        value: (row) => bestOf(row.a) && bestOf(row.a).median_us,
        cell: (row) => timeCell(bestOf(row.a))
      },
      {
        id: 'before',
        title: 'Before',
        unit: 'µs',
        numeric: true,
        value: (row) => bestOf(row.b) && bestOf(row.b).median_us,
        cell: (row) => timeCell(bestOf(row.b))
      },
      {
        id: 'p',
        title: 'p',
        numeric: true,
        ascending: true,
        value: (row) => row.p_value,
        cell: (row) => chance(row.p_value),
        help: 'Probability of a difference this large by chance alone, adjusted for all rows (Holm)'
      },
      {
        id: 'changed',
        title: 'What changed',
        wide: true,
        value: (row) => (isKnown(row.same_config) ? Number(row.same_config) : null),
        cell: changedCell
      },
    ],
  });
}

function changedCell(row) {
  if (!row.a || !row.b) return element('span', {class: 'code muted'}, configText((row.a || row.b || {}).config));
  const changes = [];
  if (row.same_config === false && row.a.config && row.b.config) {
    changes.push(element(
        'div', {class: 'code'},
        differingNames(row.a.config, row.b.config)
            .map(
                (name) => name + ' ' + (Object.hasOwn(row.b.config, name) ? row.b.config[name] : unknown) + ' → ' +
                    (Object.hasOwn(row.a.config, name) ? row.a.config[name] : unknown))
            .join(', ')));
  }
  if (row.same_source === false) changes.push(element('div', {}, 'kernel source'));
  if (row.same_clock === false) {
    changes.push(
        element('div', {}, 'SM clock ' + number(row.b.sm_clock_mhz) + ' → ' + withUnit(row.a.sm_clock_mhz, 'MHz')));
  }
  if (row.same_toolkit === false) changes.push(element('div', {}, row.b.toolkit + ' → ' + row.a.toolkit));
  return changes.length ? changes : 'nothing';
}
