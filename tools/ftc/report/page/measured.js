// A trace of a run beside the prediction, by kind of instruction.

function drawMeasured(container, trace) {
  container.append(element("p", {class: "note"}, `${trace.file}: ${trace.ranks} rank${trace.ranks === 1 ? "" : "s"}, ${trace.steps} step${trace.steps === 1 ? "" : "s"}${trace.steps > 1 ? ", the first left out" : ""}. ` +
    `Compute waited ${format.seconds(trace.waited.median)} in a step (median of ranks), ${format.seconds(trace.waited.slowest)} on the rank that waited most. The time line above has a run of the first rank beside the predicted one.`));
  const shown = trace.classes.slice(0, 10), each = 34, left = 270;
  const {svg, width, height} = chart(container, shown.length * each + 46, "Predicted and measured by kind of instruction", false);
  const x = d3.scaleLinear().domain([0, d3.max(shown, (one) => Math.max(one.predicted, one.measured))]).range([left, width - 110]);
  shown.forEach((one, i) => {
    svg.append("text").attr("x", left - 6).attr("y", i * each + 22).attr("text-anchor", "end").text(`${one.title} on ${one.stream}`);
    [[one.predicted, palette.of(4)], [one.measured, palette.of(5)]].forEach(([value, color], k) => {
      svg.append("rect").attr("x", left).attr("width", Math.max(1, x(value) - left)).attr("y", i * each + 5 + 13 * k).attr("height", 12).style("fill", color);
      svg.append("text").attr("x", Math.max(left, x(value)) + 5).attr("y", i * each + 15 + 13 * k).text(format.seconds(value));
    });
  });
  axisBottom(svg, x, height - 36, "in a step", format.seconds, 5);
  legend(container, [["predicted", palette.of(4)], ["measured", palette.of(5)]]);
  tableBehind(container, "kinds of instructions, those that differ most first", [["what", (one) => one.title], ["stream", (one) => one.stream], ["a step", (one) => format.count(one.count), true],
    ["predicted", (one) => format.seconds(one.predicted), true], ["measured", (one) => format.seconds(one.measured), true], ["measured by predicted", (one) => (one.ratio === null ? "-" : one.ratio.toFixed(2)), true]], trace.classes);
}
