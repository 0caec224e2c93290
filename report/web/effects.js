// What each parameter does to the time, alone and in pairs.

function effectsPart(entry) {
  const {parameters} = entry.problem;
  const varied = parameters.filter((one) => one.values.length > 1 && one.best_us.some(isKnown))
                     .sort((a, b) => (b.effect || 0) - (a.effect || 0));
  const fixed = parameters.filter((one) => !varied.includes(one));
  if (varied.length === 0) {
    return note('No parameter has times for more than one of its values, so there is no effect to show.');
  }
  return [
    note(
        'Best and median time for each value tried, parameters with the largest effect first. The effect is the ' +
        'largest best time divided by the smallest. A search tries some values more often than others, which biases ' +
        'the medians.'),
    element('div', {class: 'charts many'}, varied.map((parameter) => effectFigure(entry, parameter, varied))),
    fixed.length ?
        details(
            'fixed ' + entry.key, plural(fixed.length, 'parameter') + ' with nothing to compare',
            () => element(
                'ul', {},
                fixed.map(
                    (one) => element('li', {class: 'code'}, one.name + ' = ' + (one.values.join(', ') || unknown))))) :
        null,
  ];
}

function effectFigure(entry, parameter, all) {
  const every = all.flatMap((one) => [...one.best_us, ...one.median_us]).filter(isKnown);
  return figure({
    key: 'effect ' + entry.key + parameter.name,
    title: parameter.name,
    small: true,
    caption: isKnown(parameter.effect) ? 'effect ' + times(parameter.effect) : 'effect unknown',
    config: () => effectConfig(parameter, logBounds(every, 1.1)),
    numbers: () => plainTable(
        'Values of ' + parameter.name, ['Value', 'Trials', 'Ok', 'Best, µs', 'Median, µs'],
        parameter.values.map(
            (value, i) =>
                [String(value), count(parameter.trials[i]), count(parameter.ok[i]), number(parameter.best_us[i]),
                 number(parameter.median_us[i])])),
  });
}

function effectConfig(parameter, bounds) {
  const set = (label, values, index) => ({
    label,
    data: values,
    borderColor: seriesColour(index),
    pointRadius: 4,
    borderWidth: 1.5,
    backgroundColor: index === 0 ? seriesColour(0) : 'transparent',
    pointStyle: index === 0 ? 'circle' : 'rect',
    borderDash: index === 0 ? [] : [4, 3],
    spanGaps: true
  });
  return {
    type: 'line',
    data: {
      labels: parameter.values.map((value) => shortened(String(value), 14)),
      datasets: [set('Best', parameter.best_us, 0), set('Median', parameter.median_us, 1)]
    },
    options: {
      interaction: {mode: 'index', intersect: false},
      scales: {
        x: {type: 'category', grid: {display: false}, ticks: {maxRotation: 60}, offset: true},
        y: logAxis('µs', bounds)
      },
      plugins: {
        legend: {labels: {padding: 8}},
        tooltip: {
          callbacks: {
            label: (item) => item.dataset.label + ': ' + withUnit(item.raw, 'µs'),
            footer: (items) =>
                (items.length ?
                     parameter.ok[items[0].dataIndex] + ' of ' + parameter.trials[items[0].dataIndex] + ' trials ok' :
                     '')
          }
        }
      },
    },
  };
}

function heatPart(entry) {
  const {heat} = entry.problem;
  if (!heat || heat.pairs.length === 0) {
    return note('Too few parameters were varied to show pairs.');
  }
  const name = (pair) => heat.parameters[pair.y] + ' by ' + heat.parameters[pair.x];
  const state = keep('heat ' + entry.key, {pair: null});
  return part((renew) => {
    const chosen = heat.pairs.find((pair) => name(pair) === state.pair) || heat.pairs[0];
    const pick = choice(
        'pair ' + entry.key, 'Pair of parameters', heat.pairs.map((pair) => ({id: name(pair), label: name(pair)})),
        name(chosen), (id) => {
          state.pair = id;
          renew();
        });
    return [element('div', {class: 'controls'}, pick), heatTable(entry, heat, chosen)];
  });
}

function heatTable(entry, heat, pair) {
  const values = (name) => (entry.problem.parameters.find((one) => one.name === name) || {values: []}).values;
  const across = heat.parameters[pair.x];
  const down = heat.parameters[pair.y];
  const known = pair.best_us.flat().filter(isTime);
  if (known.length === 0) return note('No pair of these values has a time.');
  const least = Math.min(...known);
  const span = Math.log(Math.max(...known) / least) || 1;
  const cell = (value) => {
    if (!isTime(value)) return element('td', {class: 'muted'}, unknown);
    const box = element('td', {}, number(value));
    const colours = heatColours(Math.log(value / least) / span);
    box.style.backgroundColor = colours.background;
    box.style.color = colours.text;
    return box;
  };
  const title = 'Best time in µs for each pair of values: ' + down + ' downwards, ' + across + ' to the right';
  return [
    scrollBox(
        title,
        element(
            'table', {class: 'heat'}, caption(title),
            element(
                'thead', {},
                element(
                    'tr', {}, element('th', {scope: 'col', class: 'code'}, down + ' \\ ' + across),
                    values(across).map((value) => element('th', {scope: 'col', class: 'number'}, String(value))))),
            element(
                'tbody', {},
                values(down).map(
                    (value, row) => element(
                        'tr', {}, element('th', {scope: 'row', class: 'number'}, String(value)),
                        (pair.best_us[row] || []).map(cell)))))),
    heatScale(least, least * Math.exp(span)), note(unknown + ' was not tried or has no time.')
  ];
}

function heatScale(least, greatest) {
  return element(
      'div', {class: 'scale'}, 'fast, ' + withUnit(least, 'µs'), [0, 0.25, 0.5, 0.75, 1].map((share) => {
        const box = element('i', {'aria-hidden': 'true'});
        box.style.backgroundColor = heatColours(share).background;
        return box;
      }),
      'slow, ' + withUnit(greatest, 'µs') + ' (logarithmic)');
}
