// The table behind a chart: made when it is opened, a part at a time.

const rowsAtOnce = 300;

// columns: [title, (row) => text, whether numbers]; rows: an array, or a number of rows.
function table(columns, rows, rowOf) {
  const body = element('tbody');
  const made = element(
      'table', {},
      element(
          'thead', {},
          element(
              'tr', {},
              columns.map(
                  ([title, , number]) =>
                      element('th', {scope: 'col', class: number ? 'number' : null}, title)))),
      body);
  const size = typeof rows === 'number' ? rows : rows.length;
  let shown = 0;
  const more = element('button', {type: 'button', onclick: () => add()});
  const add = () => {
    const end = Math.min(size, shown + rowsAtOnce);
    for (; shown < end; ++shown) {
      const row = rowOf ? rowOf(shown) : rows[shown];
      body.append(element(
          'tr', {},
          columns.map(([, text, number]) => element('td', {class: number ? 'number' : null}, text(row)))));
    }
    more.textContent = `${format.count(size - shown)} more rows`;
    more.hidden = shown === size;
  };
  add();
  return element('div', {}, made, more);
}

function tableBehind(container, title, columns, rows, rowOf) {
  const details = element('details', {class: 'table'}, element('summary', {}, `Table: ${title}`));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(table(columns, rows, rowOf));
  });
  container.append(details);
  return details;
}
