// Elements are made here and nowhere else: texts become text nodes, so nothing of the document is ever parsed as
// markup.

const svgNamespace = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function')
      node.addEventListener(name, value);
    else
      node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) {
      node.append(child instanceof Node ? child : String(child));
    }
  }
  return node;
}

/** An element; an attribute that is a function listens to the event of its name, one that is null is left out. */
function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

function paragraph(...children) {
  return element('p', {}, ...children);
}

function note(...children) {
  return element('p', {class: 'muted'}, ...children);
}

/** Link to a page of the report. */
function link(path, ...children) {
  return element('a', {href: '#/' + path.map(encodeURIComponent).join('/')}, ...children);
}

function section(title, ...children) {
  return element('section', {}, element('h2', {}, title), ...children);
}

/** Terms and what they are, as [term, content] pairs; pairs without content are left out. */
function facts(pairs) {
  const known = pairs.filter((pair) => pair[1] !== null && pair[1] !== undefined && pair[1] !== '');
  return element(
      'dl', {class: 'facts'},
      known.map((pair) => element('div', {}, element('dt', {}, pair[0]), element('dd', {}, pair[1]))));
}

/** Large figures, as {label, value, detail}. */
function tiles(items) {
  return element(
      'ul', {class: 'tiles'},
      items.map(
          (item) => element(
              'li', {}, element('span', {class: 'label'}, item.label), element('span', {class: 'value'}, item.value),
              item.detail ? element('span', {class: 'detail'}, item.detail) : null)));
}

/** A box that scrolls sideways by itself, so that the page never does. */
function scrollBox(label, content) {
  return element(
      'div', {class: 'scroll', role: 'region', 'aria-label': label, tabindex: '0', 'data-focus': 'box ' + label},
      content);
}

/** A table's caption, which stays in sight while the table scrolls under it. */
function caption(...children) {
  return element('caption', {}, element('span', {}, ...children));
}

/** A labelled choice; `options` are {id, label}. */
function choice(key, label, options, chosen, change) {
  const select = element(
      'select', {'data-focus': key, change: () => change(select.value)},
      options.map(
          (option) =>
              element('option', {value: option.id, selected: String(option.id) === String(chosen)}, option.label)));
  return element('label', {class: 'control'}, element('span', {}, label), select);
}

function checkbox(key, label, checked, change) {
  const box = element('input', {type: 'checkbox', 'data-focus': key, checked, change: () => change(box.checked)});
  return element('label', {class: 'control check'}, box, element('span', {}, label));
}

// What the reader chose (sorting, filters, selections), kept while pages come and go and documents are replaced.
const kept = new Map();

/** The state kept under a key; made of `initial` the first time. */
function keep(key, initial) {
  if (!kept.has(key)) kept.set(key, {...initial});
  return kept.get(key);
}

/** Replaces what is in `node` without losing the focus, the cursor or what was scrolled or opened in it. */
function replaceInPlace(node, make) {
  const active = node.contains(document.activeElement) ? document.activeElement : null;
  const focus = active && active.getAttribute('data-focus');
  const cursor = active && active.tagName === 'INPUT' && active.type === 'search' ? active.selectionStart : null;
  const scrolled = new Map();
  for (const box of node.querySelectorAll('.scroll'))
    scrolled.set(box.getAttribute('aria-label'), [box.scrollLeft, box.scrollTop]);
  releaseCharts(node);
  node.replaceChildren(...[make()].flat(Infinity).filter((child) => child));
  for (const box of node.querySelectorAll('.scroll')) {
    [box.scrollLeft, box.scrollTop] = scrolled.get(box.getAttribute('aria-label')) || [0, 0];
  }
  drawCharts();
  if (!focus) return;
  const again = [...node.querySelectorAll('[data-focus]')].find((one) => one.getAttribute('data-focus') === focus);
  if (!again) return;
  again.focus({preventScroll: true});
  if (cursor !== null) again.setSelectionRange(cursor, cursor);
}

/** A part of a page that is made again by itself: `make` is given a function that does so. */
function part(make) {
  const box = element('div', {class: 'part'});
  const renew = () => replaceInPlace(box, () => make(renew));
  box.append(...[make(renew)].flat(Infinity).filter((child) => child));
  return box;
}

/** "Show" and "Hide" of something long; what is in it is made when it is first opened. */
function details(key, summary, make) {
  const state = keep('details ' + key, {open: false});
  const box = element('details', {open: state.open}, element('summary', {'data-focus': 'details ' + key}, summary));
  let made = false;
  const show = () => {
    if (made || !box.open) return;
    made = true;
    box.append(make());
  };
  box.addEventListener('toggle', () => {
    state.open = box.open;
    show();
    drawCharts();
  });
  show();
  return box;
}
