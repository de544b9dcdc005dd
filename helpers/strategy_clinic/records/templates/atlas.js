const chosen = name => document.querySelector(`[data-filter=${name}]`).value;
function filter() {
  for (const row of document.querySelectorAll('.clinic-atlas tbody tr'))
    row.hidden = ['document', 'runtime'].some(name => chosen(name) && !row.dataset[name].split(' ').includes(chosen(name)));
  for (const cell of document.querySelectorAll('.clinic-atlas [data-strategy]'))
    cell.hidden = Boolean(chosen('strategy') && cell.dataset.strategy !== chosen('strategy'));
  for (const link of document.querySelectorAll('.clinic-atlas td a')) {
    const outcomes = JSON.parse(link.dataset.outcomes), all = Object.values(outcomes);
    const run = all.filter(word => word !== 'unavailable'), any = run.length ? run : all;
    const same = any.every(word => word === any[0]) ? any[0] : 'differs';
    const word = outcomes[chosen('format')] || (outcomes['any'] || (chosen('format') ? '' : same));
    [link.textContent, link.style.background] = LOOKS[word];
  }
}
document.querySelectorAll('[data-filter]').forEach(each => each.addEventListener('change', filter));
filter();
