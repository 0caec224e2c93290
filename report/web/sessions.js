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
      {id: 'trials', title: 'Trials', numeric: true, value: (session) => session.trials},
      {
        id: 'discarded',
        title: 'Samples discarded',
        numeric: true,
        value: (session) => sum(Object.values(session.discarded)),
        cell: (session) => count(sum(Object.values(session.discarded))) + ' of ' + count(session.samples)
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

function sessionState(session) {
  if (session.state !== 'running') return session.state;
  return session.alive ? 'running' : 'interrupted (its process is gone)';
}
