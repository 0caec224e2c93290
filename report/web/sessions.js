// Runs of the tuner on one device.

function sessionsTable() {
  return table({
    key: 'sessions',
    caption: 'Sessions: runs of the tuner on one device',
    rows: report.sessions,
    sort: 'started',
    descending: true,
    empty: 'The database holds no sessions.',
    search:
        (session) => [session.device, session.searcher, session.state, session.command_line, session.uuid].join(' '),
    columns: [
      {
        id: 'id',
        title: 'Session',
        value: (session) => session.id,
        cell: (session) => link(['thermal', session.id], '#' + session.id)
      },
      {
        id: 'started',
        title: 'Started',
        value: (session) => session.started_unix_ms,
        cell: (session) => date(session.started_unix_ms),
        numeric: true
      },
      {
        id: 'spent',
        title: 'Time spent',
        numeric: true,
        value: (session) => session.spent_ms,
        cell: (session) => duration(session.spent_ms)
      },
      {id: 'state', title: 'State', value: (session) => session.state, cell: sessionState},
      {id: 'device', title: 'Device', value: (session) => session.device},
      {
        id: 'searcher',
        title: 'Searcher',
        value: (session) => session.searcher,
        cell: (session) => session.searcher + ', seed ' + session.seed
      },
      ...report.counts.map(
          ({name, title, meaning}) =>
              ({id: name, title, help: meaning, numeric: true, value: (session) => session[name]})),
      {
        id: 'discarded',
        title: 'Samples discarded',
        numeric: true,
        value: (session) => sum(Object.values(session.discarded)),
        cell: (session) => count(sum(Object.values(session.discarded))) + ' of ' + count(session.samples)
      },
      {
        id: 'times',
        title: 'Device time of trials',
        wide: true,
        value: (session) => session.trial_time_ms ? sum(Object.values(session.trial_time_ms)) : undefined,
        cell: trialTimes
      },
      {
        id: 'command',
        title: 'Command',
        wide: true,
        value: (session) => session.command_line,
        cell: (session) =>
            [element('span', {class: 'code'}, session.command_line || unknown),
             element(
                 'span', {class: 'interval'},
                 'version ' + session.program_version +
                     (session.imported_from ? ', imported from ' + session.imported_from : ''))]
      },
    ],
  });
}

// Where a session's trials spent their time on the device, the largest parts first.
function trialTimes(session) {
  if (!session.trial_time_ms) return unknown;
  const all = sum(Object.values(session.trial_time_ms));
  const parts = Object.entries(session.trial_time_ms)
                    .map(([name, ms]) => ({name, share: Math.round(100 * ms / all)}))
                    .filter((part) => part.share > 0)
                    .sort((a, b) => b.share - a.share);
  return [
    duration(all),
    element('span', {class: 'interval'}, parts.map((part) => part.name + ' ' + part.share + ' %').join(', '))
  ];
}

function sessionState(session) {
  if (session.state !== 'running') return session.state;
  return session.alive ? 'running' : 'interrupted (its process is gone)';
}
