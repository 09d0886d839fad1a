// The state of the page is the end of its address, such as `#task=division&sort=summary.cost.up`.
const state = new URLSearchParams();
const listeners = [];

const value = (name) => state.get(name) ?? '';
const notify = () => listeners.forEach((listener) => listener());
const writeAddress = () => history.replaceState(null, '', `#${state}`);

// The question of the address belongs to the list as it was, so any change of this removes it.
function setState(changes) {
  state.delete('q');
  for (const [name, text] of Object.entries(changes)) {
    if (text) state.set(name, text);
    else state.delete(name);
  }
  writeAddress();
  notify();
}

// A link to a section, such as `#items`, becomes a part of the state.
function readAddress() {
  const text = location.hash.slice(1);
  if (text && !text.includes('=')) {
    state.set('at', text);
    writeAddress();
  } else {
    for (const name of [...state.keys()]) state.delete(name);
    new URLSearchParams(text).forEach((known, name) => state.set(name, known));
  }
}

function bindControls() {
  const controls = [...document.querySelectorAll('[data-state]')];
  const isBox = (control) => control.type === 'checkbox';
  for (const control of controls) {
    control.addEventListener('input', () => setState({
      [control.dataset.state]: isBox(control) ? control.checked && '1' : control.value,
    }));
  }
  listeners.push(() => controls.forEach((control) => {
    const known = value(control.dataset.state);
    if (isBox(control)) control.checked = Boolean(known);
    else if (control.value !== known) control.value = known;
  }));
  for (const form of document.querySelectorAll('form')) {
    form.addEventListener('submit', (event) => event.preventDefault());
    form.querySelector('.clear').addEventListener('click', () => {
      const names = controls.filter((control) => form.contains(control)).map((one) => one.dataset.state);
      setState(Object.fromEntries(['sort', ...names].map((name) => [name, ''])));
    });
  }
}

readAddress();
bindControls();
window.addEventListener('hashchange', () => {
  readAddress();
  notify();
});
