// Tables that sort by their headers and are narrowed by a text and by choices.

const mostRows = 250;

function compareCells(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', {numeric: true});
}

/**
 * A table. `spec`: key (its state is kept under it), caption, rows, columns, and optionally sort (id of a column),
 * descending, search (what a row is found by), filters ({id, label, options: [{id, label, accept}]}, the first option
 * being the one to begin with), empty (said instead where there is no row), most (rows shown until all are asked for),
 * tall (it scrolls up and down in itself). A column: id, title, and value (what it sorts by; null sorts last), and
 * optionally unit, numeric, cell (what it shows), help, wide.
 */
function table(spec) {
  if (spec.rows.length === 0) return note(spec.empty || 'There is nothing to list.');
  const initial = {sort: spec.sort || null, descending: Boolean(spec.descending), text: '', all: false, chosen: {}};
  const state = keep('table ' + spec.key, initial);
  // Two tables with one initial state must not share the choices in it.
  if (state.chosen === initial.chosen) state.chosen = {};
  const tally = element('output', {class: 'muted tally'});
  const body = element('tbody');
  const more = element('div', {class: 'more'});
  const headers = spec.columns.map((column) => tableHeader(spec.key, column, state, () => show()));
  const show = () => {
    const rows = sortedRows(spec, state, wantedRows(spec, state));
    const shown = printing || state.all ? rows : rows.slice(0, spec.most || mostRows);
    body.replaceChildren(...shown.map((row) => tableRow(spec, row)));
    if (rows.length === 0) body.append(emptyRow(spec));
    tally.textContent = rows.length === spec.rows.length ?
        plural(rows.length, 'row') :
        count(rows.length) + ' of ' + plural(spec.rows.length, 'row');
    more.replaceChildren(...(shown.length < rows.length ? [showAllButton(rows.length, showAll)] : []));
    headers.forEach((header, i) => markSorted(header, spec.columns[i], state));
  };
  // The button goes, so what it showed has the focus.
  const showAll = () => {
    state.all = true;
    show();
    box.focus({preventScroll: true});
  };
  show();
  const grid = element(
      'table', {class: spec.className || null}, caption(spec.caption), element('thead', {}, element('tr', {}, headers)),
      body);
  const box = scrollBox(spec.caption, grid);
  return element(
      'div', {class: spec.tall ? 'table tall' : 'table', 'data-table': spec.key},
      spec.search || spec.filters ? tableControls(spec, state, tally, show) : null, box, more);
}

function tableHeader(key, column, state, show) {
  const change = () => {
    state.descending = state.sort === column.id ? !state.descending : Boolean(column.numeric && !column.ascending);
    state.sort = column.id;
    show();
  };
  const button = element(
      'button', {
        type: 'button',
        class: 'sort',
        click: change,
        title: column.help || null,
        'data-focus': 'sort ' + key + ' ' + column.id
      },
      column.title, column.unit ? element('span', {class: 'unit'}, ' ' + column.unit) : null,
      element('span', {class: 'arrow', 'aria-hidden': 'true'}));
  // On paper headers are repeated on every page, which browsers do with text but not with buttons.
  const printed = element('span', {class: 'printed'}, column.title + (column.unit ? ' ' + column.unit : ''));
  return element(
      'th', {scope: 'col', class: column.numeric ? 'number' : null, 'data-column': column.id}, button, printed);
}

function markSorted(header, column, state) {
  const sorted = state.sort === column.id;
  const button = header.querySelector('button');
  header.setAttribute('aria-sort', sorted ? (state.descending ? 'descending' : 'ascending') : 'none');
  button.querySelector('.arrow').textContent = sorted ? (state.descending ? '▼' : '▲') : '';
}

function tableControls(spec, state, tally, show) {
  const controls = [];
  if (spec.search) {
    const box = element('input', {
      type: 'search',
      value: state.text,
      'data-focus': 'search ' + spec.key,
      autocomplete: 'off',
      spellcheck: 'false',
      input: () => {
        state.text = box.value;
        show();
      }
    });
    controls.push(element('label', {class: 'control'}, element('span', {}, 'Filter'), box));
  }
  for (const filter of spec.filters || []) {
    controls.push(choice(
        'filter ' + spec.key + ' ' + filter.id, filter.label, filter.options,
        state.chosen[filter.id] || filter.options[0].id, (id) => {
          state.chosen[filter.id] = id;
          show();
        }));
  }
  return element('div', {class: 'controls'}, controls, tally);
}

function wantedRows(spec, state) {
  const wanted = state.text.toLowerCase().split(/\s+/).filter((word) => word);
  const accepts =
      (spec.filters || [])
          .map((filter) => filter.options.find((option) => option.id === state.chosen[filter.id]) || filter.options[0])
          .map((option) => option.accept);
  return spec.rows.filter((row) => {
    if (!accepts.every((accept) => accept(row))) return false;
    if (!spec.search || wanted.length === 0) return true;
    const text = String(spec.search(row)).toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

function sortedRows(spec, state, rows) {
  const column = spec.columns.find((one) => one.id === state.sort);
  if (!column) return rows;
  const sign = state.descending ? -1 : 1;
  const keyed = rows.map((row) => ({row, value: column.value(row)}));
  keyed.sort((a, b) => {
    if (!isKnown(a.value) || !isKnown(b.value)) return Number(!isKnown(a.value)) - Number(!isKnown(b.value));
    return sign * compareCells(a.value, b.value);
  });
  return keyed.map((item) => item.row);
}

function tableRow(spec, row) {
  return element('tr', {class: spec.rowClass ? spec.rowClass(row) : null}, spec.columns.map((column, i) => {
    const content = column.cell ? column.cell(row) : column.value(row);
    const shown = isKnown(content) ? (typeof content === 'number' ? number(content) : content) : unknown;
    const kind = [column.numeric ? 'number' : '', column.wide ? 'wide' : ''].join(' ').trim() || null;
    return i === 0 ? element('th', {scope: 'row', class: kind}, shown) : element('td', {class: kind}, shown);
  }));
}

function emptyRow(spec) {
  return element(
      'tr', {}, element('td', {colspan: spec.columns.length, class: 'muted'}, 'No row matches the filters.'));
}

function showAllButton(total, showAll) {
  return element(
      'button', {type: 'button', 'data-focus': 'all rows ' + total, click: showAll},
      'Show all ' + count(total) + ' rows');
}

/**
 * A small table that does not sort: titles, and rows of cells, the first of which names the row, and those of the
 * given places are numbers.
 */
function plainTable(title, titles, rows, numericFrom = 1, numericTo = Infinity) {
  const kind = (i) => (i >= numericFrom && i < numericTo ? 'number' : null);
  return scrollBox(
      title,
      element(
          'table', {}, caption(title),
          element(
              'thead', {},
              element('tr', {}, titles.map((name, i) => element('th', {scope: 'col', class: kind(i)}, name)))),
          element(
              'tbody', {},
              rows.map(
                  (row) => element(
                      'tr', {},
                      row.map(
                          (cell, i) =>
                              (i === 0 ? element('th', {scope: 'row'}, cell) :
                                         element('td', {class: kind(i)}, isKnown(cell) ? cell : unknown))))))));
}
