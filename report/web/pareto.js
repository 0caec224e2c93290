// Time against energy: what a launch takes of both, and which configurations no other one beats in both.

/** Nothing where fewer than two configurations have both. */
function paretoPart({problem}) {
  const {pareto} = problem;
  if (!pareto) return null;
  return section(
      'Time and energy', paragraph(pareto.summary), figure({
        key: 'pareto ' + problem.id,
        title: 'Energy against time of a launch',
        caption: plural(pareto.points.length, 'configuration') + ' with both; on the line ' +
            plural(pareto.points.filter((point) => point.front).length, 'configuration') +
            ' that no other one beats in both.',
        config: () => paretoConfig(pareto),
        numbers: () => plainTable(
            'Configurations by time', ['Configuration', 'Time, µs', 'Energy, mJ', 'On the line', 'What it is'],
            pareto.points.map(
                (point) =>
                    [configText(point.config), number(point.median_us), number(point.energy_mj),
                     point.front ? 'yes' : 'no', paretoRole(pareto, point)]),
            1, 2)
      }));
}

function paretoRole(pareto, point) {
  const roles = [
    ['winner by time', pareto.time_winner === point.trial], ['winner by energy', pareto.energy_winner === point.trial],
    ['winner by energy-delay product', pareto.edp_winner === point.trial], ['default', point.default]
  ];
  return roles.filter(([, is]) => is).map(([name]) => name).join(', ');
}

function paretoSet(label, index, points, extra = {}) {
  return {
    label,
    data: points.map((point) => ({x: point.median_us, y: point.energy_mj, point})),
    borderColor: seriesColour(index),
    backgroundColor: seriesColour(index),
    pointRadius: 4,
    pointStyle: pointShapes[index % pointShapes.length],
    showLine: false,
    ...extra
  };
}

function paretoConfig(pareto) {
  const named = pareto.points.filter((point) => paretoRole(pareto, point));
  const sets = [
    paretoSet(
        'Not beaten in both', 0, pareto.points.filter((point) => point.front),
        {showLine: true, stepped: 'before', borderWidth: 1.5}),
    paretoSet('Beaten in both', 1, pareto.points.filter((point) => !point.front)),
    paretoSet('Winners and the default', 2, named, {pointRadius: 8, backgroundColor: 'transparent', borderWidth: 2})
  ].filter((set) => set.data.length > 0);
  return {
    type: 'scatter',
    data: {datasets: sets},
    options: {
      layout: {padding: {right: 12}},
      scales: {
        x: logAxis('Time of a launch, µs', logBounds(pareto.points.map((point) => point.median_us), 1.05)),
        y: logAxis('Energy of a launch, mJ', logBounds(pareto.points.map((point) => point.energy_mj), 1.05))
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? paretoRole(pareto, items[0].raw.point) : ''),
            label: (item) => withUnit(item.raw.x, 'µs') + ', ' + withUnit(item.raw.y, 'mJ'),
            footer: (items) => (items.length ? shortened(configText(items[0].raw.point.config), 60) : '')
          }
        }
      }
    }
  };
}
