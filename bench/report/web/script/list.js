// The list of responses: only the rows in sight are in the document.
const ROW = 44;
const SPARE = 6;

function responseList(data, choose) {
  const list = byId('list');
  const space = byId('list-space');
  let numbers = [];
  let at = -1;
  const drawn = new Map();

  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(numbers.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    for (const [place, row] of drawn) {
      if (place >= first && place < last) continue;
      row.remove();
      drawn.delete(place);
    }
    for (let place = first; place < last; place += 1) {
      if (!drawn.has(place)) drawn.set(place, space.appendChild(option(data, numbers, place)));
      drawn.get(place).setAttribute('aria-selected', place === at);
    }
    if (at >= first && at < last) list.setAttribute('aria-activedescendant', `option-${at}`);
    else list.removeAttribute('aria-activedescendant');
  };
  const reveal = () => {
    const top = at * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) {
      list.scrollTop = top + ROW - list.clientHeight;
    }
  };
  const move = (place, how) => {
    if (!numbers.length) return;
    at = Math.min(numbers.length - 1, Math.max(0, place));
    reveal();
    draw();
    choose(numbers[at], how);
  };

  list.addEventListener('scroll', () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(draw).observe(list);
  list.addEventListener('click', (event) => {
    const row = event.target.closest('[role=option]');
    if (row) move(Number(row.dataset.place), 'open');
  });
  list.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const target = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page,
      PageUp: at - page, Home: 0, End: numbers.length - 1,
    }[event.key];
    if (target !== undefined) {
      event.preventDefault();
      move(target, 'pass');
    } else if (event.key === 'Enter' && numbers.length) {
      event.preventDefault();
      move(Math.max(at, 0), 'open');
    }
  });
  return {
    show(found, current) {
      numbers = found;
      drawn.clear();
      space.replaceChildren();
      at = numbers.indexOf(current);
      space.style.height = `${numbers.length * ROW}px`;
      if (at < 0) list.scrollTop = 0;
      else reveal();
      draw();
    },
    select(number) {
      at = numbers.indexOf(number);
      if (at >= 0) reveal();
      draw();
    },
    step(by) { move(at + by, 'open'); },
  };
}

function option(data, numbers, place) {
  const number = numbers[place];
  const outcome = data.outcome(number);
  const row = element('div', {
    role: 'option', id: `option-${place}`, 'data-place': place, class: 'row',
    'aria-posinset': place + 1, 'aria-setsize': numbers.length,
  });
  row.style.top = `${place * ROW}px`;
  const kind = data.get(number, 'kind');
  const verdict = outcome === 'wrong' && kind ? `wrong: ${kind}` : outcome;
  row.append(
    textElement('span', { class: `badge ${outcome === 'right' ? 'good' : 'bad'}` }, verdict),
    textElement('span', { class: 'what' }, `${taskName(data.of(number, 'task'))} · δ ${data.of(number, 'base10')} · ${facts.runs[data.run[number]].label}`),
    textElement('span', { class: 'question' }, data.of(number, 'prompt').slice(0, 160)),
  );
  return row;
}
