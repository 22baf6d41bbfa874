// The streams of a step as a time line: instructions, waits, and what exposes them.

class Timeline {
  constructor(container, plan, streams, trace) {
    Object.assign(this, {plan, streams, trace});
    this.program = usualProgram(plan);
    this.margin = {left: 120, right: 26, top: 8, bottom: 36};
    this.lane = 0;
    this.time = 0;
    container.append(element(
        'div', {class: 'controls'},
        choice(
            'program', plan.programs.map((one) => `${one.name} (${one.runs} a step)`), this.program,
            (index) => {
              this.program = index;
              this.load();
            }),
        element(
            'span', {class: 'note'},
            'wheel or + and - zoom, 0 shows all, arrows move along a stream and between streams, drag pans')));
    this.frame = element('div');
    container.append(this.frame);
    legend(container, [
      ...palette.phases.map((name) => [name, palette.phase(name)]), ['transfer', palette.of(1)],
      ['compute waits', palette.wait], ['another stream waits', palette.idle],
      ['the host launches', palette.launch]
    ]);
    this.panel = element('div', {class: 'panel timeline-panel', role: 'status', 'aria-live': 'polite'});
    this.behind = element('div');
    container.append(this.panel, this.behind);
    this.load();
  }

  load() {
    const {plan, program, trace} = this;
    this.lanes = predictedLanes(plan, program, this.streams);
    if (trace) this.lanes.push(...measuredLanes(plan, program, trace, this.streams));
    this.size = this.lanes.length > 0 ? endOf(this.lanes) : 1;
    this.window = [0, this.size];
    this.draw();
    this.behind.replaceChildren();
    const one = plan.programs[program], {instructions} = one;
    tableBehind(
        this.behind, `instructions of ${one.name}`,
        [
          ['instruction', (k) => instructionText(plan, program, k)],
          ['stream', (k) => this.streams[instructions.stream[k]]],
          ['begin', (k) => format.nanoseconds(instructions.begin[k]), true],
          ['takes', (k) => format.nanoseconds(instructions.end[k] - instructions.begin[k]), true],
          ['waits for', (k) => instructions.after[k].join(', ') || '-'],
          ['waited for at', (k) => (instructions.waited_at[k] < 0 ? '-' : instructions.waited_at[k]), true],
          ['exposed', (k) => format.nanoseconds(instructions.exposed[k]), true],
          ['why there', (k) => format.text(plan.text(instructions.reason[k]))]
        ],
        one.size, (k) => k);
    if (this.lanes.length > 0) this.choose(0, this.lanes[0].items[0]);
  }

  draw() {
    const {margin} = this, each = 30;
    this.frame.replaceChildren();
    Object.assign(
        this,
        chart(
            this.frame, margin.top + margin.bottom + each * this.lanes.length,
            `Streams over ${this.plan.programs[this.program].name}`));
    this.x = d3.scaleLinear().range([margin.left, this.width - margin.right]);
    this.top = (lane) => margin.top + each * lane + 3;
    this.laneHeight = each - 6;
    this.lanes.forEach(
        (lane, i) => this.svg.append('text')
                         .attr('x', margin.left - 6)
                         .attr('y', this.top(i) + 16)
                         .attr('text-anchor', 'end')
                         .text(lane.name));
    this.items = this.svg.append('g');
    this.axis = this.svg.append('g');
    this.marks = this.svg.append('g');
    this.svg.on('mousemove', () => this.point())
        .on('click', () => this.point())
        .on('keydown', () => this.key())
        .on('wheel', () => this.wheel())
        .call(d3.drag().on('drag', () => this.pan(-d3.event.dx)));
    this.redraw();
  }

  colorOf(item) {
    const {instructions} = this.plan.programs[item.program];
    if (item.launch) return palette.launch;
    if (item.wait) return instructions.stream[item.number] === 0 ? palette.wait : palette.idle;
    if (instructions.opcode[item.number] !== opcodes.KERNEL) return palette.of(1);
    return palette.phase(this.plan.text(instructions.phase[item.number]));
  }

  redraw() {
    const {x, margin} = this;
    x.domain(this.window);
    this.items.selectAll('*').remove();
    this.lanes.forEach((lane, i) => {
      for (const [color, parts] of lanePaths(
               this.plan, lane, x, this.top(i), this.laneHeight, (item) => this.colorOf(item))) {
        const path = this.items.append('path').attr('d', parts.join('')).style('fill', color);
        if (color === palette.idle) path.style('fill-opacity', 0.3);
      }
    });
    this.axis.selectAll('*').remove();
    axisBottom(this.axis, x, this.height - margin.bottom, 'time', (value) => format.nanoseconds(value));
    this.mark();
  }

  mark() {
    const {x, marks, chosen, margin} = this, right = this.width - margin.right;
    marks.selectAll('*').remove();
    if (!chosen || chosen.end < this.window[0] || chosen.begin > this.window[1]) return;
    const from = Math.max(margin.left, x(chosen.begin)), to = Math.min(right, x(chosen.end));
    marks.append('rect')
        .attr('class', 'followed')
        .attr('x', from)
        .attr('width', Math.max(1, to - from))
        .attr('y', this.top(this.lane))
        .attr('height', this.laneHeight);
  }

