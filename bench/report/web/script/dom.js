// Elements, and foreign text in them: only ever as text, with nothing invisible in it.
const byId = (id) => document.getElementById(id);
const UNSEEN = /([^\P{C}\n\t]|[\u2028\u2029])/gu;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Control and formatting characters are spelt out; they could hide or turn what stands there.
function putText(target, text) {
  text.split(UNSEEN).forEach((part, place) => {
    if (place % 2 === 0) {
      if (part) target.append(part);
      return;
    }
    const code = part.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    target.append(element('span', { class: 'unseen', title: `character U+${code}` }, `U+${code}`));
  });
  return target;
}

function textElement(tag, attributes, text) {
  return putText(element(tag, attributes), text);
}

const counted = (number) => number.toLocaleString('en-US');
const facts = JSON.parse(byId('facts').textContent);
const taskName = (task) => facts.tasks[task] ?? task;
const kindWords = (kind) => (facts.kinds[kind] ? `${kind}: ${facts.kinds[kind]}` : kind);

async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    // No clipboard here: show the text, selected, to be copied by hand.
    const field = element('input', { readonly: '', 'aria-label': 'Copy this text' });
    field.value = text;
    button.after(field);
    field.select();
    return;
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}
