// Everything wired together: tables at once, items after the first paint.
function itemBrowser(data) {
  let current = null;
  let passing = 0;
  const state = byId('items-state');
  const link = (number) => {
    const target = { item: data.of(number, 'id'), run: facts.runs[data.run[number]].key };
    return `#${new URLSearchParams(target)}`;
  };
  const actions = {
    'Copy link': (button) => copy(new URL(link(current), location.href).href, button),
    Previous: () => list.step(-1),
    Next: () => list.step(1),
  };
  const show = (number) => {
    current = number;
    showDetail(data, number, actions);
  };
  const list = responseList(data, (number, how) => {
    show(number);
    clearTimeout(passing);
    if (how === 'open') {
      history.pushState(null, '', link(number));
      byId('detail').focus({ preventScroll: window.innerWidth > 800 });
    } else {
      // Browsers refuse an address that changes with every key of a held-down arrow.
      passing = setTimeout(() => history.replaceState(null, '', link(number)), 300);
    }
  });
  const filters = itemFilters(data, (found) => {
    const right = found.filter((number) => data.get(number, 'right')).length;
    state.textContent = `${counted(found.length)} of ${counted(data.total)} responses, ${counted(right)} of them right.`;
    list.show(found, current);
  });
  const follow = () => {
    const target = new URLSearchParams(location.hash.slice(1));
    if (!target.has('item')) return;
    const number = find(data, target.get('item'), target.get('run'));
    if (number < 0) {
      state.textContent = 'The link names a response that is not in this report.';
      return;
    }
    show(number);
    list.select(number);
    byId('items').scrollIntoView();
  };
  window.addEventListener('popstate', follow);
  byId('browser').hidden = false;
  itemKeys();
  filters.apply();
  follow();
  return (run, task) => {
    filters.only(run, task);
    filters.apply();
    byId('items').scrollIntoView();
    byId('list').focus({ preventScroll: true });
  };
}

function find(data, id, key) {
  const run = facts.runs.findIndex((one) => one.key === key);
  for (let number = 0; number < data.total; number += 1) {
    if ((run < 0 ? key === null : data.run[number] === run) && data.of(number, 'id') === id) return number;
  }
  return -1;
}

function itemKeys() {
  const search = byId('item-search');
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === '/' && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && byId('items').contains(event.target)) {
      byId('list').focus();
    }
  });
}

function start() {
  const tables = [...document.querySelectorAll('table[data-table]')];
  let showItems = () => {};
  tables.forEach(sortable);
  tables.forEach(cellGrid);
  tableFilters(tables);
  cellNotes(tables, (run, task) => showItems(run, task));
  enlargeable();
  document.querySelectorAll('[data-script]').forEach((one) => { one.hidden = false; });
  const state = byId('items-state');
  const say = (text) => { state.textContent = text; };
  if (typeof DecompressionStream === 'undefined') {
    say('This browser is too old to unpack the items; `numbench show RUN` prints them in a terminal.');
    return;
  }
  requestAnimationFrame(() => setTimeout(async () => {
    performance.mark('numbench-painted');
    try {
      showItems = itemBrowser(await readItems(say));
    } catch (error) {
      say('The items in this file are damaged; write the report anew.');
      throw error;
    }
    performance.mark('numbench-items-ready');
  }));
}

start();
