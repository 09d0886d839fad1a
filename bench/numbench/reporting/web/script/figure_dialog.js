// Makes each figure a button that shows it enlarged in a dialog.
function enlargeFigures() {
  const dialog = byId('enlarged');
  for (const image of document.querySelectorAll('figure img')) {
    const button = element('button', { type: 'button', class: 'enlarge', 'aria-label': `Enlarge: ${image.alt}` });
    image.replaceWith(button);
    button.append(image);
    button.addEventListener('click', () => {
      const close = element('button', { type: 'button' }, 'Close');
      close.addEventListener('click', () => dialog.close());
      const large = image.cloneNode();
      large.loading = 'eager';
      dialog.replaceChildren(close, large);
      dialog.showModal();
    });
  }
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
}
