// Charts of readings over time, with the governor's states as bands behind them.

// A clock that jumped must not make ticks without end, nor dates that there are none of.
const latestDate = 8.64e15;

/** Time of day along the bottom, with ticks at round steps; the day too where there are several. */
function timeAxis(first, last) {
  const steps = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000
  ].map((seconds) => seconds * 1000);
  return {
    type: 'linear',
    min: first,
    max: Math.max(last, first + 1000),
    title: axisTitle('Time, UTC'),
    afterBuildTicks: (axis) => {
      const wanted = (axis.max - axis.min) / Math.max(2, Math.floor(axis.width / 90));
      const longest = steps[steps.length - 1];
      const step = steps.find((one) => one >= wanted) || Math.ceil(wanted / longest) * longest;
      axis.ticks = [];
      for (let at = Math.ceil(axis.min / step) * step; at <= axis.max; at += step) axis.ticks.push({value: at});
    },
    ticks: {
      autoSkip: true,
      maxRotation: 0,
      callback: (value, index, ticks) => Math.abs(value) > latestDate ?
          '' :
          (last - first > 2 * 86400000 ? new Date(value).toISOString().slice(5, 16).replace('T', ' ') :
                                         clock(value, ticks.length > 1 && ticks[1].value - ticks[0].value < 60000))
    },
  };
}

function readingConfig(logs, reading, first, last) {
  const hue = seriesColour(reading.series);
  const datasets =
      logs.map((session) => ({
                 label: 'Session ' + session.id,
                 borderColor: hue,
                 backgroundColor: hue,
                 borderWidth: 1.5,
                 pointRadius: 0,
                 pointHitRadius: 6,
                 data: session.telemetry.unix_ms.map((x, i) => ({x, y: session.telemetry[reading.name][i]}))
                           .filter((point) => isKnown(point.y)),
               }));
  return {
    type: 'line',
    data: {datasets},
    plugins: [stateBands(logs)],
    options: {
      parsing: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      layout: {padding: {right: 12}},
      scales: {
        x: timeAxis(first, last),
        y: linearAxis(reading.unit, {
          grace: '5%',
          afterFit: (axis) => {
            axis.width = 72;
          }
        })
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? clock(items[0].raw.x, true) + ' UTC' : ''),
            label: (item) => [withUnit(item.raw.y, reading.unit), stateAt(logs, item.raw.x)].filter((text) => text)
          }
        }
      },
    }
  };
}

function discardedConfig(logs, discarded, first, last) {
  return {
    type: 'line',
    data: {
      datasets: [{
        label: 'Discarded',
        borderColor: colour('series-2'),
        borderWidth: 2,
        pointRadius: 3,
        backgroundColor: colour('series-2'),
        showLine: false,
        pointStyle: 'rect',
        data: discarded.map(
            (one) => ({x: (one.from_unix_ms + one.to_unix_ms) / 2, y: one.count, low: 0, high: one.count}))
      }]
    },
    plugins: [stateBands(logs), whiskers(false)],
    options: {
      parsing: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      layout: {padding: {right: 12}},
      scales: {
        x: timeAxis(first, last),
        y: linearAxis('samples', {
          beginAtZero: true,
          ticks: {precision: 0},
          afterFit: (axis) => {
            axis.width = 72;
          }
        })
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? clock(items[0].raw.x, true) + ' UTC' : ''),
            label: (item) => plural(item.raw.y, 'sample')
          }
        }
      },
    }
  };
}

function stateAt(logs, at) {
  for (const session of logs) {
    const found = session.telemetry.states.find((one) => one.from_unix_ms <= at && at <= one.to_unix_ms);
    if (found) return words(found.state);
  }
  return '';
}

/** Places of the states in the order of colours: the governor's own first, others as they come. */
function stateNames(logs) {
  const met = [...new Set(logs.flatMap((session) => session.telemetry.states.map((one) => one.state)))];
  return [
    ...governorStates.filter((state) => met.includes(state)), ...met.filter((state) => !governorStates.includes(state))
  ];
}

// Measuring is what is hoped for: it has no band, so that all else stands out.
function stateColour(names, state) {
  if (state === 'measuring' || state === '') return 'transparent';
  const known = governorStates.indexOf(state);
  const index = known >= 0 ? known : governorStates.length + names.indexOf(state);
  return faded(seriesColour(index + 1), 0.24);
}

function stateBands(logs) {
  const names = stateNames(logs);
  return {
    id: 'bands',
    beforeDraw(chart) {
      const {ctx, scales: {x}, chartArea: area} = chart;
      ctx.save();
      for (const session of logs) {
        for (const one of session.telemetry.states) {
          const left = Math.max(area.left, x.getPixelForValue(one.from_unix_ms));
          const right = Math.min(area.right, x.getPixelForValue(one.to_unix_ms));
          if (right < left) continue;
          ctx.fillStyle = stateColour(names, one.state);
          ctx.fillRect(left, area.top, Math.max(right - left, 1), area.bottom - area.top);
        }
      }
      ctx.restore();
    },
  };
}
