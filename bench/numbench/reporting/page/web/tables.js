// Tables: one order of the models, one filter, and published models folded to a line, for all.
const tables = [...document.querySelectorAll('table[data-table]')].map((table) => ({
  name: table.dataset.table,
  table,
  heads: [...table.tHead.rows[0].cells],
  bodies: [...table.tBodies].map((body) => ({
    body,
    group: body.querySelector('.group'),
    rows: [...body.querySelectorAll('tr:not(.group)')],
  })),
}));
const memberName = (node) => pageData.members[node.dataset.member] ?? '';
const rowTexts = new Map(tables.flatMap(({ bodies }) => bodies.flatMap(({ rows }) => rows))
  .map((row) => [row, `${memberName(row)} ${row.textContent}`.toLowerCase()]));
const isPublished = (row) => !row.classList.contains('run');

function sortKey(row, column, isNumeric) {
  const cell = row.cells[column];
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  // A bound, such as `≥ 4,096`, is sorted by its number.
  if (isNumeric && /^[≥≤<>]/.test(text)) return Number(text.slice(1).replaceAll(',', ''));
  return text === '–' ? '' : text;
}

// Unknown cells are last in either direction; equal ones keep their order.
function compareKeys(a, b, direction) {
  if (a === '' || b === '') return (a === '') - (b === '');
  if (typeof a === 'number' && typeof b === 'number') return direction * (a - b);
  return direction * String(a).localeCompare(String(b), 'en', { numeric: true });
}

// The table that is sorted, and the index and direction of its column.
function sorting() {
  const [name, field, direction] = value('sort').split(' ');
  const source = tables.find((one) => one.name === name);
  const column = source?.heads.findIndex((head) => head.dataset.field === field) ?? -1;
  return column < 0 ? {} : { source, column, direction };
}

function sortRows({ source, column, direction }, { rows }) {
  const isNumeric = 'first' in source.heads[column].dataset;
  const keyed = rows.map((row) => [sortKey(row, column, isNumeric), row]);
  return keyed.sort((a, b) => compareKeys(a[0], b[0], direction === 'up' ? 1 : -1)).map(([, row]) => row);
}

// Sorts a table by its column, and all other tables by the order of the models in it.
let sortedBy = '';
function applyOrder() {
  if (value('sort') === sortedBy) return;
  sortedBy = value('sort');
  const known = sorting();
  const order = new Map();
  for (const part of known.source?.bodies ?? []) {
    for (const { dataset } of sortRows(known, part)) {
      if (dataset.member && !order.has(dataset.member)) order.set(dataset.member, order.size);
    }
  }
  const rank = (row) => order.get(row.dataset.member) ?? order.size;
  for (const one of tables) {
    one.heads.forEach((head, column) => {
      const isSorted = one === known.source && column === known.column;
      if (isSorted) head.setAttribute('aria-sort', known.direction === 'up' ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    for (const part of one.bodies) {
      part.body.append(...(one === known.source ? sortRows(known, part)
        : [...part.rows].sort((a, b) => rank(a) - rank(b))));
    }
  }
}

function makeSortable({ name, heads }) {
  for (const head of heads) {
    const button = element('button', { type: 'button', class: 'sort' }, ...head.childNodes);
    const first = head.dataset.first ?? 'up';
    const order = [first, first === 'up' ? 'down' : 'up'].map((way) => `${name} ${head.dataset.field} ${way}`);
    button.addEventListener('click', () => setState({
      sort: { [order[0]]: order[1], [order[1]]: '' }[value('sort')] ?? order[0],
    }));
    head.append(button);
  }
}

// Differences by task, of which there are many, take the place of those of means if a task is chosen.
const folded = tables.filter(({ name }) => ['comparisons', 'price'].includes(name));
const compared = folded.flatMap(({ bodies }) => bodies)
  .filter(({ rows }) => rows.some((row) => !row.dataset.task)).flatMap(({ rows }) => rows);
const details = new Set(compared.filter((row) => row.dataset.task));
const means = new Set(compared.filter((row) => !row.dataset.task));
function foldDetails() {
  for (const { heads, table, bodies } of folded) {
    const count = bodies.flatMap(({ rows }) => rows).filter((row) => details.has(row)).length;
    if (!count) continue;
    const cell = element('th', { colspan: heads.length, scope: 'rowgroup' },
      `${formatCount(count)} rows by task: choose a task at the top of the page`);
    const body = element('tbody', { class: 'by-task' }, element('tr', { class: 'group' }, cell));
    table.append(body);
    listeners.push(() => { body.hidden = Boolean(value('task')); });
  }
}

// Adds the line that stands for the published models of a table, in their heading or below all rows.
function fold(one) {
  const published = one.bodies.flatMap(({ rows }) => rows.filter(isPublished));
  if (!published.length) return;
  const part = one.bodies.find(({ group, rows }) => group && rows.every(isPublished));
  const count = published.filter((row) => !details.has(row)).length;
  const isRanked = one.heads.some((head) => head.dataset.field === 'ranks');
  const names = document.querySelector('[data-state=published]').parentElement.textContent.trim().toLowerCase();
  const button = element('button', { type: 'button', class: 'fold' }, `${formatCount(count)} rows of ${names}${isRanked ? ' (the ranks count them)' : ''}`);
  button.addEventListener('click', () => setState({ published: value('published') ? '' : '1' }));
  listeners.push(() => button.setAttribute('aria-expanded', Boolean(value('published'))));
  if (part) {
    part.group.cells[0].replaceChildren(button);
    part.isFold = true;
  } else {
    const cell = element('th', { colspan: one.heads.length, scope: 'rowgroup' }, button);
    one.table.append(element('tbody', {}, element('tr', { class: 'group' }, cell)));
  }
}

const words = () => value('models').trim().toLowerCase();

function applyFilter() {
  const [text, task] = [words(), value('task')];
  for (const node of document.querySelectorAll('[data-answer]')) node.hidden = node.dataset.answer !== (task in pageData.tasks ? task : '');
  for (const node of document.querySelectorAll('[data-by-task]')) node.hidden = !task;
  let shown = 0;
  for (const { table, bodies } of tables) {
    for (const { group, rows, isFold } of bodies) {
      for (const row of rows) {
        row.hidden = Boolean(!rowTexts.get(row).includes(text)
          || (task ? means : details).has(row)
          || (task && row.dataset.task && row.dataset.task !== task)
          || (!value('published') && !text && isPublished(row)));
      }
      shown += rows.filter((row) => !row.hidden).length;
      if (group) group.hidden = !isFold && rows.every((row) => row.hidden);
    }
    for (const cell of table.querySelectorAll('th[data-task], td[data-task]')) {
      cell.hidden = Boolean(task) && cell.dataset.task !== task;
    }
  }
  byId('filter-state').textContent = shown || !tables.length ? '' : 'No row matches.';
}

// A head stays in view unless its table is wider than the page and scrolls by itself.
function fit() {
  for (const { table } of tables) {
    const frame = table.parentElement;
    frame.classList.remove('fits');
    frame.classList.toggle('fits', table.scrollWidth <= frame.clientWidth);
  }
}

tables.forEach(makeSortable);
tables.forEach(fold);
foldDetails();
for (const select of document.querySelectorAll('[data-state=task]')) addOptions(select, Object.keys(pageData.tasks), taskName);
listeners.push(applyOrder, applyFilter, fit);
window.addEventListener('resize', fit);
byId('filters').hidden = false;
