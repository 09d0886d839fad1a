// Shows all details of one response. visit: the address of a response, and a function to open it.
function showDetail(data, number, actions, visit) {
  const get = (name) => data.get(number, name);
  const run = pageData.runs[data.run[number]];
  const task = data.of(number, 'task');
  const truth = get('label') ?? data.of(number, 'truth');
  const parsed = get('parsed');
  const detail = byId('detail');
  const outcome = data.outcome(number);
  const kind = get('kind');
  detail.replaceChildren(
    textElement('h3', {}, `${taskName(task)}: ${run.label}${data.sampleText(number)}`),
    element('p', {}, textElement('span', { class: `badge ${outcome === 'right' ? 'good' : 'bad'}` }, data.outcomeText(number)), ' ', textElement('code', {}, data.of(number, 'id'))),
    actionRow(actions),
    block('Question', data.of(number, 'prompt')),
  );
  if (parsed === null) {
    detail.append(block('Correct answer', [truth].flat().join(', ')), heading('Answer'), element('p', {}, `No answer parsed (${outcome}).`));
  } else {
    const alignment = [get('shift'), get('first_difference')];
    const compared = comparison(truth, parsed, ...alignment);
    detail.append(heading('Correct and parsed answer'));
    if (compared) {
      const text = describeDifference(truth, parsed, ...alignment, get('right'));
      detail.append(compared, element('p', { class: 'difference' }, text));
    } else {
      detail.append(block('Correct answer', truth), block('Parsed answer', parsed));
    }
  }
  if (kind) detail.append(textElement('p', { class: 'soft' }, kindText(kind)));
  if (get('label') !== null) {
    detail.append(block('Exact answer (the study scored against the label above)', [data.of(number, 'truth')].flat().join(', ')));
  }
  if (get('text') !== null) detail.append(block(`Raw response, ${formatCount(get('length'))} characters`, get('text')));
  if (get('thought')) detail.append(reasoningSection(data, number));
  if (get('failure') !== null) detail.append(block('Request error', get('failure')));
  detail.append(...itemComparison(data, number, visit));
  detail.append(heading('Details'), propertyList(data, number), heading('Signature'), textElement('pre', { tabindex: '0' }, run.signatures[task]));
  detail.setAttribute('aria-label', `Response, ${taskName(task)}, ${run.label}${data.sampleText(number)}, ${data.outcomeText(number)}`);
  detail.scrollTop = 0;
}

const heading = (text) => textElement('h4', {}, text);

function block(title, text) {
  const section = element('section', {}, heading(title));
  section.append(text === '' ? element('p', { class: 'soft' }, 'empty') : textElement('pre', { dir: 'ltr', tabindex: '0' }, text));
  return section;
}

function actionRow(actions) {
  const row = element('p', { class: 'actions' });
  for (const [label, act] of Object.entries(actions)) {
    const button = element('button', { type: 'button' }, label);
    button.addEventListener('click', () => act(button));
    row.append(button);
  }
  return row;
}

function propertyList(data, number) {
  const get = (name) => data.get(number, name);
  const known = (value, format = String) => (value === null ? 'unknown' : format(value));
  const smape = data.score(number);
  const tokens = ['generated', 'reasoning', 'visible', 'input'].map((name) => known(get(name), formatCount));
  const entries = {
    'Exact match': get('right') ? 'yes' : 'no',
    'Error kind': get('kind') ?? 'none',
    'log-sMAPE': smape === null ? 'not applicable' : `${(100 * smape).toFixed(1)} %`,
    'Correct leading digits': known(get('digits')),
    'Read as': known(get('rule')),
    Difficulty: `δ₁₀ = ${data.of(number, 'base10')}, δ₂ = ${data.of(number, 'base2')}`,
    Tokens: `${tokens[0]} generated: ${tokens[1]} reasoning, ${tokens[2]} visible; input ${tokens[3]}`,
    Cost: known(get('cost'), (cost) => `$${cost.toPrecision(3)}`),
    Latency: known(get('latency'), (seconds) => `${seconds.toFixed(2)} s`),
    Attempts: known(get('attempts')),
    'Finish reason': known(get('finish')),
    Truncated: isTruncated(data, number) ? 'yes (token limit)' : 'no',
    'Mentions a tool': get('thought') ? (get('tool') ? 'yes (in reasoning)' : 'no') : 'no reasoning text',
    'Reasoning text': get('thought') ? `${formatCount(get('thought'))} characters` : 'none',
    'Served by': [get('served'), get('provider')].filter(Boolean).join(', ') || 'unknown',
  };
  const list = element('dl');
  for (const [name, value] of Object.entries(entries)) {
    list.append(element('div', {}, element('dt', {}, name), textElement('dd', {}, value)));
  }
  return list;
}
