// Correct and parsed answer, aligned, and their first difference.
const MAX_ALIGNED_LENGTH = 200;

function comparison(truth, answer, shift, difference) {
  if (Array.isArray(truth) || Array.isArray(answer)) return listComparison([truth].flat(), [answer].flat(), difference);
  if (truth.length > MAX_ALIGNED_LENGTH || answer.length > MAX_ALIGNED_LENGTH) return null;
  const lines = element('div', { class: 'digits', role: 'group', 'aria-label': 'Correct and parsed answer, aligned', tabindex: '0' });
  const pads = [Math.max(0, -shift), Math.max(0, shift)];
  [['correct', truth], ['answer', answer]].forEach(([name, text], row) => {
    lines.append(
      element('span', { class: 'label' }, name),
      markDifference(element('code', { class: name }), ' '.repeat(pads[row]) + text, difference),
    );
  });
  if (difference !== null) {
    lines.append(
      element('span', { class: 'label' }),
      element('code', { class: 'caret', 'aria-hidden': 'true' }, `${' '.repeat(difference)}▲`),
    );
  }
  return lines;
}

// Adds text with the first difference marked, and all that follows it styled.
function markDifference(target, text, difference) {
  if (difference === null) return putText(target, text);
  const chars = Array.from(text.padEnd(difference + 1));
  putText(target, chars.slice(0, difference).join(''));
  target.append(
    textElement('mark', {}, chars[difference]),
    textElement('span', { class: 'after' }, chars.slice(difference + 1).join('')),
  );
  return target;
}

function listComparison(truth, answer, difference) {
  const table = element('table', { class: 'elements' }, element('caption', {}, 'Correct and parsed answer, element by element'));
  const head = ['', 'correct', 'answer'].map((name) => element('th', { scope: 'col' }, name));
  table.append(element('tr', {}, ...head));
  for (let index = 0; index < Math.max(truth.length, answer.length); index += 1) {
    const differs = index === difference;
    const row = element('tr', differs ? { class: 'differs' } : {}, element('th', { scope: 'row' }, `${index + 1}`));
    for (const list of [truth, answer]) {
      const cell = element('td');
      const text = list[index] ?? '';
      cell.append(differs ? textElement('mark', {}, text || ' ') : textElement('span', {}, text));
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

function describeDifference(truth, answer, shift, difference, right) {
  if (difference === null) return right ? 'Identical.' : 'Equal value, different notation.';
  if (right) return 'Scored as correct: they differ only after the compared digits.';
  if (Array.isArray(truth)) return `First difference: element ${difference + 1} of ${truth.length}.`;
  if (!/^-?[0-9.]+$/.test(truth)) return '';
  if (truth.startsWith('-') !== answer.startsWith('-')) return 'The signs differ.';
  const aligned = ' '.repeat(Math.max(0, -shift)) + truth;
  const agreed = aligned.slice(0, difference).replace(/[^0-9]/g, '').replace(/^0+/, '');
  if (shift && !agreed) return 'Different number of digits before the decimal point.';
  if (!agreed && aligned[difference] === '0') return 'Different order of magnitude.';
  return `First difference: significant digit ${agreed.length + 1}.`;
}
