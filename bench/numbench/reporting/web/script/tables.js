// Tables: sorting by any column, and one tab stop with arrow keys for the cells.
const scoreCells = (table) => [...table.querySelectorAll('td[data-task][data-sort]')];

function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  return text === '–' ? '' : text;
}

// Empty cells are last in either direction; equal ones keep their order.
function compareKeys(a, b, direction) {
  if (a === '' || b === '') return (a === '') - (b === '');
  if (typeof a === 'number' && typeof b === 'number') return direction * (a - b);
  return direction * String(a).localeCompare(String(b), 'en', { numeric: true });
}

function sortable(table) {
  const body = table.tBodies[0];
  const originalRows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  // The summary ranks the runs; published rows stay below them.
  const isBelow = (row) => table.dataset.table === 'summary' && row.classList.contains('published');
  heads.forEach((head, column) => {
    const button = element('button', { type: 'button', class: 'sort' }, ...head.childNodes);
    head.append(button);
    const first = 'numeric' in head.dataset ? 'descending' : 'ascending';
    const second = first === 'descending' ? 'ascending' : 'descending';
    button.addEventListener('click', () => {
      const next = { [first]: second, [second]: null }[head.getAttribute('aria-sort')];
      const order = next === undefined ? first : next;
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      let rows = originalRows;
      if (order) {
        head.setAttribute('aria-sort', order);
        const direction = order === 'ascending' ? 1 : -1;
        rows = originalRows.map((row) => [sortKey(row, column), row])
          .sort((a, b) => isBelow(a[1]) - isBelow(b[1]) || compareKeys(a[0], b[0], direction))
          .map(([, row]) => row);
      }
      body.append(...rows);
    });
  });
}

// A short table that fits needs no box of its own; one that is cut off fades out at the edge.
function fitBox(table) {
  const box = table.parentNode;
  const update = () => {
    const fits = !box.classList.contains('long') && table.offsetWidth <= box.clientWidth;
    box.classList.toggle('fits', fits);
    box.classList.toggle('more', !fits && box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  const observer = new ResizeObserver(update);
  observer.observe(box);
  observer.observe(table);
  box.addEventListener('scroll', update, { passive: true });
}

function cellGrid(table) {
  const cells = scoreCells(table);
  if (!cells.length) return;
  table.setAttribute('role', 'grid');
  cells.forEach((cell, index) => { cell.tabIndex = index ? -1 : 0; });
  table.addEventListener('focusin', ({ target }) => {
    if (!cells.includes(target)) return;
    cells.forEach((cell) => { cell.tabIndex = cell === target ? 0 : -1; });
  });
  table.addEventListener('keydown', (event) => {
    if (!cells.includes(event.target)) return;
    const next = neighbour(event.target, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

function neighbour(cell, key) {
  const steps = {
    ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
  };
  if (!steps[key]) return null;
  const [down, right] = steps[key];
  const rows = [...cell.closest('tbody').rows].filter((row) => !row.hidden);
  let row = rows.indexOf(cell.parentNode);
  let column = cell.cellIndex;
  for (;;) {
    row += down;
    column += right;
    const next = rows[row]?.cells[column];
    if (!next || next.tagName === 'TH') return null;
    if (!next.hidden && next.hasAttribute('tabindex')) return next;
  }
}
