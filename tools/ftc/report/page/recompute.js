// The ladder of recomputation: what becomes of activations between forward and backward, and what that costs.

function choiceColor(row) {
  return palette.choices[row.choice] || palette.of(7);
}

// A ladder: each rung is a value that is, or could be, computed again, the one that frees most for each
// second first. It is as wide as what that costs, and as high as what it frees.
function drawLadder(container, plan) {
  const rungs = plan.explain.saved.filter((row) => row.choice !== 'offload' && row.bytes > 0);
  const frees = (row) => (row.seconds > 0 ? row.bytes / row.seconds : Infinity);
  rungs.sort((a, b) => (frees(a) === frees(b) ? 0 : frees(b) - frees(a)));
  const {svg, width, height} = chart(container, 260, 'Ladder of recomputation'), left = 78, bottom = 40;
  const x = d3.scaleLinear().domain([0, d3.sum(rungs, (row) => row.seconds) || 1]).range([left, width - 26]);
  const y = d3.scaleLinear().domain([0, d3.sum(rungs, (row) => row.bytes) || 1]).range([height - bottom, 24]);
  axisBottom(svg, x, height - bottom, 'seconds of computing again', format.seconds, 6);
  axisLeft(svg, y, left, format.bytes, 5, width - 26);
  svg.append('text').attr('x', left).attr('y', 14).text('bytes freed, the cheapest first');
  let seconds = 0, bytes = 0;
  for (const row of rungs) {
    const words = `${row.choice} ${row.value}: ${format.bytes(row.bytes)} for ${format.seconds(row.seconds)}`;
    const right = x(seconds + row.seconds), top = y(bytes + row.bytes);
    rectangle(
        svg, x(seconds), top, Math.max(1.5, right - x(seconds)), Math.max(1.5, y(bytes) - top),
        choiceColor(row))
        .append('title')
        .text(words);
    seconds += row.seconds;
    bytes += row.bytes;
  }
  readByKeys(container, svg);
}

function drawChoices(container, saved) {
  const each = 24, left = 250, shown = saved.slice(0, 40), most = d3.max(shown, (row) => row.bytes);
  const {svg, width, height} = chart(container, shown.length * each + 44, 'What becomes of activations');
  const x = d3.scaleLinear().domain([0, Math.max(1, most)]).range([left, width - 150]);
  shown.forEach((row, i) => {
    const name = `${row.choice} ${row.value}`, bytes = format.bytes(row.bytes);
    rowLabel(svg, left - 6, i * each + 19, name);
    rectangle(svg, left, i * each + 6, Math.max(1, x(row.bytes) - left), each - 7, choiceColor(row))
        .append('title')
        .text(`${name}: ${bytes} of ${row.count}`);
    svg.append('text')
        .attr('x', Math.max(left + 1, x(row.bytes)) + 5)
        .attr('y', i * each + 19)
        .text(row.choice === 'keep' ? bytes : `${bytes}, costs ${format.seconds(row.seconds)}`);
  });
  axisBottom(svg, x, height - 36, 'bytes of all of them', format.bytes, 5);
  readByKeys(container, svg);
  legend(
      container,
      Object.entries(palette.choices).filter(([choice]) => saved.some((row) => row.choice === choice)));
}

function drawRecomputation(container, plan) {
  const {saved} = plan.explain;
  if (saved.length === 0) {
    container.append(element(
        'p', {class: 'note'},
        'The plan says nothing of activations that are kept, computed again or brought to host memory.'));
    return;
  }
  const sum = (choice, column) => d3.sum(saved.filter((row) => row.choice === choice), (row) => row[column]);
  const again = `${format.bytes(sum('recompute', 'bytes'))} are computed again, in ${
      format.seconds(sum('recompute', 'seconds'))}`;
  container.append(element(
      'p', {class: 'note'}, `${format.bytes(sum('keep', 'bytes'))} are kept; ${again};`,
      ` ${format.bytes(sum('offload', 'bytes'))} are offloaded. Not all live at the same time.`));
  drawChoices(container, saved);
  drawLadder(container, plan);
  tableBehind(
      container, 'activations',
      [
        ['choice', (row) => row.choice], ['value', (row) => row.value],
        ['count', (row) => format.count(row.count), true],
        ['bytes', (row) => `${format.count(row.bytes)} B`, true],
        ['FLOPs again', (row) => format.flops(row.flops), true],
        ['costs', (row) => (row.choice === 'keep' ? '-' : format.seconds(row.seconds)), true],
        [
          'frees for each second',
          (row) => (row.choice === 'keep' || row.seconds === 0 ? '-' : format.bytes(row.bytes / row.seconds)),
          true
        ]
      ],
      saved);
}
