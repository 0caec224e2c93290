// Numbers and times as people read them. What is unknown is an en dash.

const unknown = '–';
const narrowSpace = '\u202f';
const noBreakSpace = '\u00a0';

function isKnown(value) {
  return value !== null && value !== undefined;
}

/** Whether a number of microseconds can be shown on a logarithmic scale: damaged databases hold others. */
function isTime(value) {
  return value > 1e-9 && value < 1e15;
}

/** At least four significant digits, never with an exponent unless tiny, thousands grouped. */
function number(value) {
  if (!isKnown(value)) return unknown;
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-4) return value.toExponential(2).replace('-', '−');
  const digits = size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  let text = size.toFixed(Math.min(digits, 7));
  if (Number.isInteger(value)) text = String(size);
  const [whole, fraction] = text.split('.');
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, narrowSpace) : whole;
  return (value < 0 ? '−' : '') + grouped + (fraction ? '.' + fraction : '');
}

function count(value) {
  return isKnown(value) ? number(Math.round(value)) : unknown;
}

function withUnit(value, unit) {
  return isKnown(value) ? number(value) + noBreakSpace + unit : unknown;
}

/** A time in the unit that suits it. */
function time(us) {
  if (!isKnown(us)) return unknown;
  if (us >= 1e6) return withUnit(us / 1e6, 's');
  return us >= 1e4 ? withUnit(us / 1e3, 'ms') : withUnit(us, 'µs');
}

/** A span of hours, minutes and seconds. */
function duration(ms) {
  if (!isKnown(ms)) return unknown;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return seconds + noBreakSpace + 's';
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + noBreakSpace + 'min ' + (seconds % 60) + noBreakSpace + 's';
  return Math.floor(minutes / 60) + noBreakSpace + 'h ' + (minutes % 60) + noBreakSpace + 'min';
}

/** "2026-03-01 04:05 UTC". */
function date(unixMs) {
  if (!unixMs) return unknown;
  const made = new Date(unixMs);
  return Number.isNaN(made.getTime()) ? unknown : made.toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
}

/** "04:05:06" of the day in UTC. */
function clock(unixMs, seconds) {
  return new Date(unixMs).toISOString().slice(11, seconds ? 19 : 16);
}

/** First and last day or minute of a stretch of time. */
function dates(first, last) {
  if (!first && !last) return unknown;
  const from = date(first || last).replace(' UTC', '');
  const to = date(last || first);
  return from + ' UTC' === to ? to : from + ' – ' + (from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to);
}

function percent(share) {
  if (!isKnown(share)) return unknown;
  const value = share * 100;
  return (value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + noBreakSpace + '%';
}

/** The probability that something is not slower; never rounded to certainty. */
function confidence(value) {
  if (!isKnown(value)) return unknown;
  if (value > 0.9995) return '> 99.9' + noBreakSpace + '%';
  return (value * 100).toFixed(1) + noBreakSpace + '%';
}

/** "1.31×". */
function times(value) {
  if (!isKnown(value)) return unknown;
  return (value >= 100 ? number(Math.round(value)) : value.toFixed(value >= 10 ? 1 : 2)) + '×';
}

function range(low, high, show) {
  return isKnown(low) && isKnown(high) ? show(low) + '–' + show(high) : '';
}

/** A figure with its interval in smaller print below it. */
function withInterval(main, interval) {
  return [main, interval ? element('span', {class: 'interval'}, interval) : null];
}

/** A summary of times ({median_us, low_us, high_us}) in microseconds. */
function timeCell(summary) {
  if (!summary) return unknown;
  return withInterval(number(summary.median_us), range(summary.low_us, summary.high_us, number));
}

function speedupCell(speedup) {
  return speedup ? withInterval(times(speedup.value), range(speedup.low, speedup.high, times)) : unknown;
}

function plural(value, one, many) {
  return count(value) + ' ' + (value === 1 ? one : many || one + 's');
}

/** The geometric mean; null of nothing. */
function geometricMean(values) {
  if (values.length === 0) return null;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** The value below which `share` of the ascending values lie, interpolated. */
function quantile(ascending, share) {
  const at = (ascending.length - 1) * share;
  const below = Math.floor(at);
  const above = Math.ceil(at);
  return ascending[below] + (ascending[above] - ascending[below]) * (at - below);
}

/** The smallest of any number of values; Math.min takes only so many. */
function least(values) {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function greatest(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

/** A probability of chance alone. */
function chance(value) {
  return isKnown(value) ? (value < 0.0001 ? '< 0.0001' : Number(value.toPrecision(2)).toString()) : unknown;
}

/** "1.043×", for what is near one. */
function ratioText(value) {
  return isKnown(value) ? value.toFixed(3) + '×' : unknown;
}

/** A status as words: "wrong result". */
function words(status) {
  return String(status).replace(/_/g, ' ');
}
