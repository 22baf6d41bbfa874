// Plans side by side: a column each.

const comparedRows = [
  ['model', (plan) => plan.explain.model],
  ['strategy', (plan) => plan.explain.strategy],
  ['ranks, replica x shard', (plan) => `${plan.explain.mesh.replica} x ${plan.explain.mesh.shard}`],
  ['batch x tokens a rank', (plan) => `${plan.explain.batch} x ${plan.explain.seq_len}`],
  ['micro-steps', (plan) => plan.explain.micro_steps],
  ['simulated on', (plan) => plan.target.name],
  ['time of a step', (plan) => format.seconds(plan.explain.step.seconds)],
  ['of it exposed', (plan) => format.seconds(plan.explain.step.exposed_seconds)],
  ['rate of a rank', (plan) => `${format.whole(plan.explain.step.tokens_per_s_per_rank)} ${plan.counted}/s`],
  ['MFU', (plan) => format.percent(plan.explain.step.mfu)],
  ['fits', (plan) => fitWords[plan.fit]],
  ['arena', (plan) => format.bytes(plan.explain.arena_bytes)],
  ['host arena', (plan) => format.bytes(plan.explain.host_arena_bytes)],
  ['parameters at rest', (plan) => format.bytes(plan.explain.at_rest.parameters)],
  ['gradients at rest', (plan) => format.bytes(plan.explain.at_rest.gradients)],
  ['optimizer state at rest', (plan) => format.bytes(plan.explain.at_rest.optimizer_state)],
  ['activations at the peak', (plan) => format.bytes(plan.explain.bytes.activations)],
  ['sent by a rank in a step', (plan) => format.bytes(plan.explain.traffic.total_bytes)],
  ['FLOPs of a rank', (plan) => format.flops(plan.explain.flops.total)],
  ['of them recomputed', (plan) => format.flops(plan.explain.flops.recompute)],
  ['what limits it', (plan) => limitWords[plan.limits.largest]],
];

function drawCompare(container, plans, leftOut) {
  container.append(element(
      'table', {class: 'compare'},
      element(
          'thead', {},
          element(
              'tr', {}, element('th', {}), plans.map((plan) => element('th', {scope: 'col'}, plan.title)))),
      element(
          'tbody', {},
          comparedRows.map(
              ([name, text]) => element(
                  'tr', {}, element('th', {scope: 'row'}, name),
                  plans.map((plan) => element('td', {}, text(plan))))))));
  for (const one of leftOut)
    container.append(element('p', {class: 'note'}, `Left out: ${one.name}: ${one.why}`));
}
