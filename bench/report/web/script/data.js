// The items: packed in the page, unpacked after it has been drawn, one run after the other.
async function unpacked(script) {
  const text = atob(script.textContent);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  script.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

// All responses under one number each: `get(number, column)`, `run[number]`, `item[number]`.
async function readItems(say) {
  const items = await unpacked(byId('packed-items'));
  const scripts = [...document.querySelectorAll('.packed-run')];
  const data = {
    items, columns: [], starts: [], total: facts.responses,
    run: new Uint16Array(facts.responses), item: new Uint32Array(facts.responses),
  };
  let start = 0;
  for (const [run, script] of scripts.entries()) {
    say(`Unpacking the items … ${counted(start)} of ${counted(data.total)}`);
    const columns = await unpacked(script);
    const end = start + columns.item.length;
    data.item.set(columns.item, start);
    data.run.fill(run, start, end);
    data.columns.push(columns);
    data.starts.push(start);
    start = end;
  }
  data.get = (number, name) => {
    const run = data.run[number];
    const column = data.columns[run][name];
    return Array.isArray(column) ? column[number - data.starts[run]] : column.same;
  };
  data.of = (number, name) => items[name][data.item[number]];
  data.outcome = (number) => {
    if (data.get(number, 'right')) return 'right';
    const status = data.get(number, 'status');
    return status === 'ok' ? 'wrong' : status;
  };
  return data;
}
