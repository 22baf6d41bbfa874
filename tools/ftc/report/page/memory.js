// Memory over the step, stacked by class. Pointer and arrow keys choose an instruction; a click or Enter
// follows a buffer.

class MemoryChart {
  constructor(container, plan, classes, most) {
    Object.assign(this, {plan, classes, most, container});
    this.program = usualProgram(plan);
    this.space = 0;
    this.followed = -1;
    this.margin = {left: 70, right: 26, top: 12, bottom: 36};
    this.controls = element('div', {class: 'controls'});
    container.append(this.controls);
    this.frame = element('div', {});
    container.append(this.frame);
    legend(container, this.stack().map((kind) => [classes[kind].name, palette.memory(kind)]));
    this.panel = new MemoryPanel(container, plan, classes, (buffer) => this.follow(buffer));
    this.addControls();
    this.behind = element('div');
    container.append(this.behind);
    this.load();
  }

  // Classes from the bottom up: what lies there all the time first.
  stack() {
    return [0, 1, 2, 4, 5, 3, 6, 7].filter((kind) => kind < this.classes.length);
  }

  addControls() {
    const {plan} = this;
    this.controls.append(choice(
        'program', plan.programs.map((one) => `${one.name} (${one.runs} a step)`), this.program, (index) => {
          this.program = index;
          this.load();
        }));
    if (plan.explain.host_arena_bytes > 0)
      this.controls.append(choice('memory', memorySpaces, this.space, (index) => {
        this.space = index;
        this.load();
      }));
    this.controls.append(element('span', {class: 'note'}, 'wheel or + and - zoom, 0 shows all, arrows move'));
  }

  load() {
    this.memory = memoryOver(this.plan, this.program, this.space, this.classes);
    this.window = [0, this.memory.size];
    this.at = this.memory.peak;
    this.draw();
    this.show();
    const {memory, plan, program} = this, kinds = this.stack();
    this.behind.replaceChildren();
    tableBehind(
        this.behind, `bytes by class at each instruction of ${plan.programs[program].name}`,
        [
          ['instruction', (k) => instructionText(plan, program, k)],
          ['all', (k) => format.count(memory.total[k]), true],
          ...kinds.map((kind) => [this.classes[kind].name, (k) => format.count(memory.live[kind][k]), true])
        ],
        memory.size, (k) => k);
    tableBehind(
        this.behind, 'all buffers, the largest first',
        [
          ['buffer', (i) => bufferText(plan, i)],
          ['layer', (i) => format.text(plan.text(plan.buffers.layer[i]))],
          ['class', (i) => this.classes[plan.buffers.class[i]].name],
          ['memory', (i) => memorySpaces[plan.buffers.space[i]]],
          ['bytes', (i) => format.count(plan.buffers.bytes[i]), true], ['lives', (i) => livesText(plan, i)]
        ],
        plan.bySize);
  }

  draw() {
    const {margin, memory, plan} = this;
    this.frame.replaceChildren();
    Object.assign(this, chart(this.frame, 320, `Memory over ${plan.programs[this.program].name}`));
    const right = this.width - margin.right, bottom = this.height - margin.bottom;
    this.x = d3.scaleLinear().range([margin.left, right]);
    this.y = d3.scaleLinear()
                 .domain([0, Math.max(1, this.space === 0 ? this.most : d3.max(memory.total)) * 1.03])
                 .range([bottom, margin.top]);
    this.areas = this.svg.append('g');
    this.axis = this.svg.append('g');
    axisLeft(this.svg, this.y, margin.left, format.bytes, 5, right);
    this.limits();
    this.marks = this.svg.append('g');
    this.svg.on('mousemove', () => this.point())
        .on('click', () => this.click())
        .on('keydown', () => this.key())
        .on('wheel', () => this.wheel());
    this.showLater = oncePerFrame(() => this.show());
    this.redraw();
  }

  limits() {
    const room = this.plan.target.memory_bytes;
    const lines = this.space === 0 ?
        [[this.plan.explain.arena_bytes, 'arena'], [room, `memory of ${this.plan.target.name}`]] :
        [[this.plan.explain.host_arena_bytes, 'host arena']];
    for (const [bytes, name] of lines) {
      if (!bytes || bytes > this.y.domain()[1]) continue;
      limitLine(
          this.svg, this.margin.left, this.width - this.margin.right, this.y(bytes),
          `${name} ${format.bytes(bytes)}`);
    }
  }

