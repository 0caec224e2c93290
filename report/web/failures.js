// What was rejected, failed, timed out or was wrong, by reason.

const statuses =
    ['ok', 'dropped', 'rejected', 'compile_failed', 'launch_failed', 'wrong_result', 'timed_out', 'crashed'];

const statusMeanings = {
  dropped: 'usable; sampling stopped early because it is slower than the best',
  rejected: 'breaks a constraint of the space or a limit of the device',
  compile_failed: 'it did not compile',
  launch_failed: 'the device rejected the launch',
  wrong_result: 'its result differs from the reference, or it wrote outside its buffers',
  timed_out: 'it did not finish in time',
  crashed: 'it crashed its process',
};

function failuresPage() {
  const heading = element('h1', {}, 'Failures');
  if (report.contexts.length === 0) return [heading, note('There are no trials, so none failed.')];
  return [
    heading, note('A configuration that does not work is a result like any other: the search learns from it.'),
    report.contexts.map(contextFailures)
  ];
}

function contextFailures(context) {
  const failed = failedTrials(context.statuses);
  const heading = element('h2', {}, contextName(context));
  if (failed === 0 && context.failures.length === 0)
    return element(
        'section', {class: 'context'}, heading, note('All ' + plural(context.trials, 'trial') + ' were usable.'));
  return element(
      'section', {class: 'context'}, heading,
      plainTable(
          'Trials by status', ['Status', 'Trials', 'Share', 'Meaning'],
          statuses.filter((status) => context.statuses[status])
              .map(
                  (status) =>
                      [words(status), count(context.statuses[status]),
                       percent(context.statuses[status] / context.trials),
                       element('span', {class: 'muted'}, statusMeanings[status] || '')]),
          1, 3),
      kernelStatuses(context), reasonsTable(context),
      context.failures_more ? note('And ' + plural(context.failures_more, 'trial') + ' with rarer reasons.') : null);
}

function kernelStatuses(context) {
  const used = statuses.filter((status) => context.statuses[status]);
  const tally = (kernel, status) => sum(kernel.problems.map((problem) => problem.statuses[status] || 0));
  if (context.kernels.length < 2) return null;
  return table({
    key: 'statuses ' + contextKey(context),
    caption: 'Trials by kernel and status',
    rows: context.kernels,
    columns: [
      {
        id: 'name',
        title: 'Kernel',
        value: (kernel) => kernel.name,
        cell: (kernel) => link(['kernels', kernel.name], kernel.name)
      },
      ...used.map((status) => ({
                    id: status,
                    title: words(status),
                    numeric: true,
                    value: (kernel) => tally(kernel, status),
                    cell: (kernel) => count(tally(kernel, status))
                  }))
    ],
  });
}

function reasonsTable(context) {
  const met = statuses.filter((status) => context.failures.some((row) => row.status === status));
  return table({
    key: 'failures ' + contextKey(context),
    caption: 'Reasons, the most common first, with an example of each',
    rows: context.failures,
    sort: 'count',
    descending: true,
    search: (row) => [words(row.status), row.reason, row.kernels.join(' '), row.problem, row.config].join(' '),
    filters: [{
      id: 'status',
      label: 'Status',
      options: [
        {id: 'all', label: 'all', accept: () => true},
        ...met.map((status) => ({id: status, label: words(status), accept: (row) => row.status === status}))
      ]
    }],
    empty: 'No reasons are stored.',
    columns: [
      {
        id: 'status',
        title: 'Status',
        value: (row) => row.status,
        cell: (row) => element('span', {class: 'plain'}, words(row.status))
      },
      {id: 'count', title: 'Trials', numeric: true, value: (row) => row.count},
      {
        id: 'reason',
        title: 'Reason',
        wide: true,
        value: (row) => row.reason,
        cell: (row) => row.reason || 'no reason given'
      },
      {id: 'kernels', title: 'Kernels', value: (row) => row.kernels.join(', ')},
      {
        id: 'problem',
        title: 'Example',
        wide: true,
        value: (row) => row.problem,
        cell: (row) => [row.problem, element('span', {class: 'muted code'}, row.config ? ' ' + row.config : '')]
      },
    ],
  });
}
