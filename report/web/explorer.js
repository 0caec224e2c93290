// Configurations of a problem: choose some, and see them side by side.

const mostChosen = 8;

function explorerKept(entry) {
  return keep('explorer ' + entry.key, {chosen: null, all: false, relative: false});
}

/** The state of a problem's explorer, with the trials that are chosen. */
function explorerState(entry) {
  const state = explorerKept(entry);
  const rows = entry.problem.configurations.rows;
  const shown = state.chosen === null ? firstChoice(rows) :
                                        state.chosen.filter((trial) => rows.some((row) => row.trial === trial));
  return {...state, shown, kept: state};
}

/**
 * Before the reader chose: the best and the default; another configuration where one of them is missing or both are
 * one.
 */
function firstChoice(rows) {
  const best = rows.find((row) => row.best) || rows[0];
  const others = rows.filter((row) => configKey(row) !== configKey(best));
  const defaults = others.filter((row) => row.default);
  const second = defaults.find((row) => row.stage === 'finals') || defaults[0] ||
      others.find((row) => isKnown(row.median_us)) || others[0];
  return [best, second].filter((row) => row).map((row) => row.trial);
}

function configKey(row) {
  return JSON.stringify(row.values);
}

function explorerPart(entry) {
  const {configurations} = entry.problem;
  if (configurations.rows.length === 0) return note('No configurations were tried.');
  // Beside the part that is made again, as only what changes in a region that stays is read out.
  const unticked = element('output', {class: 'unticked'});
  const explorer = part((renew) => {
    const state = explorerState(entry);
    const toggle = (trial, on) => {
      const wanted = on ? [...state.shown, trial] : state.shown.filter((one) => one !== trial);
      state.kept.chosen = wanted.slice(-mostChosen);
      const dropped = wanted.slice(0, -mostChosen).map((one) => '#' + one);
      unticked.textContent =
          dropped.length ? dropped.join(', ') + ' was unticked: at most ' + mostChosen + ' can be compared.' : '';
      rememberSelection(entry, state.kept.chosen);
      renew();
    };
    const chosen = state.shown.map((trial) => configurations.rows.find((row) => row.trial === trial));
    return [
      paragraph(
          'Tick two or more configurations (at most ' + mostChosen +
              '). The best is the winner of the finals, if there were any: ' +
              'finalists are measured again side by side, because the fastest trial of a search is partly luck. ',
          configurations.shown < configurations.of ?
              'Of ' + count(configurations.of) + ' measurements (trials and those in finals), the report lists ' +
                  count(configurations.shown) + ': the best, the default, the finalists and a sample of the rest.' :
              ''),
      configurationsTable(entry, state.shown, toggle),
      chosen.length === 0 ? note('No configuration is ticked.') :
                            element(
                                'div', {class: 'explored'}, sideBySide(entry, chosen, state, renew),
                                samplesPart(entry, chosen, state, renew)),
    ];
  });
  return [unticked, explorer];
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
    key: 'configurations ' + entry.key,
    caption: 'Configurations of ' + entry.problem.text,
    rows: configurations.rows,
    tall: true,
    sort: 'median',
    search: (row) => [rowName(row), values(row), words(row.status), row.reason].join(' '),
    filters: [{
      id: 'status',
      label: 'Show',
      options: [
        {id: 'all', label: 'all', accept: () => true},
        {id: 'ok', label: 'usable', accept: (row) => hasTime(row.status)},
        {id: 'failed', label: 'not usable', accept: (row) => !hasTime(row.status)},
        {id: 'finals', label: 'finalists', accept: (row) => row.stage === 'finals'},
      ]
    }],
    rowClass:
        (row) => [hasTime(row.status) ? '' : 'failed', chosen.includes(row.trial) ? 'chosen' : ''].join(' ').trim() ||
        null,
    columns: [
      {
        id: 'trial',
        title: 'Trial',
        value: (row) => row.trial,
        cell: (row) =>
            checkbox('choose ' + row.trial, rowName(row), chosen.includes(row.trial), (on) => toggle(row.trial, on))
      },
      {
        id: 'median',
        title: 'Median',
        unit: 'µs',
        numeric: true,
        ascending: true,
        value: (row) => row.median_us,
        cell: (row) => timeCell(isKnown(row.median_us) ? row : null)
      },
      {
        id: 'status',
        title: 'Status',
        value: (row) => row.status,
        cell:
            (row) => [words(row.status), row.stage === 'finals' ? element('span', {class: 'interval'}, 'finals') : null]
      },
      {id: 'registers', title: 'Registers', numeric: true, value: (row) => row.registers},
      {id: 'shared', title: 'Shared', unit: 'B', numeric: true, value: (row) => row.shared_bytes},
      {
        id: 'occupancy',
        title: 'Occupancy',
        numeric: true,
        value: (row) => row.occupancy,
        cell: (row) => percent(row.occupancy || null)
      },
      {
        id: 'config',
        title: 'Parameters that vary',
        wide: true,
        value: values,
        cell: (row) =>
            [element('span', {class: 'code'}, values(row)),
             row.reason ? element('span', {class: 'reason muted'}, ' ' + row.reason) : null]
      },
    ],
  });
}

/** Places of the columns whose values are not the same in all rows. */
function variedColumns(configurations) {
  return configurations.columns.map((name, at) => at)
      .filter((at) => configurations.rows.some((row) => row.values[at] !== configurations.rows[0].values[at]));
}
