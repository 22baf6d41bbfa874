// A trace of a run beside the prediction, by kind of instruction.

function drawMeasured(container, trace) {
  const {ranks, steps, waited} = trace, left = 270, each = 34;
  const counted =
      `${ranks} rank${ranks === 1 ? '' : 's'}, ${steps} step${steps === 1 ? '' : 's, the first left out'}`;
  const waits = `Compute waited ${format.seconds(waited.median)} in a step (median of ranks), ${
      format.seconds(waited.slowest)} on the rank that waited most.`;
  const beside = 'The time line above has a run of the first rank beside the predicted one.';
  container.append(element('p', {class: 'note'}, `${trace.file}: ${counted}. ${waits} ${beside}`));
  const shown = trace.classes.slice(0, 10);
  const {svg, width, height} =
      chart(container, shown.length * each + 46, 'Predicted and measured by kind of instruction');
  const x =
      d3.scaleLinear().domain([0, d3.max(shown, (one) => Math.max(one.predicted, one.measured))]).range([
        left, width - 110
      ]);
  shown.forEach((one, i) => {
    rowLabel(svg, left - 6, i * each + 22, `${one.title} on ${one.stream}`);
    const bars = [['predicted', one.predicted, palette.of(4)], ['measured', one.measured, palette.of(5)]];
    bars.forEach(([word, value, color], k) => {
      rectangle(svg, left, i * each + 5 + 13 * k, Math.max(1, x(value) - left), 12, color)
          .append('title')
          .text(`${one.title} on ${one.stream}: ${word} ${format.seconds(value)}`);
      svg.append('text')
          .attr('x', Math.max(left, x(value)) + 5)
          .attr('y', i * each + 15 + 13 * k)
          .text(format.seconds(value));
    });
  });
  axisBottom(svg, x, height - 36, 'in a step', format.seconds, 5);
  readByKeys(container, svg);
  legend(container, [['predicted', palette.of(4)], ['measured', palette.of(5)]]);
  tableBehind(
      container, 'kinds of instructions, those that differ most first',
      [
        ['what', (one) => one.title], ['stream', (one) => one.stream],
        ['a step', (one) => format.count(one.count), true],
        ['predicted', (one) => format.seconds(one.predicted), true],
        ['measured', (one) => format.seconds(one.measured), true],
        ['measured by predicted', (one) => (one.ratio === null ? '-' : one.ratio.toFixed(2)), true]
      ],
      trace.classes);
}
