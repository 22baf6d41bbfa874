// Streams over time: what runs when, of a program as predicted, or as it was measured once.

// lanes: [{name, items}]; an item: {program, number, begin, end, wait, launch}, by begin: what runs, what
// waits for other streams, and what the host has not launched yet (predicted alone). Nanoseconds.
function predictedLanes(plan, program, streams) {
  const {instructions, size} = plan.programs[program];
  const lanes = streams.map((name) => ({name, items: []}));
  for (let number = 0; number < size; ++number) {
    const begin = instructions.begin[number], end = instructions.end[number],
          lane = lanes[instructions.stream[number]];
    if (instructions.opcode[number] === opcodes.RELEASE) continue;
    const before = lane.items.length > 0 ? lane.items[lane.items.length - 1].end : 0;
    const ready =
        Math.min(begin, d3.max(instructions.after[number], (earlier) => instructions.end[earlier]) || 0);
    if (ready > before) lane.items.push({program, number, begin: before, end: ready, wait: true});
    const launched = Math.max(before, ready);
    if (begin > launched) lane.items.push({program, number, begin: launched, end: begin, launch: true});
    if (end > begin) lane.items.push({program, number, begin, end});
  }
  return lanes.filter((lane) => lane.items.length > 0);
}

function measuredLanes(plan, chosen, trace, streams) {
  const lanes = streams.map((name) => ({name: `${name}, measured`, items: []}));
  const {program, instruction, wait, begin, end} = trace.events;
  for (let i = 0; i < begin.length; ++i) {
    if (program[i] !== chosen) continue;
    const stream = plan.programs[program[i]].instructions.stream[instruction[i]];
    lanes[stream].items.push(
        {program: program[i], number: instruction[i], begin: begin[i], end: end[i], wait: wait[i] === 1});
  }
  return lanes.filter((lane) => lane.items.length > 0);
}

function endOf(lanes) {
  return d3.max(lanes, (lane) => lane.items[lane.items.length - 1].end) || 1;
}

// The item of a lane that runs at a time, or the next one; undefined behind the last.
function itemAt(lane, time) {
  const index = d3.bisector((item) => item.end).left(lane.items, time);
  return lane.items[index];
}

// Rectangles of a lane by colour, as the data of one path each. Those of one colour that share a pixel are
// one.
function lanePaths(plan, lane, x, top, height, colorOf) {
  const [first, last] = x.domain(), paths = new Map(), open = new Map();
  const emit = (color, from, to) => {
    if (!paths.has(color)) paths.set(color, []);
    paths.get(color).push(`M${from.toFixed(1)},${top}H${Math.max(to, from + 0.5).toFixed(1)}V${
        top + height}H${from.toFixed(1)}Z`);
  };
  for (let i = d3.bisector((item) => item.end).left(lane.items, first); i < lane.items.length; ++i) {
    const item = lane.items[i];
    if (item.begin > last) break;
    const color = colorOf(item), from = x(Math.max(first, item.begin)), to = x(Math.min(last, item.end));
    const run = open.get(color);
    if (run && from - run[1] < 0.6)
      run[1] = Math.max(run[1], to);
    else {
      if (run) emit(color, run[0], run[1]);
      open.set(color, [from, to]);
    }
  }
  for (const [color, [from, to]] of open) emit(color, from, to);
  return paths;
}
