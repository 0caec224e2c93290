// Which page is shown: the fragment of the address says it.

const pages = [
  {name: 'overview', title: 'Overview', make: () => overviewPage()},
  {name: 'kernels', title: 'Kernels', make: (name) => (name === undefined ? kernelsPage() : kernelPage(name))},
  {name: 'problem', title: 'Problem', under: 'kernels', make: (id, trials) => problemPage(id, trials)},
  {name: 'thermal', title: 'Thermal log', make: (id) => thermalPage(id)},
  {name: 'failures', title: 'Failures', make: () => failuresPage()},
  {name: 'devices', title: 'By device', shown: () => report.devices.length > 0, make: () => devicesPage()},
  {name: 'comparison', title: 'Comparison', make: () => comparisonPage()},
];

function route() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').filter((part) => part !== '').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch (malformed) {
      return part;
    }
  });
  return {page: pages.find((page) => page.name === parts[0]) || (parts.length ? null : pages[0]), rest: parts.slice(1)};
}

function makePage() {
  const {page, rest} = route();
  if (!page)
    return [
      element('h1', {}, 'No such page'),
      note('The report has no page at this address. ', link(['overview'], 'Overview'))
    ];
  try {
    return page.make(...rest);
  } catch (failure) {
    console.error(failure);
    return [element('h1', {}, page.title), paragraph('This page could not be shown: ' + failure.message)];
  }
}

function showNavigation() {
  const {page} = route();
  const current = page ? page.under || page.name : '';
  document.getElementById('navigation')
      .replaceChildren(
          ...pages.filter((one) => !one.under && (!one.shown || one.shown()))
              .map(
                  (one) => element(
                      'a', {href: '#/' + one.name, 'aria-current': one.name === current ? 'page' : null}, one.title)));
}

function showFrame() {
  document.getElementById('report-title').textContent = report.title;
  document.getElementById('report-origin').textContent = report.database.file;
  document.getElementById('footer').textContent = 'Made by Pascaline ' + report.program_version + ' from ' +
      report.database.file + (report.generated_unix_ms ? ' at ' + date(report.generated_unix_ms) : '') +
      '. Times of day are UTC. Charts are drawn by Chart.js ' + Chart.version + ' (MIT License).';
}

/** Draws the page again where it is. */
function renewPage() {
  const at = [scrollX, scrollY];
  replaceInPlace(document.getElementById('main'), makePage);
  scrollTo(...at);
}

function goToPage() {
  const main = document.getElementById('main');
  showNavigation();
  replaceInPlace(main, makePage);
  const heading = main.querySelector('h1');
  document.title = (heading ? heading.textContent + ' – ' : '') + report.title;
  scrollTo(0, 0);
  main.focus({preventScroll: true});
}

/** Shows a newer document; the address follows a problem whose number moved. */
function takeDocument(next) {
  const {page, rest} = route();
  const before = page && page.name === 'problem' ? problemsById.get(Number(rest[0])) : null;
  adoptReport(next);
  const now = before && problemByKey(before.key);
  if (now && now.problem.id !== before.problem.id) {
    rememberSelection(now, explorerKept(now).chosen || []);
  }
  showFrame();
  renewPage();
}

function start() {
  try {
    adoptReport(JSON.parse(document.getElementById('report-document').textContent));
  } catch (failure) {
    document.getElementById('main').replaceChildren(
        element('h1', {}, 'This report cannot be shown'), paragraph(failure.message));
    applyTheme();
    return;
  }
  watchTheme(renewPage);
  showFrame();
  showNavigation();
  replaceInPlace(document.getElementById('main'), makePage);
  addEventListener('hashchange', goToPage);
  document.getElementById('skip').addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('main').focus();
  });
  watchServer(takeDocument);
}

start();
