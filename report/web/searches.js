// How fast searchers found what they found: the best time so far against trials and against wall time.

/** The value that a falling step function has at `at`: that of the last step at or before it; null before the first. */
function stepAt(steps, values, at) {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low === 0 ? null : values[low - 1];
}

/** One data set a search, in microseconds. */
function searchSets(searches, axis) {
  return searches.map(
      (search, i) => searchSet(searchName(search), i, search[axis].map((x, at) => ({x, y: search.best_us[at]}))));
}

function searchName(search) {
  return search.searcher + ', seed ' + search.seed + ', session ' + search.session;
}

function searchSet(label, index, data) {
  const hue = seriesColour(index);
  return {
    label,
    data,
    stepped: true,
    borderColor: hue,
    backgroundColor: hue,
    borderWidth: 2,
    pointRadius: data.length > meanPoints / 2 ? 0 : 2,
    pointHitRadius: 6,
    pointStyle: pointShapes[index % pointShapes.length],
    borderDash: lineDashes[Math.floor(index / seriesCount) % lineDashes.length]
  };
}

const meanPoints = 120;

/**
 * For each searcher, over all searches of a kernel: the geometric mean of best-so-far over the best that is known of
 * the problem, from where each of them has something that works; a search that has ended keeps its last.
 */
function meanSets(problems, axis) {
  const bySearcher = new Map();
  for (const problem of problems) {
    const finals = problem.searches.map((search) => search.best_us[search.best_us.length - 1]).filter(isKnown);
    for (const search of problem.searches) {
      if (search.best_us.length === 0) continue;
      if (!bySearcher.has(search.searcher)) bySearcher.set(search.searcher, []);
      bySearcher.get(search.searcher).push({steps: search[axis], values: search.best_us, best: Math.min(...finals)});
    }
  }
  return [...bySearcher.entries()].map(([searcher, searches], i) => {
    const first = Math.max(...searches.map((one) => one.steps[0]));
    const last = Math.max(...searches.map((one) => one.steps[one.steps.length - 1]));
    const at = meanGrid(first, last, axis === 'trials');
    return searchSet(
        searcher + ' (' + plural(searches.length, 'search', 'searches') + ')', i,
        at.map((x) => ({x, y: geometricMean(searches.map((one) => stepAt(one.steps, one.values, x) / one.best))})));
  });
}

function meanGrid(first, last, whole) {
  const grid = [];
  for (let i = 0; i <= meanPoints; i += 1) {
    const x = first + ((last - first) * i) / meanPoints;
    grid.push(whole ? Math.round(x) : x);
  }
  return [...new Set(grid)];
}

function searchConfig(sets, xTitle, yTitle) {
  const values = sets.flatMap((set) => set.data.map((point) => point.y));
  return {
    type: 'line',
    data: {datasets: sets},
    options: {
      parsing: false,
      interaction: {mode: 'nearest', intersect: false},
      layout: {padding: {right: 12}},
      scales: {
        x: linearAxis(xTitle, {min: 0, max: greatest(sets.flatMap((set) => set.data.map((point) => point.x)))}),
        y: logAxis(yTitle, logBounds(values, 1.05))
      },
      plugins: {
        tooltip: {
          callbacks:
              {title: () => '', label: (item) => [item.dataset.label, number(item.raw.y) + ' at ' + number(item.raw.x)]}
        }
      },
    },
  };
}

function searchNumbers(sets, xTitle, yTitle) {
  return plainTable(
      'Steps of each search', ['Search', xTitle, yTitle],
      sets.flatMap((set) => set.data.slice(0, 200).map((point) => [set.label, number(point.x), number(point.y)])));
}

/** Both charts of some searches; `sets` makes the data sets for 'trials' or 'elapsed_s'. */
function searchFigures(key, sets, yTitle, caption) {
  const one = (axis, title, xTitle) => figure({
    key: key + axis,
    title,
    caption,
    config: () => searchConfig(sets(axis), xTitle, yTitle),
    numbers: () => searchNumbers(sets(axis), xTitle, yTitle)
  });
  return element(
      'div', {class: 'charts'}, one('trials', 'Best so far against trials', 'Trial'),
      one('elapsed_s', 'Best so far against wall time', 'Seconds since the first trial'));
}

/** The searches of one problem. */
function problemSearches(entry) {
  const searches = entry.problem.searches.filter((search) => search.best_us.length > 0);
  if (searches.length === 0)
    return note('No search has found a configuration that works, so there is no best-so-far to draw.');
  return [searchFigures(
      'searches ' + entry.key, (axis) => searchSets(searches, axis), 'Best time so far, µs',
      'One line per search; failed trials count as trials.')];
}

/** The searches of a kernel: the mean over its problems, or those of the problem chosen. */
function kernelSearches(context, kernel) {
  const problems = kernel.problems.filter((problem) => problem.searches.some((search) => search.best_us.length > 0));
  if (problems.length === 0)
    return note('No search has found a configuration that works, so there is no best-so-far to draw.');
  const key = 'searches of ' + contextKey(context) + kernel.name + kernel.source_hash;
  const state = keep(key, {problem: 'all'});
  return part((renew) => {
    const chosen = problems.find((problem) => problem.text === state.problem);
    const options = [
      {id: 'all', label: 'All (mean)'},
      ...problems.map((problem) => ({id: problem.text, label: problemText(kernel, problem)}))
    ];
    const pick = choice(key, 'Problem', options, chosen ? chosen.text : 'all', (id) => {
      state.problem = id;
      renew();
    });
    return [
      element('div', {class: 'controls'}, pick),
      chosen ?
          problemSearches({key: key + chosen.text, problem: chosen}) :
          searchFigures(
              key, (axis) => meanSets(problems, axis), 'Best so far / best known',
              'Geometric mean over the problems for each searcher; 1 is the best that any search of the problem found.')
    ];
  });
}
