const chosen = name => document.querySelector(`[data-filter=${name}]`).value;
// The one outcome of all formats that can run there, or 'differs'; nothing where there is none: as one_outcome in atlas.py.
function outcomeOfAll(outcomes) {
  const words = new Set(Object.values(outcomes));
  if (words.size > 1) words.delete('unavailable');
  return words.size > 1 ? 'differs' : [...words][0] ?? '';
}
function filter() {
  for (const row of document.querySelectorAll('.clinic-atlas tbody tr'))
    row.hidden = ['document', 'runtime'].some(name => chosen(name) && !row.dataset[name].split(' ').includes(chosen(name)));
  for (const cell of document.querySelectorAll('.clinic-atlas [data-strategy]'))
    cell.hidden = Boolean(chosen('strategy') && cell.dataset.strategy !== chosen('strategy'));
  for (const link of document.querySelectorAll('.clinic-atlas td a')) {
    const outcomes = JSON.parse(link.dataset.outcomes);
    const word = chosen('format') ? outcomes[chosen('format')] ?? outcomes['any'] ?? '' : outcomeOfAll(outcomes);
    [link.textContent, link.style.background] = LOOKS[word];
  }
}
document.querySelectorAll('[data-filter]').forEach(each => each.addEventListener('change', filter));
filter();
