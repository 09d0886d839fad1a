// Tooltip of a score: bounds, n and signature, on hover and focus; Enter or a click opens a dialog.
function cellTooltips(tables, showItems) {
  const tooltip = byId('tooltip');
  let owner = null;
  let isOpen = false;
  let leaving = 0;

  const hide = () => {
    clearTimeout(leaving);
    tooltip.hidden = true;
    owner?.removeAttribute('aria-describedby');
    owner = null;
    isOpen = false;
  };
  const leave = () => {
    clearTimeout(leaving);
    if (!isOpen) leaving = setTimeout(hide, 200);
  };
  const show = (cell, keep) => {
    if (isOpen && !keep) return;
    hide();
    owner = cell;
    isOpen = keep;
    fillTooltip(tooltip, cell, keep ? { close, hide, showItems } : null);
    tooltip.setAttribute('role', keep ? 'dialog' : 'tooltip');
    tooltip.setAttribute('aria-label', keep ? 'Score details' : 'Score summary');
    if (!keep) cell.setAttribute('aria-describedby', 'tooltip');
    tooltip.hidden = false;
    placeTooltip(tooltip, cell);
    if (keep) tooltip.querySelector('button').focus();
  };
  // Returns to the cell; its focus event must not open the tooltip again.
  const close = () => {
    const cell = owner;
    const wasOpen = isOpen;
    hide();
    if (!wasOpen) return;
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
  tooltip.addEventListener('pointerenter', () => clearTimeout(leaving));
  tooltip.addEventListener('pointerleave', leave);
  tooltip.addEventListener('focusout', (event) => {
    if (isOpen && event.relatedTarget && !tooltip.contains(event.relatedTarget)) hide();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !tooltip.hidden) close();
  });
  document.addEventListener('pointerdown', (event) => {
    if (isOpen && !tooltip.contains(event.target)) hide();
  });
}

function fillTooltip(tooltip, cell, actions) {
  const row = cell.parentNode;
  const { task } = cell.dataset;
  const bounds = cell.querySelector('small')?.textContent;
  const head = `${taskName(task)}: ${cell.firstChild.textContent}`;
  const [name, level] = row.cells[0].childNodes;
  tooltip.replaceChildren(
    textElement('strong', {}, `${name.textContent} (${level.textContent})`),
    textElement('p', {}, bounds ? `${head}, 95 % bounds ${bounds}` : `${head}, no bounds available`),
  );
  const run = pageData.runs[row.dataset.run];
  if (!run) {
    tooltip.append(element('p', {}, 'Published in the paper (scored by its own code); no signature.'));
  } else {
    const { n, counted, tokensUnknown } = run.cells[task];
    let sample = `n = ${formatCount(counted)} of ${formatCount(n)} items`;
    if (cell.closest('table').dataset.table === 'tokens' && tokensUnknown) {
      sample += `, ${formatCount(tokensUnknown)} without a token count`;
    }
    tooltip.append(element('p', {}, sample), textElement('code', {}, run.signatures[task]));
  }
  if (actions) tooltip.append(tooltipActions(run, row.dataset.run, task, actions));
}

function tooltipActions(run, index, task, { close, hide, showItems }) {
  const actions = element('p', { class: 'actions' });
  if (run) {
    const items = element('button', { type: 'button' }, 'Show these items');
    items.addEventListener('click', () => { hide(); showItems(index, task); });
    const signature = element('button', { type: 'button' }, 'Copy signature');
    signature.addEventListener('click', () => copy(run.signatures[task], signature));
    actions.append(items, signature);
  }
  const done = element('button', { type: 'button' }, 'Close');
  done.addEventListener('click', close);
  actions.append(done);
  return actions;
}

function placeTooltip(tooltip, cell) {
  const box = cell.getBoundingClientRect();
  const width = Math.min(420, document.documentElement.clientWidth - 16);
  tooltip.style.width = `${width}px`;
  const left = Math.min(box.left, document.documentElement.clientWidth - width - 8);
  tooltip.style.left = `${Math.max(8, left) + window.scrollX}px`;
  tooltip.style.top = `${box.bottom + window.scrollY + 4}px`;
}
