// Filters and the selected response are in the address, so that a link shows the same view.
const addressFields = new Map();

// Sets the fields from the address, and keeps the address up to date with them.
function rememberFields(group, fields, form) {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const [name, field] of Object.entries(fields)) {
    const key = `${group}.${name}`;
    addressFields.set(key, field);
    if (!address.has(key)) continue;
    field.value = address.get(key);
    // A value that this report does not have.
    if (field.selectedIndex === -1) field.value = '';
  }
  const update = () => {
    const target = Object.fromEntries(['item', 'run', 'sample'].flatMap((key) => {
      const value = new URLSearchParams(location.hash.slice(1)).get(key);
      return value === null ? [] : [[key, value]];
    }));
    history.replaceState(null, '', addressWith(target) || location.pathname + location.search);
  };
  form.addEventListener('input', update);
  form.addEventListener('reset', () => setTimeout(update));
}

// Returns the fragment for a response (or none) with the filters that are set.
function addressWith(target) {
  const address = new URLSearchParams(target);
  for (const [key, field] of addressFields) {
    if (field.value) address.set(key, field.value);
  }
  const text = address.toString();
  return text && `#${text}`;
}
