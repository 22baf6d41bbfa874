// A run of the plan: its curves, and its steady step beside what was predicted.

const runCurves = [
  ['loss', 'loss', format.number], ['lr', 'rate', format.number],
  ['grad_norm', 'gradient norm', format.number], ['tokens_per_s', 'tokens/s of all ranks', format.whole],
  ['step_ms', 'milliseconds of a step', format.number]
];

function curveScales(run, values, losses, predicted, width, height, left, bottom) {
  const all = [...values, ...losses, ...(predicted ? [predicted] : [])].filter((value) => value !== null);
  const [least, most] = d3.extent(all), steps = [...run.step, ...(losses.length > 0 ? run.evaluated : [])];
  const flat = [Math.min(0, 2 * least), Math.max(0, 2 * least) || 1];
  return {
    x: d3.scaleLinear().domain(d3.extent(steps)).range([left, width - 14]),
    y: d3.scaleLinear().domain(least < most ? [least, most] : flat).nice().range([height - bottom, 26]),
  };
}

function curve(place, run, name, title, formatted, predicted) {
  const values = run.columns[name], losses = name === 'loss' ? run.eval_loss : [];
  const {svg, width, height} = chart(place, 190, title), left = 78, bottom = 36;
  const {x, y} = curveScales(run, values, losses, predicted, width, height, left, bottom);
  axisBottom(svg, x, height - bottom, 'step', d3.format(',d'), 6);
  axisLeft(svg, y, left, formatted, 4, width - 14);
  if (predicted) limitLine(svg, left, width - 14, y(predicted), `predicted ${formatted(predicted)}`);
  const line =
      d3.line().defined((value) => value !== null).x((value, i) => x(run.step[i])).y((value) => y(value));
  svg.append('path').attr('class', 'line').style('stroke', palette.of(0)).attr('d', line(values));
  losses.forEach((value, i) => {
    if (value === null) return;
    svg.append('circle')
        .attr('cx', x(run.evaluated[i]))
        .attr('cy', y(value))
        .attr('r', 4)
        .style('fill', palette.of(1))
        .append('title')
        .text(`evaluation after step ${run.evaluated[i]}: ${formatted(value)}`);
  });
  const heading = svg.append('text').attr('x', left).attr('y', 14).text(title);
  const spoken = element('p', {class: 'spoken', role: 'status', 'aria-live': 'polite'});
  place.append(spoken);
  readOff(svg, run, values, x, y, (at) => {
    spoken.textContent = `${title}; step ${run.step[at]}: ${formatted(values[at])}`;
    heading.text(spoken.textContent);
  });
}

// Pointer and keys choose a step, of which `show` says what it is.
function readOff(svg, run, values, x, y, show) {
  const dot = svg.append('circle').attr('r', 4).attr('cx', -9).attr('cy', -9).style('fill', palette.of(5));
  let at = run.step.length - 1;
  const choose = (index) => {
    at = Math.min(run.step.length - 1, Math.max(0, index));
    if (values[at] !== null) dot.attr('cx', x(run.step[at])).attr('cy', y(values[at]));
    show(at);
  };
  svg.on('mousemove', () => choose(d3.bisectLeft(run.step, x.invert(pointerIn(svg)[0]) - 0.5)))
      .on('keydown', () => {
        if (ofBrowser(d3.event)) return;
        const to = moved(at, run.step.length, d3.event);
        if (to === undefined) return;
        choose(to);
        d3.event.preventDefault();
      });
}

function steadyCards(predicted, measured, counted) {
  const words = (one) => `${format.whole(one.tokens_per_s)} ${counted}/s of all ranks, ${
      format.seconds(one.exposed_ms === null ? null : one.exposed_ms / 1e3)} exposed`;
  const median = `a step, the median of ${format.count(measured.steps)} after the fifth`;
  const ratio = measured.ratio === null ? '-' : measured.ratio.toFixed(2);
  return element(
      'div', {class: 'cards'},
      card(
          'Predicted', format.seconds(predicted.step_ms / 1e3), '',
          element('p', {}, `a step; ${words(predicted)}`)),
      card(
          'Measured', format.seconds(measured.step_ms / 1e3), '',
          element('p', {}, `${median}; ${words(measured)}`)),
      card('Measured by predicted', ratio, '', element('p', {class: 'note'}, '1 is what was predicted')));
}

function drawRun(container, run) {
  const thinned = run.every > 1 ? `, of which every ${run.every}th is shown` : '';
  const others = run.others > 0 ?
      `; ${
          format.count(
              run.others)} of them are of other ranks or another plan: in the curves, not in what was measured` :
      '';
  container.append(
      element('p', {class: 'note'}, `${run.file}: ${format.count(run.lines)} steps${thinned}${others}`));
  const {predicted, measured} = run;
  if (measured)
    container.append(steadyCards(predicted, measured, run.counted));
  else
    container.append(
        element('p', {class: 'note'}, 'A steady step is the median after the fifth: this run has none.'));
  const shown = runCurves.filter(([name]) => run.columns[name].some((value) => value !== null)),
        places = shown.map(() => element('div'));
  container.append(element('div', {class: 'plans'}, places));
  shown.forEach(
      ([name, title, formatted], i) =>
          curve(places[i], run, name, title.replace('tokens', run.counted), formatted, predicted[name]));
  tableBehind(
      container, 'steps',
      [
        ['step', (i) => run.step[i], true],
        ...Object.keys(run.columns).map((name) => [name, (i) => format.number(run.columns[name][i]), true])
      ],
      run.step.length, (i) => i);
  if (run.evaluated.length > 0)
    tableBehind(
        container, 'evaluations',
        [
          ['after step', (i) => run.evaluated[i], true],
          ['loss', (i) => format.number(run.eval_loss[i]), true]
        ],
        run.evaluated.length, (i) => i);
}
