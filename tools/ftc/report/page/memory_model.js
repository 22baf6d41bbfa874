// Memory over a program: what lives at each instruction, and its sum by class.

const memorySpaces = ['device', 'host'];

// live[class][k] bytes at instruction k, of all buffers of the space; total[k]; base: bytes that live all the
// time, by class.
function memoryOver(plan, program, space, classes) {
  const {buffers} = plan, size = Math.max(1, plan.programs[program].size);
  const live = classes.map(() => new Float64Array(size + 1)), base = new Float64Array(classes.length);
  for (let i = 0; i < buffers.bytes.length; ++i) {
    if (buffers.space[i] !== space || buffers.bytes[i] === 0) continue;
    if (buffers.persistent[i]) {
      base[buffers.class[i]] += buffers.bytes[i];
    } else if (buffers.program[i] === program) {
      live[buffers.class[i]][buffers.first[i]] += buffers.bytes[i];
      live[buffers.class[i]][buffers.last[i] + 1] -= buffers.bytes[i];
    }
  }
  const total = new Float64Array(size);
  live.forEach((bytes, kind) => {
    let sum = base[kind];
    for (let k = 0; k < size; ++k) {
      sum += bytes[k];
      bytes[k] = sum;
      total[k] += sum;
    }
  });
  return {size, live, total, base, peak: d3.scan(total, (a, b) => b - a)};
}

// The instructions that stand for the pixels of [begin, end): of those that share one, the one with most
// bytes.
function samples(memory, begin, end, pixels) {
  const first = Math.max(0, Math.floor(begin)), last = Math.min(memory.size, Math.ceil(end));
  const each = Math.max(1, (last - first) / pixels), found = [];
  for (let at = first; at < last; at += each) {
    let most = Math.floor(at);
    for (let k = most; k < Math.min(last, Math.floor(at + each)); ++k)
      if (memory.total[k] > memory.total[most]) most = k;
    found.push([Math.floor(at), most]);
  }
  return found;
}

// Buffers that live at an instruction, the largest first: the first `limit` of them, how many there are, and
// their bytes.
function liveAt(plan, program, space, at, limit) {
  const {buffers, bySize} = plan, first = [];
  let count = 0, bytes = 0;
  for (const i of bySize) {
    if (buffers.bytes[i] === 0) break;
    if (buffers.space[i] !== space) continue;
    if (!buffers.persistent[i] &&
        (buffers.program[i] !== program || buffers.first[i] > at || buffers.last[i] < at))
      continue;
    ++count;
    bytes += buffers.bytes[i];
    if (first.length < limit) first.push(i);
  }
  return {first, count, bytes};
}

// Instructions of a program that touch a buffer: [number, "writes" | "reads" | "reads and writes"].
function touches(plan, program, buffer, limit) {
  const {in : reads, out: writes} = plan.programs[program].instructions, found = [];
  let count = 0;
  for (let k = 0; k < reads.length; ++k) {
    const read = reads[k].includes(buffer), write = writes[k].includes(buffer);
    if (!read && !write) continue;
    ++count;
    if (found.length < limit) found.push([k, read && write ? 'reads and writes' : read ? 'reads' : 'writes']);
  }
  return {found, count};
}
