// The report document, and what is looked up in it.

let report = null;
let problemsById = new Map();

/** Takes a document; throws if it is none that this page can show. */
function adoptReport(next) {
  if (!next || next.format !== 'pascaline-report') throw new Error('it is not a Pascaline report');
  if (next.version !== 1) throw new Error('the document has version ' + next.version + '; this page shows version 1');
  report = next;
  problemsById = new Map();
  for (const context of report.contexts) {
    for (const kernel of context.kernels) {
      for (const problem of kernel.problems) {
        problemsById.set(problem.id, {context, kernel, problem, key: problemKey(context, kernel, problem)});
      }
    }
  }
}

// Ids are places in the document and may move when it grows; this stays.
function problemKey(context, kernel, problem) {
  return JSON.stringify([contextKey(context), kernel.name, kernel.source_hash, problem.text]);
}

function contextKey(context) {
  return [
    context.device.kind, context.device.name, context.device.compute_capability, context.device.sm_count,
    context.toolkit.compiler, context.toolkit.version, context.toolkit.target, context.toolkit.driver_version
  ].join('|');
}

function problemByKey(key) {
  return [...problemsById.values()].find((entry) => entry.key === key) || null;
}

/** A stored target as readers know it: "host" is the emulated device. */
function targetName(target) {
  return target === 'host' ? 'emulator' : target;
}

/** "nvrtc 12.9, sm_61, driver 12.4". */
function toolkitName(toolkit) {
  return [
    toolkit.compiler + ' ' + toolkit.version, targetName(toolkit.target),
    toolkit.driver_version ? 'driver ' + toolkit.driver_version : ''
  ].filter((text) => text.trim())
      .join(', ');
}

function contextName(context) {
  return context.device.name + ' · ' + toolkitName(context.toolkit);
}

/** "6.1, 20 multiprocessors, 8.0 GiB". */
function deviceFacts(device) {
  const known = [];
  if (device.compute_capability) known.push('compute capability ' + device.compute_capability);
  if (device.sm_count) known.push(plural(device.sm_count, device.kind === 'host' ? 'processor' : 'multiprocessor'));
  if (device.memory_bytes) known.push((device.memory_bytes / 2 ** 30).toFixed(1) + noBreakSpace + 'GiB');
  return known.join(', ');
}

/** Names of all kernels in the order of the document. */
function kernelNames() {
  return [...new Set(report.contexts.flatMap((context) => context.kernels.map((kernel) => kernel.name)))];
}

/** The kernels of a name, as {context, kernel}. */
function kernelsNamed(name) {
  return report.contexts.flatMap(
      (context) => context.kernels.filter((kernel) => kernel.name === name).map((kernel) => ({context, kernel})));
}

function sessionById(id) {
  return report.sessions.find((session) => session.id === id) || null;
}

/** A problem's dimensions and types. */
function problemSizes(problem) {
  return {...problem.dimensions, ...problem.types};
}

const sharedSizesByKernel = new WeakMap();

/** Dimensions and types that are the same in all problems of a kernel; none if it has only one. */
function sharedSizes(kernel) {
  if (!sharedSizesByKernel.has(kernel)) {
    const [first, ...others] = kernel.problems.map(problemSizes);
    sharedSizesByKernel.set(
        kernel,
        Object.fromEntries(Object.entries(others.length ? first : {})
                               .filter(([name, value]) => others.every((sizes) => sizes[name] === value))));
  }
  return sharedSizesByKernel.get(kernel);
}

/** What tells a problem from the others of its kernel; all of it where that is nothing. */
function problemText(kernel, problem) {
  const sizes = problemSizes(problem);
  const shared = sharedSizes(kernel);
  const own = Object.entries(sizes).filter(([name]) => !Object.hasOwn(shared, name));
  return configText(own.length ? Object.fromEntries(own) : sizes) || problem.text;
}

/** "A=1 B=2" of a configuration that is an object. */
function configText(config) {
  return config ? Object.entries(config).map((entry) => entry[0] + '=' + entry[1]).join(' ') : '';
}

/** Those names of two configurations whose values differ. */
function differingNames(a, b) {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => a[name] !== b[name]);
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** Says whether trials with this status are usable: they ran with the right result, even if racing dropped them. */
function hasTime(status) {
  return status === 'ok' || status === 'dropped';
}

/** Keeps only the counts of trials that are not usable. */
function failedStatuses(statuses) {
  return Object.fromEntries(Object.entries(statuses).filter((entry) => !hasTime(entry[0])));
}

function failedTrials(statuses) {
  return sum(Object.values(failedStatuses(statuses)));
}

/** "12 rejected, 3 timed out", commonest first. */
function statusText(statuses) {
  return Object.entries(statuses)
      .filter((entry) => entry[1] > 0)
      .sort((a, b) => b[1] - a[1])
      .map((entry) => count(entry[1]) + ' ' + words(entry[0]))
      .join(', ');
}

/** "24 trials, 22 usable, 10 dropped early, 2 duplicates, 12 measurements in finals". */
function countsText(counts) {
  return report.counts.filter((one) => counts[one.name] || one.name === 'trials' || one.name === 'ok')
      .map((one) => plural(counts[one.name], one.one, one.many))
      .join(', ');
}

function inFilter() {
  const parts = [];
  if (report.kernel_filter) parts.push('kernel ' + report.kernel_filter);
  if (report.device_filter) parts.push('device ' + report.device_filter);
  return parts.length ? 'Only ' + parts.join(' and ') + ' is reported.' : '';
}