  redraw() {
    const {memory, x, y, margin} = this;
    x.domain(this.window);
    const found = samples(memory, this.window[0], this.window[1], this.width - margin.left - margin.right);
    const below = new Float64Array(found.length);
    this.areas.selectAll('*').remove();
    for (const kind of this.stack()) {
      const live = memory.live[kind], there = [], back = [];
      found.forEach(([from, k], i) => {
        const to = i + 1 < found.length ? found[i + 1][0] : Math.min(memory.size, this.window[1]);
        const low = below[i], high = low + live[k], left = x(Math.max(from, this.window[0])).toFixed(1),
              end = x(to).toFixed(1);
        there.push(`${left},${y(high).toFixed(1)}L${end},${y(high).toFixed(1)}`);
        back.push(`${end},${y(low).toFixed(1)}L${left},${y(low).toFixed(1)}`);
        below[i] = high;
      });
      this.areas.append('path')
          .attr('class', `area-${this.classes[kind].key}`)
          .attr('d', `M${there.join('L')}L${back.reverse().join('L')}Z`)
          .style('fill', palette.memory(kind));
    }
    this.axis.selectAll('*').remove();
    axisBottom(this.axis, x, this.height - margin.bottom, 'instruction', d3.format(',d'));
    this.mark();
  }

  move(at) {
    this.at = Math.min(this.memory.size - 1, Math.max(0, Math.floor(at)));
    this.showLater();
  }
  point() {
    this.move(this.x.invert(pointerIn(this.svg)[0]));
  }

  show() {
    this.mark();
    if (this.plan.programs[this.program].size > 0)
      this.panel.showLive(this.program, this.space, this.at, this.followed);
  }

  // The cursor, and the followed buffer.
  mark() {
    const {x, marks, margin} = this;
    marks.selectAll('*').remove();
    this.markFollowed();
    const middle = x(this.at + 0.5), top = margin.top, bottom = this.height - margin.bottom;
    if (middle >= margin.left && middle <= this.width - margin.right)
      marks.append('line')
          .attr('class', 'cursor')
          .attr('x1', middle)
          .attr('x2', middle)
          .attr('y1', top)
          .attr('y2', bottom);
  }

  // When the followed buffer lives, and its bytes as if they lay on top of its class.
  markFollowed() {
    const {x, y, marks, margin, memory, followed, window} = this, {buffers} = this.plan;
    if (followed < 0 || buffers.space[followed] !== this.space) return;
    const always = buffers.persistent[followed];
    if (!always && buffers.program[followed] !== this.program) return;
    const [first, last] = always ? [0, memory.size - 1] : [buffers.first[followed], buffers.last[followed]];
    const begin = x(Math.max(first, window[0])), end = x(Math.min(last + 1, window[1]));
    if (end < begin) return;
    const kinds = this.stack(), below = kinds.slice(0, kinds.indexOf(buffers.class[followed]) + 1);
    const found = samples(memory, Math.max(first, window[0]), Math.min(last + 1, window[1]), end - begin);
    const parts = found.map(([from, k], i) => {
      const to = i + 1 < found.length ? found[i + 1][0] : Math.min(last + 1, window[1]);
      const top = d3.sum(below, (kind) => memory.live[kind][k]), left = x(Math.max(from, window[0]));
      return `M${left},${y(top)}H${x(to)}V${y(top - buffers.bytes[followed])}H${left}Z`;
    });
    marks.append('path').attr('class', 'followed-bytes').attr('d', parts.join(''));
    rectangle(
        marks, begin, margin.top, Math.max(1, end - begin), this.height - margin.top - margin.bottom, 'none')
        .attr('class', 'followed');
  }

  follow(buffer) {
    this.followed = buffer;
    this.panel.showFollowed(buffer);
    this.show();
  }

  // The largest buffer of the class under the pointer.
  click() {
    const [across, up] = pointerIn(this.svg);
    this.at = Math.min(this.memory.size - 1, Math.max(0, Math.floor(this.x.invert(across))));
    const height = this.y.invert(up);
    let sum = 0, kind = -1;
    for (const one of this.stack()) {
      sum += this.memory.live[one][this.at];
      if (kind < 0 && height >= 0 && height < sum) kind = one;
    }
    const {first} = liveAt(this.plan, this.program, this.space, this.at, Infinity);
    const found = first.find((buffer) => this.plan.buffers.class[buffer] === kind);
    this.follow(found === undefined ? -1 : found);
  }

  key() {
    if (ofBrowser(d3.event)) return;
    const {key, shiftKey} = d3.event,
                step = shiftKey ? Math.max(1, Math.round((this.window[1] - this.window[0]) / 20)) : 1;
    const moves = {ArrowLeft: this.at - step, ArrowRight: this.at + step, Home: 0, End: this.memory.size - 1};
    const window = zoomed(this.window, this.memory.size, this.at + 0.5, key);
    if (key in moves)
      this.move(moves[key]);
    else if (window) {
      this.window = window;
      this.redraw();
    } else if (key === 'Enter')
      this.follow(liveAt(this.plan, this.program, this.space, this.at, 1).first[0] ?? -1);
    else if (key === 'Escape')
      this.follow(-1);
    else
      return;
    d3.event.preventDefault();
  }

  wheel() {
    if (!d3.event.ctrlKey && document.activeElement !== this.svg.node()) return;  // the page scrolls
    d3.event.preventDefault();
    this.window = scaledAround(
        this.window, this.memory.size, this.x.invert(pointerIn(this.svg)[0]),
        d3.event.deltaY < 0 ? 0.7 : 1 / 0.7);
    this.redraw();
  }
}
