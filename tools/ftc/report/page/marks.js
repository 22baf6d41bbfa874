// Marks (bars, dots) of a chart that have nothing to choose: each says what it is, by the pointer in its
// title, by keys in a line below the chart.
function readByKeys(container, svg) {
  const marks = svg.selectAll('rect > title, circle > title').nodes().map((title) => title.parentNode);
  const line = element('p', {class: 'note', role: 'status'});
  let at = -1;
  svg.on('keydown', () => {
    if (marks.length === 0 || ofBrowser(d3.event)) return;
    const to = at < 0 && d3.event.key.startsWith('Arrow') ? 0 : moved(at, marks.length, d3.event);
    if (to === undefined) return;
    if (at >= 0) marks[at].classList.remove('chosen');
    at = to;
    marks[at].classList.add('chosen');
    line.textContent = marks[at].querySelector('title').textContent;
    d3.event.preventDefault();
  });
  container.append(line);
}
