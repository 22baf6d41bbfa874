// The first screen: does it fit, how fast is it, what limits it.

const fitWords = {
  yes: 'it fits',
  tight: 'it hardly fits',
  no: 'it does not fit',
  '-': 'not known'
};

const limitWords = {
  arithmetic: 'arithmetic of kernels',
  memory: 'memory traffic of kernels',
  gather: 'gathering of units',
  reduce: 'reduction of gradients',
  h2d: 'copies from host memory',
  d2h: 'copies to host memory',
  host_compute: 'updates on the host',
  replica: 'sums over replicas',
  launch: 'launching of kernels',
  tail: 'what other streams do at the end',
};

function card(title, figure, figureClass, ...rest) {
  return element(
      'section', {class: 'card'}, element('h3', {}, title),
      element('p', {class: `figure ${figureClass || ''}`}, figure), ...rest);
}

// Parts of a whole beside each other; entries: [name, value, color].
function bar(entries, whole) {
  const made = element('div', {
    class: 'bar',
    role: 'img',
    'aria-label': entries.map(([name, value]) => `${name} ${format.percent(value / whole)}`).join(', ')
  });
  for (const [name, value, color] of entries) {
    const part = element('span', {title: `${name} ${format.percent(value / whole)}`});
    part.style.width = `${Math.max(0, Math.min(100, 100 * value / whole))}%`;
    part.style.background = color;
    made.append(part);
  }
  return made;
}

function fitCard(plan) {
  const {explain} = plan, beside = explain.beside_arena_bytes ? explain.beside_arena_bytes.total : 0;
  const used = explain.arena_bytes + beside, room = plan.target.memory_bytes;
  const words = [
    `arena ${format.bytes(explain.arena_bytes)} a rank`, beside ? `${format.bytes(beside)} beside it` : null,
    explain.host_arena_bytes ? `${format.bytes(explain.host_arena_bytes)} of host memory` : null
  ].filter(Boolean).join(', ');
  return card(
      'Does it fit?', room ? `${fitWords[plan.fit]}` : format.bytes(used), plan.fit,
      room ?
          bar([['arena', explain.arena_bytes, palette.of(0)], ['beside it', beside, palette.of(1)]], room) :
          null,
      element('p', {}, words),
      element(
          'p', {class: 'note'},
          room ? `${format.percent(used / room)} of ${format.bytes(room)} of ${plan.target.name}` :
                 `${plan.target.name} does not say how much memory it has`));
}

// Where the machine was measured: how sure the time of a step is.
function intervalText({seconds_low: low, seconds_high: high}) {
  return high === null ? null : `${format.seconds(low)} and ${format.seconds(high)}`;
}

function speedCard(plan) {
  const {step, mesh, world_size: ranks, assumptions} = plan.explain, interval = intervalText(step);
  return card(
      'How fast?', format.seconds(step.seconds), '',
      interval === null ? null : element('p', {}, `between ${interval}`),
      element(
          'p', {},
          `a step; ${format.whole(step.tokens_per_s_per_rank)} ${plan.counted}/s a rank, ${
              format.whole(step.tokens_per_s_per_rank * ranks)} of all`),
      element(
          'p', {},
          step.mfu === null ? 'MFU not known: the target has no peak' : `MFU ${format.percent(step.mfu)}`),
      element(
          'p', {class: 'note'},
          `simulated on ${plan.target.name}, ${ranks} ranks (replica ${mesh.replica} x shard ${mesh.shard})`),
      assumptions.map((assumption) => element('p', {class: 'note'}, assumption)));
}

function limitCard(plan) {
  const {seconds, largest} = plan.limits, step = plan.explain.step.seconds;
  const parts = Object.entries(seconds).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  const made = card(
      'What limits it?', step > 0 ? format.percent(seconds[largest] / step) : '-', '',
      element('p', {}, `of the step is ${limitWords[largest]}`),
      bar(parts.map(([name, value]) => [limitWords[name], value, palette.limit(name)]), step));
  legend(
      made,
      parts.map(([name, value]) => [`${limitWords[name]} ${format.seconds(value)}`, palette.limit(name)]));
  return made;
}

function drawSummary(container, plan) {
  const {explain} = plan, interval = intervalText(explain.step);
  container.append(element(
      'p', {class: 'note'},
      `${explain.model}, strategy ${explain.strategy}, batch ${explain.batch} x ${explain.seq_len} a rank, ${
          explain.micro_steps} micro-step${explain.micro_steps === 1 ? '' : 's'}, ` +
          `${format.count(explain.parameters)} parameters, device ${explain.device}`));
  container.append(element('div', {class: 'cards'}, fitCard(plan), speedCard(plan), limitCard(plan)));
  tableBehind(container, 'the step', [['what', (row) => row[0]], ['', (row) => row[1], true]], [
    ['time of a step', format.seconds(explain.step.seconds)],
    ...(interval === null ? [] : [['between', interval]]),
    ['exposed communication', format.seconds(explain.step.exposed_seconds)],
    [`${plan.counted}/s of a rank`, format.number(explain.step.tokens_per_s_per_rank)],
    ['MFU', format.percent(explain.step.mfu)],
    ['FLOPs of a rank', format.flops(explain.flops.total)],
    ['of them recomputed', format.flops(explain.flops.recompute)],
    ...Object.entries(plan.limits.seconds).map(([name, value]) => [limitWords[name], format.seconds(value)]),
    ['arena', `${format.count(explain.arena_bytes)} B`],
    ['host arena', `${format.count(explain.host_arena_bytes)} B`],
    ['most bytes live at once', `${format.count(explain.max_live_bytes)} B`],
    ['at', explain.peak || 'all the time'],
  ]);
}
