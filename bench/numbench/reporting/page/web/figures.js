// Figures: a point that is hovered or reached by keys is named, and its model lit everywhere.
const REACH = 24;
const figures = [...document.querySelectorAll('figure svg')].map((svg) => ({ svg, marks: readMarks(svg) }));

// The points of a figure. The id of a group has their keys: `…marks~0.division~1.division`.
function readMarks(svg) {
  const marks = [];
  for (const group of svg.querySelectorAll('[id*="-marks~"]')) {
    const keys = group.id.split('~').slice(1).map((key) => key.split('.'));
    if (keys.every(([member]) => member === keys[0][0])) [[group.dataset.member]] = keys;
    const points = [...group.querySelectorAll('use')];
    (points.length ? points : [group]).forEach((node, index) => {
      const [member, task = ''] = keys[index] ?? keys[0];
      node.dataset.member = member;
      marks.push({ node, member, task });
    });
  }
  return marks;
}

const cellText = (cell) => [...cell.childNodes].map((node) => node.textContent).filter(Boolean).join(' ');

// The name of a model, and its numbers from the tables.
function describe({ member, task }) {
  const rows = (name) => [...document.querySelectorAll(`table[data-table=${name}] tr[data-member="${member}"]`)];
  const cells = (name, fields) => rows(name).filter((row) => !row.dataset.task || row.dataset.task === task)
    .flatMap((row) => tables.find((one) => one.name === name).heads
      .map((head, column) => [head, row.cells[column]])
      .filter(([head, cell]) => fields.includes(head.dataset.field) && cell.textContent !== '–')
      .map(([head, cell]) => `${head.textContent} ${cellText(cell)}`));
  const found = task
    ? [...cells('log_smape', [task]), ...cells('tokens', [task]).map((text) => `${text} tokens`), ...cells('horizons', ['h50', 'h90'])]
    : cells('summary', ['score', 'tokens', 'cost']);
  return [memberName({ dataset: { member } }), ...found].join(' · ');
}

function light(member) {
  document.querySelectorAll('.lit').forEach((node) => node.classList.remove('lit'));
  if (member !== null) document.querySelectorAll(`[data-member="${member}"]`).forEach((node) => node.classList.add('lit'));
  document.body.classList.toggle('lighting', member !== null);
}

const center = (node) => {
  const box = node.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
};

function point(mark) {
  const tip = byId('tip');
  tip.hidden = !mark;
  light(mark ? mark.member : null);
  if (!mark) return;
  tip.replaceChildren();
  putText(tip, describe(mark));
  const [x, y] = center(mark.node);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
  tip.style.top = `${y + height + 20 < innerHeight ? y + 14 : y - height - 14}px`;
}

// A click filters by the model, and by the task of a point; another click undoes it.
function choose({ member, task }) {
  const models = pageData.members[member];
  const isUndone = value('models') === models;
  setState({ models: isUndone ? '' : models, task: isUndone || !(task in pageData.tasks) ? '' : task });
}

function nearest(marks, { clientX, clientY, target }) {
  let [best, shortest] = [null, REACH];
  for (const mark of marks) {
    const [x, y] = center(mark.node);
    const distance = Math.hypot(x - clientX, y - clientY);
    if (distance < shortest && !mark.node.classList.contains('off')) [best, shortest] = [mark, distance];
  }
  const over = target.closest?.('[data-member]');
  return best ?? (over && { node: over, member: over.dataset.member, task: '' });
}

for (const { svg, marks } of figures.filter((figure) => figure.marks.length)) {
  let current = -1;
  const frame = svg.parentElement;
  svg.addEventListener('pointermove', (event) => point(nearest(marks, event)));
  svg.addEventListener('pointerleave', () => point(null));
  svg.addEventListener('click', (event) => {
    const mark = nearest(marks, event);
    if (mark) choose(mark);
  });
  frame.addEventListener('blur', () => point(null));
  frame.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) current = (current + step + marks.length) % marks.length;
    else if (event.key === 'Enter' && current >= 0) choose(marks[current]);
    else if (event.key !== 'Escape') return;
    event.preventDefault();
    point(event.key === 'Escape' ? null : marks[current] ?? null);
  });
}

for (const { table } of tables) {
  table.addEventListener('pointerover', (event) => {
    light(event.target.closest('tr[data-member]')?.dataset.member ?? null);
  });
  table.addEventListener('pointerleave', () => light(null));
}

listeners.push(() => {
  for (const { node, member, task } of figures.flatMap(({ marks }) => marks)) {
    const isOff = !pageData.members[member].toLowerCase().includes(words())
      || (value('task') && task && task !== value('task'));
    node.classList.toggle('off', Boolean(isOff));
  }
});
