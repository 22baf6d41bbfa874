// The ladder of recomputation: what becomes of activations between forward and backward, and what that costs.

function drawRecomputation(container, plan) {
  const {saved} = plan.explain;
  if (saved.length === 0) {
    container.append(element("p", {class: "note"}, "The plan says nothing of activations that are kept, computed again or brought to host memory."));
    return;
  }
  const sum = (choice, column) => d3.sum(saved.filter((row) => row.choice === choice), (row) => row[column]);
  container.append(element("p", {class: "note"}, `${format.bytes(sum("keep", "bytes"))} are kept; ${format.bytes(sum("recompute", "bytes"))} are computed again, ` +
    `in ${format.seconds(sum("recompute", "seconds"))}; ${format.bytes(sum("offload", "bytes"))} are offloaded. Not all live at the same time.`));
  const each = 24, left = 250, shown = saved.slice(0, 40);
  const {svg, width, height} = chart(container, shown.length * each + 44, "What becomes of activations", false);
  const x = d3.scaleLinear().domain([0, Math.max(1, d3.max(shown, (row) => row.bytes))]).range([left, width - 150]);
  shown.forEach((row, i) => {
    const name = `${row.choice} ${row.value}`;
    svg.append("text").attr("x", left - 6).attr("y", i * each + 19).attr("text-anchor", "end").text(name.length > 38 ? `${name.slice(0, 37)}…` : name).append("title").text(name);
    svg.append("rect").attr("x", left).attr("y", i * each + 6).attr("height", each - 7).attr("width", Math.max(1, x(row.bytes) - left)).style("fill", palette.choices[row.choice] || palette.of(7))
      .append("title").text(`${name}: ${format.bytes(row.bytes)} of ${row.count}`);
    svg.append("text").attr("x", Math.max(left + 1, x(row.bytes)) + 5).attr("y", i * each + 19).text(row.choice === "keep" ? format.bytes(row.bytes) : `${format.bytes(row.bytes)}, costs ${format.seconds(row.seconds)}`);
  });
  axisBottom(svg, x, height - 36, "bytes of all of them", format.bytes, 5);
  legend(container, Object.entries(palette.choices).filter(([choice]) => saved.some((row) => row.choice === choice)));
  tableBehind(container, "activations", [["choice", (row) => row.choice], ["value", (row) => row.value], ["count", (row) => format.count(row.count), true],
    ["bytes", (row) => `${format.count(row.bytes)} B`, true], ["FLOPs again", (row) => format.flops(row.flops), true], ["costs", (row) => (row.choice === "keep" ? "-" : format.seconds(row.seconds)), true],
    ["frees for each second", (row) => (row.choice === "keep" || row.seconds === 0 ? "-" : format.bytes(row.bytes / row.seconds)), true]], saved);
}
