// Colours of Okabe and Ito, which are told apart with any kind of colour vision; style.css has them.

const palette = {
  of: (index) => `var(--c${index % 8})`,
  memory: (index) => palette.of([0, 2, 1, 4, 5, 3, 7, 6][index % 8]),
  phases: ['init', 'forward', 'recompute', 'backward', 'optimizer'],
  phase: (name) => palette.of([7, 4, 3, 0, 2][Math.max(0, palette.phases.indexOf(name))]),
  wait: 'var(--c5)',
  idle: 'var(--c7)',
  launch: 'var(--c6)',
  limit: (name) => ({
    arithmetic: palette.of(0),
    memory: palette.of(1),
    gather: palette.of(5),
    reduce: palette.of(3),
    h2d: palette.of(4),
    d2h: palette.of(2),
    host_compute: palette.of(6),
    replica: palette.of(6),
    launch: palette.of(7),
    tail: palette.of(7)
  }[name]),
  traffic: {
    all_gather: 'var(--c0)',
    reduce_scatter: 'var(--c1)',
    all_reduce: 'var(--c2)',
    all_to_all: 'var(--c5)',
    h2d: 'var(--c4)',
    d2h: 'var(--c3)'
  },
  choices: {keep: 'var(--c0)', recompute: 'var(--c1)', offload: 'var(--c2)'},
};
