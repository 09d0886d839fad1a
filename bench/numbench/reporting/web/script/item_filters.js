// Filters of the items: which responses are listed, and in which order.
function itemFilters(data, changed) {
  const form = byId('item-filters');
  const field = (name) => byId(`item-${name}`);
  const fill = (name, values, label) => {
    for (const value of values) {
      field(name).append(textElement('option', { value }, label(value)));
    }
  };
  const seen = new Set();
  const kinds = new Set();
  for (let number = 0; number < data.total; number += 1) {
    seen.add(data.outcome(number));
    const kind = data.get(number, 'kind');
    if (kind) kinds.add(kind);
  }
  fill('run', pageData.runs.keys(), (run) => pageData.runs[run].label);
  fill('task', Object.keys(pageData.tasks), taskName);
  fill('outcome', [...seen].filter((one) => one !== 'right' && one !== 'wrong').sort(), (one) => one);
  fill('kind', [...kinds].sort(), (kind) => kindText(kind).split('.')[0]);

  const searched = data.items.prompt.map((prompt, item) => `${prompt}\n${data.items.id[item]}`.toLowerCase());
  const fields = Object.fromEntries(
    ['run', 'task', 'outcome', 'kind', 'noted', 'from', 'to', 'order', 'search'].map((name) => [name, field(name)]),
  );
  rememberFields('items', fields, form);
  const apply = () => changed(sortResponses(data, field('order').value, filterResponses(data, searched, field)));
  form.addEventListener('input', apply);
  form.addEventListener('reset', () => setTimeout(apply));
  form.addEventListener('submit', (event) => event.preventDefault());
  return {
    apply,
    only(run, task) {
      form.reset();
      field('run').value = run;
      field('task').value = task;
      form.dispatchEvent(new Event('input'));
    },
  };
}

function filterResponses(data, searched, field) {
  const [run, task, outcome, kind, flag] = ['run', 'task', 'outcome', 'kind', 'noted']
    .map((name) => field(name).value);
  const from = field('from').value === '' ? -Infinity : Number(field('from').value);
  const to = field('to').value === '' ? Infinity : Number(field('to').value);
  const words = field('search').value.trim().toLowerCase();
  const matches = words && searched.map((text) => text.includes(words));
  const numbers = [];
  for (let number = 0; number < data.total; number += 1) {
    const item = data.item[number];
    if (run !== '' && data.run[number] !== Number(run)) continue;
    if (task && data.items.task[item] !== task) continue;
    if (data.items.base10[item] < from || data.items.base10[item] > to) continue;
    if (words && !matches[item]) continue;
    if (outcome && !hasOutcome(data, number, outcome)) continue;
    if (kind && data.get(number, 'kind') !== kind) continue;
    if (flag === 'tool' && !data.get(number, 'tool')) continue;
    if (flag === 'truncated' && !isTruncated(data, number)) continue;
    numbers.push(number);
  }
  return numbers;
}

const isTruncated = (data, number) => data.get(number, 'finish') === 'length'
  || data.get(number, 'status') === 'truncated';

function hasOutcome(data, number, outcome) {
  const actual = data.outcome(number);
  return outcome === 'not right' ? actual !== 'right' : actual === outcome;
}

// Sorts responses; unknown values are last.
function sortResponses(data, order, numbers) {
  const keys = {
    worst: (number) => data.get(number, 'smape'),
    hard: (number) => -data.of(number, 'base10'),
    tokens: (number) => negative(data.get(number, 'generated')),
    long: (number) => negative(data.get(number, 'length')),
  };
  if (!keys[order]) return numbers;
  return numbers.map((number) => [keys[order](number) ?? Infinity, number])
    .sort((a, b) => (a[0] === b[0] ? a[1] - b[1] : a[0] - b[0])).map(([, number]) => number);
}

const negative = (value) => (value === null ? null : -value);
