// The same problems on several devices, side by side.

function devicesPage() {
  return [
    element('h1', {}, 'By device'),
    report.devices.length ? null :
                            note(
                                'No two devices of this report have a problem of the same source in common. ' +
                                'A database with the sessions of several (pascaline merge, pascaline fleet) has.'),
    report.devices.map(devicesPart),
  ];
}

function devicesPart(comparison) {
  const {devices, rows, kind} = comparison;
  return section(
      kind === 'host' ? 'Emulated devices' : 'Cards', facts([
        ...devices.map(
            (device) => [device.name, deviceFacts({...device, kind}) + '; ' + plural(device.problems, 'problem')]),
        [
          'One configuration is the best on all',
          count(comparison.same_config) + ' of ' + plural(rows.length, 'problem')
        ]
      ]),
      table({
        key: 'devices ' + kind,
        caption: 'The best time on each device, and its speedup over that device\'s default',
        rows,
        columns: [
          {id: 'problem', title: 'Problem', value: (row) => row.problem, cell: (row) => row.problem},
          ...devices.flatMap((device, index) => deviceColumns(device.name, index)), {
            id: 'same',
            title: 'Same configuration',
            value: (row) => (row.same_config ? 1 : 0),
            cell: (row) => (row.same_config ? 'yes' : configurationsCell(devices, row))
          }
        ]
      }));
}

function deviceColumns(name, index) {
  return [
    {
      id: 'best' + index,
      title: name,
      numeric: true,
      value: (row) => (row.devices[index] ? row.devices[index].best.median_us : null),
      cell: (row) => (row.devices[index] ? timeCell(row.devices[index].best) : null)
    },
    {
      id: 'speedup' + index,
      title: 'Speedup there',
      numeric: true,
      value: (row) => (row.devices[index] ? row.devices[index].speedup : null),
      cell: (row) =>
          (row.devices[index] && isKnown(row.devices[index].speedup) ? times(row.devices[index].speedup) : null)
    },
  ];
}

function configurationsCell(devices, row) {
  return details(
      'configurations ' + row.problem, 'no',
      () => facts(devices.map(
          (device, index) => [device.name, row.devices[index] ? configText(row.devices[index].config) : unknown])));
}
