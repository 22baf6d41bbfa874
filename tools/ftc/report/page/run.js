// A run of the plan: its curves, and its steady step beside what was predicted.

const runCurves = [["loss", "loss", format.number], ["lr", "rate", format.number], ["grad_norm", "gradient norm", format.number], ["tokens_per_s", "tokens/s of all ranks", format.whole],
  ["step_ms", "milliseconds of a step", format.number]];

function curve(place, run, name, title, formatted, predicted) {
  const values = run.columns[name];
  const {svg, width, height} = chart(place, 190, title, true), left = 78, bottom = 36;
  const losses = name === "loss" ? run.eval_loss : [];
  const [least, most] = d3.extent([...values, ...losses, ...(predicted ? [predicted] : [])].filter((value) => value !== null));
  const x = d3.scaleLinear().domain(d3.extent([...run.step, ...(losses.length > 0 ? run.evaluated : [])])).range([left, width - 14]);
  const y = d3.scaleLinear().domain(least < most ? [least, most] : [Math.min(0, 2 * least), Math.max(0, 2 * least) || 1]).nice().range([height - bottom, 26]);
  axisBottom(svg, x, height - bottom, "step", d3.format(",d"), 6);
  axisLeft(svg, y, left, formatted, 4, width - 14);
  const heading = svg.append("text").attr("x", left).attr("y", 14).text(title);
  if (predicted) {
    svg.append("line").attr("class", "limit").attr("x1", left).attr("x2", width - 14).attr("y1", y(predicted)).attr("y2", y(predicted));
    svg.append("text").attr("x", width - 18).attr("y", y(predicted) - 4).attr("text-anchor", "end").text(`predicted ${formatted(predicted)}`);
  }
  svg.append("path").attr("class", "line").style("stroke", palette.of(0))
    .attr("d", d3.line().defined((value) => value !== null).x((value, i) => x(run.step[i])).y((value) => y(value))(values));
  losses.forEach((value, i) => {
    if (value !== null) svg.append("circle").attr("cx", x(run.evaluated[i])).attr("cy", y(value)).attr("r", 4).style("fill", palette.of(1)).append("title").text(`evaluation after step ${run.evaluated[i]}: ${formatted(value)}`);
  });
  const dot = svg.append("circle").attr("r", 4).attr("cx", -9).attr("cy", -9).style("fill", palette.of(5));
  let at = run.step.length - 1;
  const show = (index) => {
    at = Math.min(run.step.length - 1, Math.max(0, index));
    heading.text(`${title}; step ${run.step[at]}: ${formatted(values[at])}`);
    if (values[at] !== null) dot.attr("cx", x(run.step[at])).attr("cy", y(values[at]));
  };
  svg.on("mousemove", () => show(d3.bisectLeft(run.step, x.invert(pointerIn(svg)[0]) - 0.5))).on("keydown", () => {
    const move = {ArrowLeft: -1, ArrowRight: 1}[d3.event.key];
    if (move) { show(at + move); d3.event.preventDefault(); }
  });
}

function drawRun(container, run) {
  container.append(element("p", {class: "note"}, `${run.file}: ${format.count(run.lines)} steps${run.every > 1 ? `, of which every ${run.every}th is shown` : ""}`));
  const {predicted, measured} = run;
  if (measured) {
    container.append(element("div", {class: "cards"}, card("Predicted", format.seconds(predicted.step_ms / 1e3), "", element("p", {}, `a step; ${format.whole(predicted.tokens_per_s)} tokens/s of all ranks, ${format.seconds(predicted.exposed_ms / 1e3)} exposed`)),
      card("Measured", format.seconds(measured.step_ms / 1e3), "", element("p", {}, `a step, the median of ${format.count(measured.steps)} after the fifth; ${format.whole(measured.tokens_per_s)} tokens/s, ${measured.exposed_ms === null ? "-" : format.seconds(measured.exposed_ms / 1e3)} exposed`)),
      card("Measured by predicted", measured.ratio === null ? "-" : measured.ratio.toFixed(2), "", element("p", {class: "note"}, "1 is what was predicted"))));
  } else {
    container.append(element("p", {class: "note"}, "A steady step is the median after the fifth: this run has none."));
  }
  const shown = runCurves.filter(([name]) => run.columns[name].some((value) => value !== null)), places = shown.map(() => element("div"));
  container.append(element("div", {class: "plans"}, places));
  shown.forEach(([name, title, formatted], i) => curve(places[i], run, name, title, formatted, predicted[name]));
  tableBehind(container, "steps", [["step", (i) => run.step[i], true], ...Object.keys(run.columns).map((name) => [name, (i) => format.number(run.columns[name][i]), true])], run.step.length, (i) => i);
  if (run.evaluated.length > 0)
    tableBehind(container, "evaluations", [["after step", (i) => run.evaluated[i], true], ["loss", (i) => format.number(run.eval_loss[i]), true]], run.evaluated.length, (i) => i);
}
