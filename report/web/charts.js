// Charts by Chart.js. Each has a caption, and its numbers as a table for who cannot see it. They are drawn when they
// come near the screen: a page may hold dozens.

const liveCharts = new Set();
const waitingCharts = new Map();
const nearScreen = new IntersectionObserver((entries) => {
  for (const entry of entries)
    if (entry.isIntersecting) drawChart(entry.target);
}, {rootMargin: '400px'});

/**
 * A figure. `spec`: title, caption (a sentence on what is seen), config (a function that makes Chart.js's
 * configuration, called when it is drawn), key and numbers (a function that makes the table of its numbers), and
 * optionally small.
 */
function figure(spec) {
  const canvas = element('canvas', {role: 'img', 'aria-label': spec.title + '. ' + (spec.caption || '')});
  waitingCharts.set(canvas, spec.config);
  return element(
      'figure', {class: spec.small ? 'small' : null},
      element('figcaption', {}, element('strong', {}, spec.title), spec.caption ? [' ', spec.caption] : null),
      element('div', {class: 'canvas', 'data-height': spec.height || null}, canvas),
      spec.numbers ? details('numbers ' + spec.key, 'The numbers', spec.numbers) : null);
}

/** To be called after figures came into the page. Paper gets all of them at once. */
function drawCharts() {
  for (const canvas of [...waitingCharts.keys()]) {
    if (!canvas.isConnected) continue;
    if (printing)
      drawChart(canvas);
    else
      nearScreen.observe(canvas);
  }
}

function drawChart(canvas) {
  const make = waitingCharts.get(canvas);
  if (!make || !canvas.isConnected) return;
  nearScreen.unobserve(canvas);
  waitingCharts.delete(canvas);
  const config = make();
  applyChartDefaults();
  liveCharts.add(new Chart(canvas, config));
}

/** Frees the charts inside a node that is about to go. */
function releaseCharts(node) {
  for (const chart of [...liveCharts]) {
    if (!node.contains(chart.canvas)) continue;
    chart.destroy();
    liveCharts.delete(chart);
  }
  for (const canvas of [...waitingCharts.keys()]) {
    if (node.contains(canvas) || !canvas.isConnected) {
      nearScreen.unobserve(canvas);
      waitingCharts.delete(canvas);
    }
  }
}

function applyChartDefaults() {
  Chart.defaults.animation = false;
  Chart.defaults.responsive = true;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.color = colour('muted');
  Chart.defaults.borderColor = colour('grid');
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.plugins.legend.position = 'bottom';
  Chart.defaults.plugins.legend.labels.usePointStyle = true;
  Chart.defaults.plugins.legend.labels.boxHeight = 7;
  Object.assign(Chart.defaults.plugins.tooltip, {
    backgroundColor: colour('text'),
    titleColor: colour('background'),
    bodyColor: colour('background'),
    displayColors: false,
    boxPadding: 4
  });
}

function axisTitle(text) {
  return {display: true, text, color: colour('text')};
}

function linearAxis(title, extra = {}) {
  return {
    type: 'linear',
    title: axisTitle(title),
    ...extra,
    ticks: {maxRotation: 0, includeBounds: false, callback: tickLabel, ...extra.ticks}
  };
}

/** As few digits as tell the value. */
function tickLabel(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(0).replace('-', '−');
  const [whole, fraction] = String(Number(value.toPrecision(6))).split('.');
  return whole.replace('-', '−').replace(/\B(?=(\d{3})+$)/g, whole.length > 4 ? narrowSpace : '') +
      (fraction ? '.' + fraction : '');
}

const fewDecades = 0.8;
const manyDecades = 3.5;

/** Round values between two bounds: evenly spaced within a decade, 1, 2 and 5 of each over some, else powers of ten. */
function logTicks(min, max, most) {
  const decades = Math.log10(max / min);
  const values = [];
  if (decades < fewDecades) {
    const rough = (max - min) / Math.max(2, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough);
    for (let i = Math.ceil(min / step); i * step <= max; i += 1) values.push(i * step);
    return values;
  }
  const digits = decades < manyDecades ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power += 1)
    values.push(...digits.map((digit) => digit * 10 ** power));
  return values.filter((value) => value >= min && value <= max);
}

/** A logarithmic axis; `bounds` are its min and max. */
function logAxis(title, bounds) {
  return {
    type: 'logarithmic',
    title: axisTitle(title),
    ...bounds,
    afterBuildTicks: (axis) => {
      const room = axis.isHorizontal() ? axis.width / 60 : axis.height / 30;
      axis.ticks = logTicks(axis.min, axis.max, Math.min(10, room)).map((value) => ({value}));
    },
    ticks: {maxRotation: 0, callback: tickLabel}
  };
}

/** Bounds of a logarithmic axis around values, with some room. */
function logBounds(values, room = 1.25) {
  if (values.length === 0) return {};
  return {min: Math.min(...values) / room, max: Math.max(...values) * room};
}

const pointShapes = ['circle', 'rect', 'triangle', 'rectRot', 'rectRounded'];
const lineDashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [12, 4], [4, 4]];

/** Draws `item`s {x, low, high} or {y, low, high} as lines across the points, in the colour of the data set. */
function whiskers(across) {
  return {
    id: 'whiskers',
    beforeDatasetsDraw(chart) {
      const {ctx, scales, chartArea: area} = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
      ctx.clip();
      ctx.lineWidth = 1.25;
      chart.data.datasets.forEach((dataset, index) => {
        if (!chart.isDatasetVisible(index)) return;
        // Many lines close together would hide the points.
        ctx.strokeStyle = dataset.data.length > 60 ? faded(dataset.borderColor, 0.3) : dataset.borderColor;
        for (const point of dataset.data) {
          if (!isKnown(point.low) || !isKnown(point.high)) continue;
          ctx.beginPath();
          if (across) {
            ctx.moveTo(scales.x.getPixelForValue(point.low), scales.y.getPixelForValue(point.y));
            ctx.lineTo(scales.x.getPixelForValue(point.high), scales.y.getPixelForValue(point.y));
          } else {
            ctx.moveTo(scales.x.getPixelForValue(point.x), scales.y.getPixelForValue(point.low));
            ctx.lineTo(scales.x.getPixelForValue(point.x), scales.y.getPixelForValue(point.high));
          }
          ctx.stroke();
        }
      });
      ctx.restore();
    },
  };
}

/** Draws a straight line at a value of an axis, for what the points are to be compared with. */
function ruler(axis, value) {
  return {
    id: 'ruler',
    beforeDatasetsDraw(chart) {
      const {ctx, scales, chartArea: area} = chart;
      const at = scales[axis].getPixelForValue(value);
      const inside = axis === 'x' ? at >= area.left && at <= area.right : at >= area.top && at <= area.bottom;
      if (!inside) return;
      ctx.save();
      ctx.strokeStyle = colour('muted');
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(axis === 'x' ? at : area.left, axis === 'x' ? area.top : at);
      ctx.lineTo(axis === 'x' ? at : area.right, axis === 'x' ? area.bottom : at);
      ctx.stroke();
      ctx.restore();
    },
  };
}
