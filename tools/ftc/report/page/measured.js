// A trace of a run beside the prediction, by kind of instruction.

function drawMeasured(container, trace) {
  const {ranks, steps, left_out: leftOut, waited, launch_seconds_assumed: launch} = trace;
  const left = 270, each = 34;
  const counted = `${ranks} rank${ranks === 1 ? '' : 's'}, ${steps} step${
      steps === 1 ? '' : 's'} compared, the first ${leftOut} left out`;
  const waits = `Compute waited ${format.seconds(waited.median)} in a step (median of ranks), ${
      format.seconds(
          waited.slowest)} on the rank that waited most; predicted are ${format.seconds(waited.predicted)}.`;
  const launches = launch === null ?
      '' :
      ` Traced steps replay no recorded graph: predicted here with ${format.seconds(launch)} a launch.`;
  const missing = trace.unmeasured > 0 ?
      ` ${format.count(trace.unmeasured)} runs of instructions have no event on some rank and are left out.` :
      '';
  const link = trace.emulated_link === null ?
      '' :
      ` Measured over an ${trace.emulated_link}: predicted so only where the target was calibrated over it.`;
  const beside = 'The time line above has a run of the first rank beside the predicted one.';
  container.append(element(
      'p', {class: 'note'}, `${trace.file}: ${counted}. ${waits} ${beside}${launches}${link}${missing}`));
  const shown = trace.classes.slice(0, 10);
  const {svg, width, height} =
      chart(container, shown.length * each + 46, 'Predicted and measured by kind of instruction');
  const x =
      d3.scaleLinear().domain([0, d3.max(shown, (one) => Math.max(one.predicted, one.measured))]).range([
        left, width - 110
      ]);
  shown.forEach((one, i) => {
    rowLabel(svg, left - 6, i * each + 22, one.title);
    const bars = [['predicted', one.predicted, palette.of(4)], ['measured', one.measured, palette.of(5)]];
    bars.forEach(([word, value, color], k) => {
      rectangle(svg, left, i * each + 5 + 13 * k, Math.max(1, x(value) - left), 12, color)
          .append('title')
          .text(`${one.title}: ${word} ${format.seconds(value)}`);
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
        ['what', (one) => one.title], ['a step', (one) => format.count(one.count), true],
        ['predicted', (one) => format.seconds(one.predicted), true],
        ['measured', (one) => format.seconds(one.measured), true],
        ['slowest rank', (one) => format.seconds(one.slowest), true],
        ['measured by predicted', (one) => (one.ratio === null ? '-' : one.ratio.toFixed(2)), true]
      ],
      trace.classes);
}
