// Truth and answer one above the other, and where the two part.
const LONGEST = 200;

function comparison(truth, answer, shift, at) {
  if (Array.isArray(truth) || Array.isArray(answer)) return listComparison([truth].flat(), [answer].flat(), at);
  if (truth.length > LONGEST || answer.length > LONGEST) return null;
  const lines = element('div', { class: 'digits', role: 'group', 'aria-label': 'Truth and answer, aligned', tabindex: '0' });
  const pads = [Math.max(0, -shift), Math.max(0, shift)];
  [['truth', truth], ['answer', answer]].forEach(([name, text], row) => {
    lines.append(
      element('span', { class: 'label' }, name),
      marked(element('code', { class: name }), ' '.repeat(pads[row]) + text, at),
    );
  });
  if (at !== null) {
    lines.append(
      element('span', { class: 'label' }),
      element('code', { class: 'caret', 'aria-hidden': 'true' }, `${' '.repeat(at)}▲`),
    );
  }
  return lines;
}

// The column where the two part is marked, and all that follows it set apart.
function marked(target, text, at) {
  if (at === null) return putText(target, text);
  const chars = Array.from(text.padEnd(at + 1));
  putText(target, chars.slice(0, at).join(''));
  target.append(
    textElement('mark', {}, chars[at]),
    textElement('span', { class: 'after' }, chars.slice(at + 1).join('')),
  );
  return target;
}

function listComparison(truth, answer, at) {
  const table = element('table', { class: 'elements' }, element('caption', {}, 'Truth and answer, element by element'));
  const head = ['', 'truth', 'answer'].map((name) => element('th', { scope: 'col' }, name));
  table.append(element('tr', {}, ...head));
  for (let place = 0; place < Math.max(truth.length, answer.length); place += 1) {
    const differs = place === at;
    const row = element('tr', differs ? { class: 'differs' } : {}, element('th', { scope: 'row' }, `${place + 1}`));
    for (const list of [truth, answer]) {
      const cell = element('td');
      const text = list[place] ?? '';
      cell.append(differs ? textElement('mark', {}, text || ' ') : textElement('span', {}, text));
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

function partingWords(truth, answer, shift, at, right) {
  if (at === null) return right ? 'Nothing differs.' : 'Equal in value, but not as it is written.';
  if (right) return 'Counted as right: they part behind the digits that are compared.';
  if (Array.isArray(truth)) return `They part at element ${at + 1} of ${truth.length}.`;
  if (!/^-?[0-9.]+$/.test(truth)) return '';
  if (truth.startsWith('-') !== answer.startsWith('-')) return 'The signs differ.';
  const agreed = (' '.repeat(Math.max(0, -shift)) + truth).slice(0, at)
    .replace(/[^0-9]/g, '').replace(/^0+/, '');
  if (shift && !agreed) return 'The numbers differ in their number of digits before the point.';
  return `They part at significant digit ${agreed.length + 1}.`;
}