  choose(lane, item) {
    if (!item || item === this.chosen) return;
    Object.assign(this, {lane, chosen: item});
    this.mark();
    const {plan} = this, {instructions} = plan.programs[item.program], number = item.number, lines = [];
    const causes = instructions.after[number].map((earlier) => instructionText(plan, item.program, earlier));
    if (item.wait) {
      lines.push(`${this.lanes[lane].name} stands still for ${
          format.nanoseconds(
              item.end - item.begin)} before instruction ${instructionText(plan, item.program, number)}`);
      if (causes.length > 0) lines.push(`what exposes it: ${causes.slice(0, 6).join('; ')}`);
    } else if (item.launch) {
      lines.push(`${this.lanes[lane].name}: nothing for ${
          format.nanoseconds(item.end - item.begin)} until the host has launched instruction ${
          instructionText(plan, item.program, number)}`);
    } else {
      lines.push(
          `${this.lanes[lane].name}: instruction ${instructionText(plan, item.program, number)}`,
          `from ${format.nanoseconds(item.begin)} to ${format.nanoseconds(item.end)}, ${
              format.nanoseconds(item.end - item.begin)}`);
      if (causes.length > 0) lines.push(`after ${causes.slice(0, 6).join('; ')}`);
      if (instructions.waited_at[number] >= 0)
        lines.push(`waited for by instruction ${
            instructionText(plan, item.program, instructions.waited_at[number])}; ${
            format.nanoseconds(instructions.exposed[number])} of it exposed`);
      const reason = plan.text(instructions.reason[number]);
      if (reason) lines.push(`stands there because: ${reason}`);
      this.measuredLine(item, lines);
    }
    this.panel.replaceChildren(
        element('h4', {}, lines[0]), ...lines.slice(1).map((line) => element('p', {}, line)));
  }

  measuredLine(item, lines) {
    if (!this.trace) return;
    const {measured} = this.trace, {instructions} = this.plan.programs[item.program];
    const index = measured.instruction.findIndex(
        (number, i) => number === item.number && measured.program[i] === item.program);
    if (index < 0) return;
    const predicted = instructions.end[item.number] - instructions.begin[item.number];
    lines.push(`predicted ${format.nanoseconds(predicted)}, measured ${
        format.seconds(measured.median[index])} (median), ${
        format.seconds(measured.slowest[index])} on the slowest rank`);
  }

  point() {
    const [across, down] = pointerIn(this.svg), lane = Math.floor((down - this.margin.top) / 30);
    if (lane < 0 || lane >= this.lanes.length) return;
    const item = itemAt(this.lanes[lane], this.x.invert(across));
    if (item && item.begin <= this.x.invert(across + 2)) this.choose(lane, item);
  }

  pan(pixels) {
    const shift = this.x.invert(this.margin.left + pixels) - this.window[0],
          length = this.window[1] - this.window[0];
    const begin = Math.min(Math.max(0, this.window[0] + shift), this.size - length);
    this.window = [begin, begin + length];
    this.redraw();
  }

  key() {
    const {key, shiftKey} = d3.event, {items} = this.lanes[this.lane] || {items: []};
    if (items.length === 0 || ofBrowser(d3.event)) return;
    const index = items.indexOf(this.chosen), step = shiftKey ? 20 : 1, last = items.length - 1;
    const moves =
        {ArrowLeft: Math.max(0, index - step), ArrowRight: Math.min(last, index + step), Home: 0, End: last};
    const window = zoomed(this.window, this.size, (this.chosen.begin + this.chosen.end) / 2, key);
    if (key in moves)
      this.reveal(this.lane, items[moves[key]]);
    else if (key === 'ArrowUp' || key === 'ArrowDown') {
      const lane = Math.min(this.lanes.length - 1, Math.max(0, this.lane + (key === 'ArrowUp' ? -1 : 1)));
      const all = this.lanes[lane].items;
      this.reveal(lane, itemAt(this.lanes[lane], this.chosen.begin) || all[all.length - 1]);
    } else if (window) {
      this.window = window;
      this.redraw();
    } else
      return;
    d3.event.preventDefault();
  }

  // Chooses what may lie outside of what is shown.
  reveal(lane, item) {
    this.choose(lane, item);
    const length = this.window[1] - this.window[0];
    if (item.begin >= this.window[0] && item.begin <= this.window[1]) return;
    const begin = Math.min(Math.max(0, item.begin - length / 2), this.size - length);
    this.window = [begin, begin + length];
    this.redraw();
  }

  wheel() {
    if (!d3.event.ctrlKey && document.activeElement !== this.svg.node()) return;
    d3.event.preventDefault();
    this.window = scaledAround(
        this.window, this.size, this.x.invert(pointerIn(this.svg)[0]), d3.event.deltaY < 0 ? 0.7 : 1 / 0.7);
    this.redraw();
  }
}
