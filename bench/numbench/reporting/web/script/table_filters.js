// One filter for all tables: rows by model and source, columns or rows by task.
function tableFilters(tables) {
  const form = byId('table-filters');
  const [model, task, source] = ['filter-model', 'filter-task', 'filter-source'].map(byId);
  for (const [name, display] of Object.entries(pageData.tasks)) {
    task.append(element('option', { value: name }, display));
  }
  const main = Math.max(0, tables.findIndex((table) => table.dataset.table === 'log_smape'));
  const apply = () => {
    const modelText = model.value.trim().toLowerCase();
    const shown = tables.map((table) => {
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) {
        const published = row.classList.contains('published');
        // Tables without models are not filtered.
        if (row.dataset.model === undefined) continue;
        row.hidden = !row.dataset.model.toLowerCase().includes(modelText)
          || (source.value === 'own' && published)
          || (source.value === 'published' && !published)
          || Boolean(task.value && row.dataset.task && row.dataset.task !== task.value);
      }
      for (const cell of table.querySelectorAll('th[data-task], td[data-task]')) {
        cell.hidden = Boolean(task.value) && cell.dataset.task !== task.value;
      }
      restoreTabStop(table);
      return [rows.filter((row) => !row.hidden).length, rows.length];
    });
    byId('table-count').textContent = `${shown[main][0]} of ${shown[main][1]} rows`;
  };
  rememberFields('table', { model, task, source }, form);
  form.addEventListener('input', apply);
  form.addEventListener('submit', (event) => event.preventDefault());
  form.hidden = false;
  apply();
}

function restoreTabStop(table) {
  const cells = scoreCells(table);
  const open = cells.filter((cell) => !cell.hidden && !cell.parentNode.hidden);
  if (!open.length || open.some((cell) => cell.tabIndex === 0)) return;
  cells.forEach((cell) => { cell.tabIndex = -1; });
  open[0].tabIndex = 0;
}
