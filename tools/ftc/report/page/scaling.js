// How far the plan scales: the same batch a rank with other numbers of ranks.

function scalingPanel(place, plan, title, valueOf, formatted, limit) {
  const {rows} = plan.scaling;
  const {svg, width, height} = chart(place, 210, title), left = 84, bottom = 40;
  const last = rows[rows.length - 1].world_size, most = Math.max(d3.max(rows, valueOf), limit ? limit[0] : 0);
  const x =
      d3.scaleLog().base(2).domain([Math.min(rows[0].world_size, last / 2), last]).range([left, width - 20]);
  const y = d3.scaleLinear().domain([0, 1.08 * most || 1]).range([height - bottom, 24]);
  axisBottom(svg, x, height - bottom, 'ranks', d3.format('d'), Math.min(8, rows.length));
  axisLeft(svg, y, left, formatted, 4, width - 20);
  svg.append('text').attr('x', left).attr('y', 14).text(title);
  if (limit) limitLine(svg, left, width - 20, y(limit[0]), limit[1]);
  svg.append('path')
      .attr('class', 'line')
      .style('stroke', palette.of(0))
      .attr('d', d3.line().x((row) => x(row.world_size)).y((row) => y(valueOf(row)))(rows));
  const own = plan.explain.world_size;
  svg.selectAll('circle')
      .data(rows)
      .enter()
      .append('circle')
      .attr('cx', (row) => x(row.world_size))
      .attr('cy', (row) => y(valueOf(row)))
      .attr('r', (row) => (row.world_size === own ? 6 : 4))
      .style('fill', (row) => (row.world_size === own ? palette.of(5) : palette.of(0)))
      .append('title')
      .text((row) => `${row.world_size} ranks: ${formatted(valueOf(row))}`);
  readByKeys(place, svg);
}

function drawScaling(container, plan) {
  const {rows, left_out: leftOut} = plan.scaling, room = plan.target.memory_bytes;
  container.append(element(
      'p', {class: 'note'},
      'The same batch a rank with other numbers of ranks. The large dot is what this report is about.'));
  const left = element('div'), right = element('div');
  container.append(element('div', {class: 'plans'}, left, right));
  scalingPanel(left, plan, `${plan.counted}/s of a rank`, (row) => row.tokens_per_s_per_rank, format.whole);
  const beside = rows.some((row) => row.beside_bytes > 0);
  scalingPanel(
      right, plan, `bytes of a rank: arena${beside ? ' and what lies beside it' : ''}`,
      (row) => row.arena_bytes + row.beside_bytes, format.bytes,
      room ? [room, `memory of ${plan.target.name}`] : null);
  if (leftOut.length > 0)
    container.append(element(
        'p', {class: 'note'},
        `Left out: ${leftOut.map((one) => `${one.world_size} ranks (${one.why})`).join('; ')}`));
  tableBehind(
      container, 'scaling',
      [
        ['ranks', (row) => format.count(row.world_size), true], ['mesh', (row) => row.mesh],
        ['a step', (row) => format.seconds(row.seconds), true],
        ['exposed', (row) => format.seconds(row.exposed_seconds), true],
        [`${plan.counted}/s of a rank`, (row) => format.whole(row.tokens_per_s_per_rank), true],
        ['of all', (row) => format.whole(row.tokens_per_s), true],
        ['of the first row', (row) => format.percent(row.of_first), true],
        ['MFU', (row) => format.percent(row.mfu), true],
        ['arena', (row) => format.bytes(row.arena_bytes), true], ['fits', (row) => format.text(row.fits)]
      ],
      rows);
}
