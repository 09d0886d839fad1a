// One response in full.
function showDetail(data, number, actions) {
  const get = (name) => data.get(number, name);
  const run = facts.runs[data.run[number]];
  const task = data.of(number, 'task');
  const truth = get('label') ?? data.of(number, 'truth');
  const parsed = get('parsed');
  const detail = byId('detail');
  const outcome = data.outcome(number);
  const kind = get('kind');
  detail.replaceChildren(
    textElement('h3', {}, `${taskName(task)}: ${run.label}`),
    element('p', {}, textElement('span', { class: `badge ${outcome === 'right' ? 'good' : 'bad'}` }, outcome === 'wrong' && kind ? `wrong: ${kind}` : outcome), ' ', textElement('code', {}, data.of(number, 'id'))),
    actionRow(actions),
    block('Question', data.of(number, 'prompt')),
  );
  if (parsed === null) {
    detail.append(block('Truth', [truth].flat().join(', ')), heading('Answer'), element('p', {}, `None could be read: ${outcome}.`));
  } else {
    const compared = comparison(truth, parsed, get('shift'), get('at'));
    detail.append(heading('Truth and answer'));
    if (compared) {
      detail.append(compared, element('p', { class: 'parting' }, partingWords(truth, parsed, get('shift'), get('at'), get('right'))));
    } else {
      detail.append(block('Truth', truth), block('Answer read', parsed));
    }
  }
  if (kind) detail.append(textElement('p', { class: 'soft' }, kindWords(kind)));
  if (get('label') !== null) {
    detail.append(block('Exact truth; above stands the label that the study scored against', [data.of(number, 'truth')].flat().join(', ')));
  }
  if (get('text') !== null) detail.append(block(`Raw text, ${counted(get('length'))} characters`, get('text')));
  if (get('failure') !== null) detail.append(block('The request failed', get('failure')));
  detail.append(heading('Facts'), factList(data, number), heading('Signature'), textElement('pre', { tabindex: '0' }, run.signatures[task]));
  detail.setAttribute('aria-label', `Response, ${taskName(task)}, ${outcome}`);
  detail.scrollTop = 0;
}

const heading = (text) => textElement('h4', {}, text);

function block(title, text) {
  const made = element('section', {}, heading(title));
  made.append(text === '' ? element('p', { class: 'soft' }, 'empty') : textElement('pre', { dir: 'ltr', tabindex: '0' }, text));
  return made;
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

function factList(data, number) {
  const get = (name) => data.get(number, name);
  const shown = (value, write = String) => (value === null ? 'not known' : write(value));
  const smape = get('smape');
  const tokens = ['generated', 'reasoning', 'visible', 'input'].map((name) => shown(get(name), counted));
  const entries = {
    'Exact match': get('right') ? 'yes' : 'no',
    'Error kind': get('kind') ?? 'none',
    'log-sMAPE': smape === null ? 'not measured here' : `${(100 * smape).toFixed(1)} %`,
    'Leading digits right': shown(get('digits')),
    'Found by rule': shown(get('rule')),
    Difficulty: `δ₁₀ = ${data.of(number, 'base10')}, δ₂ = ${data.of(number, 'base2')}`,
    Tokens: `${tokens[0]} generated: ${tokens[1]} reasoning, ${tokens[2]} visible; input ${tokens[3]}`,
    Cost: shown(get('cost'), (cost) => `$${cost.toPrecision(3)}`),
    Latency: shown(get('latency'), (seconds) => `${seconds.toFixed(2)} s`),
    Attempts: shown(get('attempts')),
    'Finish reason': shown(get('finish')),
    'Cut off': cutOff(data, number) ? 'yes, at the token limit' : 'no sign of it',
    'Speaks of a tool': get('thought') ? (get('tool') ? 'yes, in its reasoning' : 'no') : 'no reasoning shown',
    'Reasoning text': get('thought') ? `${counted(get('thought'))} characters, in responses.jsonl` : 'none',
    'Served by': [get('served'), get('provider')].filter(Boolean).join(', ') || 'not known',
  };
  const list = element('dl');
  for (const [name, value] of Object.entries(entries)) {
    list.append(element('div', {}, element('dt', {}, name), textElement('dd', {}, value)));
  }
  return list;
}
