// Kernels beside what the machine could do: FLOP/s over FLOPs by byte, both axes logarithmic.

class Roofline {
  constructor(container, plan) {
    Object.assign(this, {plan});
    this.points = plan.kernels.filter((one) => one.flops > 0 && one.bytes > 0 && one.seconds > 0);
    container.append(element(
        'p', {class: 'note'},
        'Each dot is kernels that do the same; its size is their time in a step. What lies under the slope is bound by memory, under the flat part by arithmetic.'));
    this.frame = element('div');
    this.panel = element('div', {class: 'panel roofline-panel', role: 'status', 'aria-live': 'polite'});
    container.append(this.frame);
    legend(container, palette.phases.map((name) => [name, palette.phase(name)]));
    container.append(this.panel);
    if (this.points.length > 0) {
      this.draw();
      this.choose(0);
    }
    tableBehind(
        container, 'kernels, those that take longest first',
        [
          ['kernel', (one) => one.kernel], ['phase', (one) => format.text(one.phase)],
          ['first in', (one) => format.text(one.layer)], ['type', (one) => one.dtype],
          ['a step', (one) => format.count(one.count), true],
          ['FLOPs', (one) => format.flops(one.flops), true],
          ['bytes', (one) => format.bytes(one.bytes), true],
          ['takes', (one) => format.seconds(one.seconds), true],
          ['all', (one) => format.seconds(one.total_seconds), true], ['bound by', (one) => one.bound]
        ],
        plan.kernels);
  }

  draw() {
    const {points, plan} = this, {target} = plan, left = 84, bottom = 44;
    Object.assign(this, chart(this.frame, 330, 'Kernels on a roofline'));
    const {svg, width, height} = this, intensity = (one) => one.flops / one.bytes,
                       rate = (one) => one.flops / one.seconds;
    const types = [...new Set(points.map((one) => one.dtype))].filter((dtype) => target.rates[dtype]);
    const top = d3.max(types, (dtype) => Math.max(target.rates[dtype].reached, target.rates[dtype].peak));
    const [least, most] = d3.extent(points, intensity);
    const x =
        d3.scaleLog()
            .domain([Math.min(least, 1) / 1.5, Math.max(most, 2 * top / target.memory_bytes_per_s) * 1.5])
            .range([left, width - 14]);
    const y =
        d3.scaleLog()
            .domain(
                [Math.min(d3.min(points, rate), x.domain()[0] * target.memory_bytes_per_s) / 1.5, top * 2])
            .range([height - bottom, 12]);
    axisBottom(svg, x, height - bottom, 'FLOPs for each byte', d3.format('~s'), 6);
    axisLeft(svg, y, left, format.flopsPerSecond, 5, width - 14);
    for (const dtype of types) {
      for (const [kind, value] of Object.entries(target.rates[dtype])) {
        if (value <= 0) continue;
        const ridge = Math.max(x.domain()[0], value / target.memory_bytes_per_s);
        const slope = kind === 'reached' ?
            `M${x(x.domain()[0])},${y(Math.max(y.domain()[0], x.domain()[0] * target.memory_bytes_per_s))}L${
                x(ridge)},${y(value)}` :
            `M${x(ridge)},${y(value)}`;
        svg.append('path')
            .attr('class', 'roof')
            .attr('stroke-dasharray', kind === 'peak' ? '2 4' : null)
            .attr('d', `${slope}H${width - 14}`);
      }
      const {peak, reached} = target.rates[dtype];
      svg.append('text')
          .attr('class', 'quiet')
          .attr('x', left + 8)
          .attr('y', y(Math.max(peak, reached)) + 4)
          .text(`${dtype}: ${format.flopsPerSecond(reached)} reached${
              peak > 0 ? `, ${format.flopsPerSecond(peak)} by the data sheet` : ''}`);
    }
    const size = d3.scaleSqrt().domain([0, d3.max(points, (one) => one.total_seconds)]).range([3, 22]);
    this.dots =
        points.map((one) => ({one, x: x(intensity(one)), y: y(rate(one)), r: size(one.total_seconds)}));
    svg.append('g')
        .selectAll('circle')
        .data(this.dots)
        .enter()
        .append('circle')
        .attr('cx', (dot) => dot.x)
        .attr('cy', (dot) => dot.y)
        .attr('r', (dot) => dot.r)
        .style('fill', (dot) => palette.phase(dot.one.phase))
        .style('fill-opacity', 0.6)
        .style('stroke', 'var(--text)')
        .style('stroke-width', 0.6);
    this.ring = svg.append('circle').attr('class', 'followed');
    svg.on('mousemove', () => this.nearest())
        .on('click', () => this.nearest())
        .on('keydown', () => this.key());
  }

  nearest() {
    const [across, down] = pointerIn(this.svg);
    this.choose(d3.scan(
        this.dots, (a, b) => Math.hypot(a.x - across, a.y - down) - Math.hypot(b.x - across, b.y - down)));
  }

  key() {
    if (ofBrowser(d3.event)) return;
    const to = moved(this.at, this.dots.length, d3.event);
    if (to === undefined) return;
    this.choose(to);
    d3.event.preventDefault();
  }

  choose(at) {
    this.at = at;
    const {one, x, y, r} = this.dots[at];
    this.ring.attr('cx', x).attr('cy', y).attr('r', r + 2);
    this.panel.replaceChildren(
        element(
            'h4', {},
            `${one.kernel}${one.phase ? `, ${one.phase}` : ''}: ${
                format.count(one.count)} in a step, first in ${one.layer || '-'}`),
        element(
            'p', {},
            `${format.flops(one.flops)} and ${format.bytes(one.bytes)} each, ${
                format.seconds(one.seconds)}: ${format.flopsPerSecond(one.flops / one.seconds)}, ${
                format.bytesPerSecond(one.bytes / one.seconds)}; bound by ${one.bound}`),
        element(
            'p', {},
            `${format.seconds(one.total_seconds)} together, ${
                format.percent(one.total_seconds / this.plan.explain.step.seconds)} of the step`));
  }
}
