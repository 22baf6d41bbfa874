// Numbers for people, as ftc explain writes them: three digits and a prefix.

function withPrefix(value, base, prefixes, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '-';
  let scaled = Math.abs(value), prefix = 0;
  while (scaled >= 999.5 && prefix + 1 < prefixes.length) {
    scaled /= base;
    ++prefix;
  }
  const digits = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  const text = prefix === 0 && Number.isInteger(value) ? String(Math.abs(value)) : scaled.toFixed(digits);
  return `${value < 0 ? '-' : ''}${text} ${prefixes[prefix]}${unit}`;
}

const format = {
  bytes: (value) => withPrefix(value, 1024, ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'], 'B'),
  bytesPerSecond: (value) => withPrefix(value, 1000, ['', 'k', 'M', 'G', 'T', 'P'], 'B/s'),
  flops: (value) => withPrefix(value, 1000, ['', 'K', 'M', 'G', 'T', 'P', 'E'], 'FLOP'),
  flopsPerSecond: (value) => withPrefix(value, 1000, ['', 'K', 'M', 'G', 'T', 'P', 'E'], 'FLOP/s'),
  seconds: (value) => {
    if (value === null || value === undefined) return '-';
    if (value === 0) return '0 s';
    const size = Math.abs(value);
    if (size >= 0.9995) return withPrefix(value, 1000, [''], 's');
    if (size >= 0.9995e-3) return withPrefix(value * 1e3, 1000, [''], 'ms');
    return size >= 0.9995e-6 ? withPrefix(value * 1e6, 1000, [''], 'us') :
                               withPrefix(value * 1e9, 1000, [''], 'ns');
  },
  nanoseconds: (value) => format.seconds(value / 1e9),
  percent: (value) => (value === null || value === undefined ? '-' : `${(value * 100).toFixed(1)}%`),
  count: (value) => (value === null || value === undefined ? '-' : d3.format(',')(value)),
  number: (value) => (value === null || value === undefined ? '-' : d3.format(',.5~g')(value)),
  whole: (value) => (value === null || value === undefined ? '-' : d3.format(',.0f')(value)),
  text: (value) => (value === null || value === undefined || value === '' ? '-' : String(value)),
};
