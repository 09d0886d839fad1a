// Starts the page: tables at once, items after the first paint.
function itemBrowser(data) {
  let current = null;
  let pendingUpdate = 0;
  const state = byId('items-state');
  const link = (number) => {
    const target = { item: data.of(number, 'id'), run: pageData.runs[data.run[number]].key };
    if (data.get(number, 'sample')) target.sample = data.get(number, 'sample');
    return addressWith(target);
  };
  const actions = {
    'Copy link': (button) => copy(new URL(link(current), location.href).href, button),
    Previous: () => list.step(-1),
    Next: () => list.step(1),
  };
  const show = (number) => {
    current = number;
    showDetail(data, number, actions, visit);
  };
  const visit = {
    address: link,
    open(number) {
      show(number);
      list.select(number);
      enter(number);
    },
  };
  const enter = (number) => {
    clearTimeout(pendingUpdate);
    history.pushState(null, '', link(number));
    byId('detail').focus({ preventScroll: window.innerWidth > 800 });
  };
  const list = responseList(data, (number, how) => {
    show(number);
    if (how === 'open') {
      enter(number);
    } else {
      // Browsers limit how often the address may change while an arrow key is held down.
      clearTimeout(pendingUpdate);
      pendingUpdate = setTimeout(() => history.replaceState(null, '', link(number)), 300);
    }
  });
  const filters = itemFilters(data, (numbers) => {
    const correct = numbers.filter((number) => data.get(number, 'right')).length;
    state.textContent = `${formatCount(numbers.length)} of ${formatCount(data.total)} responses, ${formatCount(correct)} correct`;
    list.show(numbers, current);
  });
  const followLink = () => {
    const target = new URLSearchParams(location.hash.slice(1));
    if (!target.has('item')) return;
    const number = find(data, target.get('item'), target.get('run'), Number(target.get('sample')));
    if (number < 0) {
      state.textContent = 'This link points to a response that is not in this report.';
      return;
    }
    show(number);
    list.select(number);
    byId('items').scrollIntoView();
  };
  window.addEventListener('popstate', followLink);
  byId('browser').hidden = false;
  itemKeys(list);
  filters.apply();
  followLink();
  return (run, task) => {
    filters.only(run, task);
    byId('items').scrollIntoView();
    byId('list').focus({ preventScroll: true });
  };
}

function find(data, id, key, sample) {
  const run = pageData.runs.findIndex((entry) => entry.key === key);
  for (let number = 0; number < data.total; number += 1) {
    const isRun = run < 0 ? key === null : data.run[number] === run;
    if (isRun && data.of(number, 'id') === id && data.get(number, 'sample') === sample) return number;
  }
  return -1;
}

// Without a focused element, keys are for the items while these are in view.
function isAtItems(target) {
  if (target !== document.body) return byId('items').contains(target);
  const { top, bottom } = byId('browser').getBoundingClientRect();
  return top < window.innerHeight && bottom > 0;
}

function itemKeys(list) {
  const search = byId('item-search');
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const step = { j: 1, k: -1 }[event.key];
    if (step && !typing && isAtItems(event.target)) {
      event.preventDefault();
      list.step(step);
    } else if (event.key === 'r' && !typing && isAtItems(event.target)) {
      toggleReasoning();
    } else if (event.key === '/' && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && byId('items').contains(event.target)) {
      byId('list').focus();
    }
  });
}

// Printed pages show what is folded on the screen.
function openDetailsForPrint() {
  window.addEventListener('beforeprint', () => {
    document.querySelectorAll('details').forEach((node) => { node.open = true; });
  });
}

function start() {
  openDetailsForPrint();
  const tables = [...document.querySelectorAll('table[data-table]')];
  let showItems = () => {};
  tables.forEach(sortable);
  tables.forEach(fitBox);
  tables.forEach(cellGrid);
  tableFilters(tables);
  cellTooltips(tables, (run, task) => showItems(run, task));
  enlargeFigures();
  document.querySelectorAll('[data-script]').forEach((node) => { node.hidden = false; });
  const state = byId('items-state');
  // A report on horizons alone has no items.
  if (!state) return;
  const showStatus = (text) => { state.textContent = text; };
  if (typeof DecompressionStream === 'undefined') {
    showStatus('This browser cannot decompress the items; use a current one, or `numbench show RUN` in a terminal.');
    return;
  }
  requestAnimationFrame(() => setTimeout(async () => {
    performance.mark('numbench-painted');
    try {
      showItems = itemBrowser(await readItems(showStatus));
    } catch (error) {
      showStatus('The items in this file are corrupt. Run `numbench report` again.');
      throw error;
    }
    performance.mark('numbench-items-ready');
  }));
}

start();
