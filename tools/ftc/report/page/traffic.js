// What each unit sends in a step, by kind of transfer.

const trafficKinds = [
  ['all_gather', 'gathered'], ['reduce_scatter', 'reduce-scattered'], ['all_reduce', 'all-reduced'],
  ['all_to_all', 'sent where it is computed on'], ['h2d', 'from host memory'], ['d2h', 'to host memory']
];
const trafficRows = 40;

// Neighbouring units that send the same are one row; what has no unit comes last.
function trafficOf(plan) {
  const {by_unit: units} = plan.explain.traffic;
  const rows = plan.unit_runs.map((run) => ({name: run.name, units: run.units, traffic: units[run.first]}));
  rows.push({name: 'scalars and activations', units: 1, traffic: units[units.length - 1]});
  return rows;
}

function drawTraffic(container, plan) {
  const {traffic} = plan.explain, rows = trafficOf(plan);
  const bytesOf = (row) => d3.sum(trafficKinds, ([kind]) => row.traffic[kind].bytes);
  const collectives =
      d3.sum(['all_gather', 'reduce_scatter', 'all_reduce', 'all_to_all'], (kind) => traffic[kind].count);
  container.append(element(
      'p', {class: 'note'},
      `A rank sends ${format.bytes(traffic.total_bytes)} in a step, in ${
          format.count(collectives)} collectives;`,
      ` ${format.bytes(traffic.h2d.bytes)} come from host memory, ${
          format.bytes(traffic.d2h.bytes)} go there.`));
  const shown = rows.filter((row) => bytesOf(row) > 0).slice(0, trafficRows), each = 24, left = 250;
  if (shown.length > 0) {
    const {svg, width, height} = chart(container, shown.length * each + 44, 'Traffic of units');
    const x = d3.scaleLinear().domain([0, d3.max(shown, bytesOf)]).range([left, width - 16]);
    shown.forEach((row, i) => {
      let sum = 0;
      rowLabel(svg, left - 6, i * each + 20, row.name);
      for (const [kind, words] of trafficKinds) {
        const {bytes, count} = row.traffic[kind];
        if (bytes === 0) continue;
        rectangle(svg, x(sum), i * each + 7, x(sum + bytes) - x(sum), each - 7, palette.traffic[kind])
            .append('title')
            .text(`${row.name}: ${words} ${format.bytes(bytes)} in ${count}`);
        sum += bytes;
      }
    });
    axisBottom(svg, x, height - 36, 'sent by a rank in a step', format.bytes);
    readByKeys(container, svg);
    legend(
        container,
        trafficKinds.filter(([kind]) => traffic[kind].bytes > 0)
            .map(([kind, words]) => [words, palette.traffic[kind]]));
  }
  tableBehind(
      container, 'traffic of units',
      [
        ['unit', (row) => row.name], ['units', (row) => row.units, true],
        ...trafficKinds.map(
            ([kind, words]) =>
                [words, (row) => `${format.count(row.traffic[kind].bytes)} B in ${row.traffic[kind].count}`,
                 true])
      ],
      rows);
}
