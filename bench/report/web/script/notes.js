// The note of a score: its bounds, n and signature, on hover and focus; Enter or a click keeps it.
function cellNotes(tables, showItems) {
  const note = byId('note');
  let owner = null;
  let kept = false;
  let leaving = 0;

  const hide = () => {
    clearTimeout(leaving);
    note.hidden = true;
    owner?.removeAttribute('aria-describedby');
    owner = null;
    kept = false;
  };
  const leave = () => {
    clearTimeout(leaving);
    if (!kept) leaving = setTimeout(hide, 200);
  };
  const show = (cell, keep) => {
    if (kept && !keep) return;
    hide();
    owner = cell;
    kept = keep;
    fillNote(note, cell, keep ? { close, hide, showItems } : null);
    note.setAttribute('role', keep ? 'dialog' : 'tooltip');
    note.setAttribute('aria-label', keep ? 'How this score was made' : 'Note');
    if (!keep) cell.setAttribute('aria-describedby', 'note');
    note.hidden = false;
    placeNote(note, cell);
    if (keep) note.querySelector('button').focus();
  };
  // Back to the cell, where focus alone must not open the note again.
  const close = () => {
    const cell = owner;
    const wasKept = kept;
    hide();
    if (!wasKept) return;
    owner = cell;
    cell.focus();
    owner = null;
  };

  for (const table of tables) {
    for (const cell of scoreCells(table)) {
      cell.addEventListener('pointerenter', (event) => {
        if (event.pointerType === 'mouse') show(cell, false);
      });
      cell.addEventListener('pointerleave', leave);
      cell.addEventListener('focus', () => { if (owner !== cell) show(cell, false); });
      cell.addEventListener('blur', leave);
      cell.addEventListener('click', () => show(cell, true));
      cell.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        show(cell, true);
      });
    }
  }
  note.addEventListener('pointerenter', () => clearTimeout(leaving));
  note.addEventListener('pointerleave', leave);
  note.addEventListener('focusout', (event) => {
    if (kept && event.relatedTarget && !note.contains(event.relatedTarget)) hide();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !note.hidden) close();
  });
  document.addEventListener('pointerdown', (event) => {
    if (kept && !note.contains(event.target)) hide();
  });
}

function fillNote(note, cell, actions) {
  const row = cell.parentNode;
  const { task } = cell.dataset;
  const bounds = cell.querySelector('small')?.textContent;
  const head = `${taskName(task)}: ${cell.firstChild.textContent}`;
  note.replaceChildren(
    textElement('strong', {}, `${row.cells[0].textContent} (${row.cells[1].textContent})`),
    textElement('p', {}, bounds ? `${head}, 95 % bounds ${bounds}` : `${head}, bounds not known`),
  );
  const run = facts.runs[row.dataset.run];
  if (!run) {
    note.append(element('p', {}, 'Published in the paper, scored by its own code; no signature.'));
  } else {
    const { n, counted: used, tokensUnknown } = run.cells[task];
    let sample = `n = ${counted(used)} counted of ${counted(n)} asked`;
    if (cell.closest('table').dataset.table === 'tokens' && tokensUnknown) {
      sample += `, tokens of ${counted(tokensUnknown)} not known`;
    }
    note.append(element('p', {}, sample), textElement('code', {}, run.signatures[task]));
  }
  if (actions) note.append(noteActions(run, row.dataset.run, task, actions));
}

function noteActions(run, place, task, { close, hide, showItems }) {
  const actions = element('p', { class: 'actions' });
  if (run) {
    const items = element('button', { type: 'button' }, 'Show these items');
    items.addEventListener('click', () => { hide(); showItems(place, task); });
    const signature = element('button', { type: 'button' }, 'Copy signature');
    signature.addEventListener('click', () => copy(run.signatures[task], signature));
    actions.append(items, signature);
  }
  const done = element('button', { type: 'button' }, 'Close');
  done.addEventListener('click', close);
  actions.append(done);
  return actions;
}

function placeNote(note, cell) {
  const box = cell.getBoundingClientRect();
  const width = Math.min(420, document.documentElement.clientWidth - 16);
  note.style.width = `${width}px`;
  const left = Math.min(box.left, document.documentElement.clientWidth - width - 8);
  note.style.left = `${Math.max(8, left) + window.scrollX}px`;
  note.style.top = `${box.bottom + window.scrollY + 4}px`;
}
