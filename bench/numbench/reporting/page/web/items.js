// The questions: a filtered list, and in it the answers of all runs to those that are opened.
const FIRST_ROWS = 20;
const MORE_ROWS = 100;
const MAX_ALIGNED_LENGTH = 200;

const kindName = (kind) => (pageData.kinds[kind] ?? kind).split('.')[0];
const flat = (answer) => [answer].flat();

// Reads the content of a script, which is not needed again.
async function decompress(script) {
  script.remove();
  const bytes = Uint8Array.from(atob(script.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

// All answers by question. An answer has `run`, and `get(column)`.
async function readQuestions() {
  const items = await decompress(byId('packed-items'));
  const questions = items.id.map((id, index) => ({ id, answers: [], of: (name) => items[name][index] }));
  for (const [run, script] of [...document.querySelectorAll('.packed-run')].entries()) {
    const columns = await decompress(script);
    columns.item.forEach((item, number) => {
      const get = (name) => (Array.isArray(columns[name]) ? columns[name][number] : columns[name].same);
      questions[item].answers.push({ run, get });
    });
  }
  return questions;
}

const isCorrect = (answer) => Boolean(answer.get('correct'));
const OUTCOMES = { error: 'failed request', missing: 'not asked' };
const outcomeName = (one) => OUTCOMES[one] ?? one;
const outcome = (answer) => {
  if (isCorrect(answer)) return 'correct';
  return answer.get('status') === 'ok' ? 'incorrect' : answer.get('status');
};
const outcomeText = (answer) => {
  const kind = outcome(answer) === 'incorrect' && answer.get('kind');
  return kind ? `incorrect: ${kindName(kind).toLowerCase()}` : outcomeName(outcome(answer));
};
const runText = ({ run, get }) => {
  const { label, samples } = pageData.runs[run];
  return samples > 1 ? `${label}, sample ${get('sample') + 1} of ${samples}` : label;
};

// The answers of the models that the page is filtered by, or all if none of these is a run.
function shownAnswers({ answers }) {
  const named = pageData.runs.map(({ label }) => label.toLowerCase().includes(words()));
  return named.includes(true) ? answers.filter(({ run }) => named[run]) : answers;
}

function matchesRun(answers, run, wanted) {
  const own = run === '' ? answers : answers.filter((answer) => answer.run === Number(run));
  if (!wanted) return run === '' || own.length > 0;
  return own.some((answer) => (wanted === 'not correct' ? !isCorrect(answer) : outcome(answer) === wanted));
}

const isOfKind = (answer, kind) => answer.get('kind') === kind && ['', String(answer.run)].includes(value('a'));

function matches(question, search, kind) {
  const answers = shownAnswers(question);
  const size = question.of('base10');
  return answers.length > 0
    && (!value('task') || question.of('task') === value('task'))
    && (!value('from') || size >= Number(value('from')))
    && (!value('to') || size <= Number(value('to')))
    && matchesRun(answers, value('a'), value('a-is'))
    && matchesRun(answers, value('b'), value('b-is'))
    && (!kind || answers.some((answer) => isOfKind(answer, kind)))
    && (!search || [question.id, question.of('prompt'), ...answers.map((answer) => flat(answer.get('parsed') ?? '').join(', '))]
      .some((text) => text.toLowerCase().includes(search)));
}

const share = (answers) => answers.filter((answer) => !isCorrect(answer)).length / answers.length;
const ORDERS = {
  '': ({ answers }) => -share(answers),
  worst: ({ answers }) => Math.min(...answers.map((answer) => answer.get('smape') ?? Number(isCorrect(answer)))),
  hard: ({ question }) => -question.of('base10'),
  tokens: ({ answers }) => -Math.max(...answers.map((answer) => answer.get('generated') ?? 0)),
  dataset: () => 0,
};

function filteredQuestions(questions) {
  const search = value('text').trim().toLowerCase();
  const key = ORDERS[value('order')] ?? ORDERS[''];
  return questions.filter((question) => matches(question, search, value('kind')))
    .map((question) => [key({ question, answers: shownAnswers(question) }), question])
    .sort((a, b) => a[0] - b[0]).map(([, question]) => question);
}

// The kinds of error in the questions that the other filters leave, the most frequent first.
function countKinds(questions) {
  const search = value('text').trim().toLowerCase();
  const counts = new Map();
  for (const question of questions.filter((one) => matches(one, search, ''))) {
    for (const answer of shownAnswers(question)) {
      const kind = answer.get('kind');
      if (kind && isOfKind(answer, kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  }
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}

// A row of the list; its details are made when it is opened.
function listRow(question, isOpen) {
  const answers = shownAnswers(question);
  const correct = answers.filter(isCorrect).length;
  const text = answers.length > 1 ? `${correct} of ${answers.length} correct` : outcomeText(answers[0]);
  const quality = { [answers.length]: 'good', 0: 'bad' }[correct] ?? 'mixed';
  const details = element(
    'details',
    {},
    element(
      'summary',
      {},
      textElement('span', { class: `badge ${quality}` }, text),
      textElement('span', { class: 'what' }, `${taskName(question.of('task'))} · δ ${question.of('base10')}`),
      textElement('span', { class: 'question' }, question.of('prompt').slice(0, 160)),
    ),
  );
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(questionDetails(question));
    if (details.open !== (value('q') === question.id)) {
      if (details.open) state.set('q', question.id);
      else state.delete('q');
      writeAddress();
    }
  });
  details.open = isOpen;
  return element('li', {}, details);
}

function block(title, text) {
  const section = element('section', {}, element('h3', {}, title));
  section.append(text === '' ? element('p', { class: 'soft' }, 'empty') : textElement('pre', { dir: 'ltr', tabindex: '0' }, text));
  return section;
}

function questionDetails(question) {
  const answers = shownAnswers(question);
  const link = element('a', { href: `#${new URLSearchParams({ ...Object.fromEntries(state), q: question.id })}` }, 'Link to this question');
  return element(
    'article',
    {},
    block('Question', question.of('prompt')),
    comparison(question, answers),
    ...answers.map((answer) => responseDetails(question, answer)),
    element('p', { class: 'soft' }, link, ' · ', question.id),
  );
}

// One line per answer, aligned with the exact answer by place value, the first difference marked.
function comparison(question, answers) {
  const heads = ['Run', 'Answer', 'Outcome', 'Tokens', 'Seconds', 'USD']
    .map((name, index) => element('th', { scope: 'col', class: index < 3 ? 'text' : '' }, name));
  const truth = question.of('truth');
  const left = Math.max(0, ...answers.map((answer) => -answer.get('shift')));
  const line = (name, answer, digits, ...cells) => element(
    'tr',
    { class: answer && isCorrect(answer) ? 'good' : '' },
    textElement('th', { scope: 'row', class: 'name' }, name),
    element('td', { class: 'digits' }, digits),
    ...cells.map((text, index) => textElement('td', { class: index ? '' : 'text' }, text)),
  );
  const isRounded = flat(truth).some((text) => text.replace(/[^0-9]/g, '').replace(/^0+/, '').length === 15);
  const rows = [line(isRounded ? 'Exact answer, to 15 digits' : 'Exact answer', null, digitsOf(truth, left, null), '', '', '', '')];
  for (const answer of answers) {
    const { get } = answer;
    if (get('label') !== null) rows.push(line('Label that the paper scored against', null, digitsOf(get('label'), left, null), '', '', '', ''));
    rows.push(line(
      runText(answer),
      answer,
      get('parsed') === null ? '–' : digitsOf(get('parsed'), left + get('shift'), difference(answer, left)),
      [outcomeText(answer), describeDifference(truth, answer)].filter(Boolean).join('. '),
      get('generated') === null ? '–' : formatCount(get('generated')),
      get('latency') === null ? '–' : String(get('latency')),
      get('cost') === null ? '–' : get('cost').toPrecision(3),
    ));
  }
  const table = element('table', { class: 'answers' }, element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows));
  return element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Answers of all runs' }, table);
}

// The column of the first difference after the exact answer has moved to the right by `left`.
function difference({ get }, left) {
  const first = get('first_difference');
  return first === null || Array.isArray(get('parsed')) ? first : first + left - Math.max(0, -get('shift'));
}

function digitsOf(answer, indent, first) {
  const code = element('code', {});
  const isList = Array.isArray(answer);
  const parts = isList ? answer.map((text, index) => (index ? `, ${text}` : text)) : [...' '.repeat(indent) + answer];
  if (first === null || (!isList && answer.length > MAX_ALIGNED_LENGTH)) return putText(code, parts.join(''));
  while (parts.length <= first) parts.push(' ');
  putText(code, parts.slice(0, first).join(''));
  code.append(textElement('mark', {}, parts[first]), textElement('span', { class: 'after' }, parts.slice(first + 1).join('')));
  return code;
}

function describeDifference(exact, answer) {
  const [parsed, shift, first] = ['parsed', 'shift', 'first_difference'].map(answer.get);
  const truth = answer.get('label') ?? exact;
  if (parsed === null) return 'No answer could be read';
  if (first === null) return isCorrect(answer) ? '' : 'Equal value, different notation';
  if (isCorrect(answer)) return 'Equal in the 15 digits that are compared';
  if (Array.isArray(truth)) return `First difference: element ${first + 1} of ${truth.length}`;
  if (!/^-?[0-9.]+$/.test(truth)) return '';
  if (truth.startsWith('-') !== parsed.startsWith('-')) return 'The signs differ';
  const aligned = ' '.repeat(Math.max(0, -shift)) + truth;
  const agreed = aligned.slice(0, first).replace(/[^0-9]/g, '').replace(/^0+/, '');
  if (shift && !agreed) return 'Different number of digits before the decimal point';
  if (!agreed && aligned[first] === '0') return 'Different order of magnitude';
  return `First difference: significant digit ${agreed.length + 1}`;
}

// The response behind an answer, folded unless it is the only one.
function responseDetails(question, answer) {
  const { get } = answer;
  const parts = [];
  if (get('kind')) parts.push(textElement('p', { class: 'soft' }, pageData.kinds[get('kind')] ?? get('kind')));
  if (get('turns')) parts.push(block('Before the response: texts, and calls with their results', get('turns')));
  if (get('text') !== null) parts.push(block('Response', get('text')));
  if (get('reasoning')) parts.push(block('Reasoning', get('reasoning')));
  if (get('failure') !== null) parts.push(block('Failed request', get('failure')));
  const facts = [
    get('smape') !== null && `log-sMAPE ${(100 * get('smape')).toFixed(1)}`,
    get('digits') !== null && `${get('digits')} leading digits correct`,
    get('finish') && `finished: ${get('finish')}`,
    get('served') && `served by ${get('served')}`,
  ].filter(Boolean).join(' · ');
  const details = element('details', {}, textElement('summary', {}, `Response of ${runText(answer)}`), ...parts, textElement('p', { class: 'soft' }, facts));
  details.open = question.answers.length === 1;
  return details;
}

function showList(questions) {
  const field = (name) => document.querySelector(`[data-state=${name}]`);
  const every = questions.flatMap(({ answers }) => answers);
  const outcomes = new Set(every.map(outcome));
  for (const side of ['a', 'b']) {
    addOptions(field(side), pageData.runs.keys(), (run) => pageData.runs[run].label);
    addOptions(field(`${side}-is`), [...outcomes].filter((one) => one !== 'correct').sort(), (one) => `is ${outcomeName(one)}`);
  }
  byId('run-b').hidden = pageData.runs.length < 2;
  let chosen = [];
  let shown = 0;
  const show = (count) => {
    byId('list').append(...chosen.slice(shown, shown + count).map((question) => listRow(question, question.id === value('q'))));
    shown += count;
    byId('more').hidden = shown >= chosen.length;
  };
  const apply = () => {
    chosen = filteredQuestions(questions);
    const kinds = countKinds(questions);
    field('kind').replaceChildren(element('option', { value: '' }, 'all'));
    addOptions(field('kind'), new Set([...kinds.keys(), value('kind')].filter(Boolean)), (kind) => `${kindName(kind)} (${formatCount(kinds.get(kind) ?? 0)})`);
    field('kind').value = value('kind');
    const answers = chosen.flatMap(shownAnswers);
    const correct = answers.filter(isCorrect).length;
    const counted = value('kind') ? `answers with this kind of error: ${formatCount(kinds.get(value('kind')) ?? 0)}`
      : `${formatCount(correct)} of ${formatCount(answers.length)} answers are correct`;
    byId('items-state').textContent = chosen.length ? `${formatCount(chosen.length)} of ${formatCount(questions.length)} questions: ${counted}`
      : 'No question matches.';
    // A question that the address names is the first one.
    const named = questions.find(({ id }) => id === value('q'));
    if (named) chosen = [named, ...chosen.filter((question) => question !== named)];
    byId('list').replaceChildren();
    shown = 0;
    show(FIRST_ROWS);
  };
  byId('more').addEventListener('click', () => show(MORE_ROWS));
  byId('item-filters').hidden = false;
  listeners.push(apply);
  notify();
  if (value('q')) byId('list').scrollIntoView();
  else if (value('at') === 'items') byId('items').scrollIntoView();
}

notify();
byId(value('at'))?.scrollIntoView();
if (byId('items')) {
  byId('items-state').textContent = 'Loading …';
  // After the first paint, because a large page takes a second to decompress.
  requestAnimationFrame(() => setTimeout(() => readQuestions().then(showList).catch((error) => {
    byId('items-state').textContent = 'The responses in this file cannot be read. Run `numbench report` again.';
    throw error;
  })));
}
