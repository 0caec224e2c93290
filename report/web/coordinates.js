// Parallel coordinates: each configuration a line through its values, coloured by its time.

const coordinatesHeight = 340;
const coordinatesTop = 46;
const coordinatesBottom = 26;
const coordinatesLeast = 640;
const coordinatesMost = 1360;

function coordinatesPart(entry) {
  const {configurations} = entry.problem;
  const rows = configurations.rows.filter((row) => isTime(row.median_us));
  const axes = coordinateAxes(entry, rows);
  if (rows.length < 2 || axes.length < 2) {
    return note('There are fewer than two different configurations with a time, so there are no lines to compare.');
  }
  const said = 'Each line is one of the ' + count(rows.length) +
      ' timed configurations in the report: it runs through the values of the parameters to the median time on the ' +
      'right. The thick line is the best. The table of configurations has the numbers.';
  const box = scrollBox('Parallel coordinates', coordinatesDrawing(rows, axes, said));
  return [
    note(said), box,
    heatScale(Math.min(...rows.map((row) => row.median_us)), Math.max(...rows.map((row) => row.median_us)))
  ];
}

/** The parameters that vary among the rows, those with the largest effect last, next to the time. */
function coordinateAxes(entry, rows) {
  const {columns} = entry.problem.configurations;
  const effect = (name) => (entry.problem.parameters.find((one) => one.name === name) || {}).effect || 0;
  return columns
      .map((name, at) => ({name, at, values: [...new Set(rows.map((row) => row.values[at]))].sort(compareCells)}))
      .filter((axis) => axis.values.length > 1)
      .sort((a, b) => effect(a.name) - effect(b.name));
}

function coordinatesDrawing(rows, axes, caption) {
  const width = Math.max(coordinatesLeast, Math.min(coordinatesMost, (axes.length + 1) * 170), (axes.length + 1) * 80);
  const left = 60;
  const step = (width - left - 70) / axes.length;
  const medians = rows.map((row) => row.median_us);
  const least = Math.min(...medians);
  const span = Math.log(Math.max(...medians) / least) || 1;
  const share = (row) => Math.log(row.median_us / least) / span;
  const inner = coordinatesHeight - coordinatesTop - coordinatesBottom;
  const height = (at, of) => coordinatesTop + (of > 1 ? (at / (of - 1)) * inner : inner / 2);
  const path = (row) =>
      axes.map((axis, i) => [left + i * step, height(axis.values.indexOf(row.values[axis.at]), axis.values.length)])
          .concat([[left + axes.length * step, coordinatesTop + share(row) * inner]])
          .map((point, i) => (i ? 'L' : 'M') + point.map((value) => value.toFixed(1)).join(' '))
          .join('');
  // The slowest first, so that the fastest lie on top.
  const ordered = [...rows].sort((a, b) => b.median_us - a.median_us);
  return drawing(
      'svg', {
        class: 'coordinates',
        width,
        height: coordinatesHeight,
        viewBox: '0 0 ' + width + ' ' + coordinatesHeight,
        role: 'img',
        'aria-label': caption
      },
      ordered.map((row) => coordinateLine(row, path(row), share(row))),
      axes.map(
          (axis, i) => coordinateAxis(
              left + i * step, i % 2 === 0, axis.name,
              axis.values.map((value, at) => [String(value), height(at, axis.values.length)]))),
      coordinateAxis(
          left + axes.length * step, axes.length % 2 === 0, 'median, µs',
          [0, 0.25, 0.5, 0.75, 1].map((at) => [number(least * Math.exp(at * span)), coordinatesTop + at * inner])));
}

function coordinateLine(row, path, share) {
  const line = drawing(
      'path', {
        d: path,
        stroke: heatColours(share).background,
        'stroke-width': row.best ? 4 : 1.5,
        'stroke-opacity': row.best ? 1 : 0.8
      },
      drawing('title', {}, rowName(row) + ': ' + withUnit(row.median_us, 'µs')));
  if (row.best) line.style.stroke = colour('series-2');
  return line;
}

function coordinateAxis(x, high, name, ticks) {
  return drawing(
      'g', {},
      drawing('line', {class: 'axis', x1: x, x2: x, y1: coordinatesTop, y2: coordinatesHeight - coordinatesBottom}),
      drawing('text', {x, y: high ? 14 : 30, 'text-anchor': 'middle', 'font-weight': 600}, shortened(name, 22)),
      ticks.map(([text, y]) => drawing('text', {x: x + 5, y: y + 4, class: 'tick'}, shortened(text, 10))));
}
