// Axes that look alike in all charts.

// Bytes are counted in powers of two, so are the steps between ticks; of a logarithm only powers of ten fit
// beside each other.
function ticksOf(scale, count, tickFormat) {
  if (scale.base) {
    const [least, most] = scale.domain().map((value) => Math.log(value) / Math.log(scale.base()));
    const exponents = d3.range(Math.ceil(least - 1e-9), Math.floor(most + 1e-9) + 1),
          each = Math.ceil(exponents.length / count);
    return exponents.filter((exponent) => exponent % each === 0).map((exponent) => scale.base() ** exponent);
  }
  if (tickFormat !== format.bytes) return scale.ticks(count);
  const [least, most] = scale.domain(),
                step = 2 ** Math.max(0, Math.round(Math.log2((most - least) / count)));
  return d3.range(Math.ceil(least / step), Math.floor(most / step) + 1).map((number) => number * step);
}

function axisBottom(svg, scale, y, label, tickFormat, ticks) {
  const axis =
      d3.axisBottom(scale)
          .tickValues(ticksOf(
              scale,
              Math.min(ticks || 8, Math.max(2, Math.floor((scale.range()[1] - scale.range()[0]) / 100))),
              tickFormat))
          .tickSizeOuter(0);
  if (tickFormat) axis.tickFormat(tickFormat);
  const group = svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${y})`).call(axis);
  if (label)
    group.append('text').attr('x', scale.range()[1]).attr('y', 30).attr('text-anchor', 'end').text(label);
  return group;
}

function axisLeft(svg, scale, x, tickFormat, ticks, gridTo) {
  const values = ticksOf(scale, ticks || 5, tickFormat);
  const axis = d3.axisLeft(scale).tickValues(values).tickSizeOuter(0);
  if (tickFormat) axis.tickFormat(tickFormat);
  const group = svg.append('g').attr('class', 'axis').attr('transform', `translate(${x},0)`).call(axis);
  if (gridTo) {
    svg.append('g')
        .attr('class', 'grid')
        .attr('transform', `translate(${x},0)`)
        .call(d3.axisLeft(scale).tickValues(values).tickSize(-(gridTo - x)).tickFormat(''))
        .select('.domain')
        .remove();
  }
  return group;
}

// A level that matters, and what it is.
function limitLine(svg, left, right, y, words) {
  svg.append('line').attr('class', 'limit').attr('x1', left).attr('x2', right).attr('y1', y).attr('y2', y);
  svg.append('text').attr('x', right - 4).attr('y', y - 4).attr('text-anchor', 'end').text(words);
}

// What a row of bars is about; a long name is cut, and whole under the pointer.
const longestLabel = 38;
function rowLabel(svg, x, y, name) {
  const cut = name.length > longestLabel ? `${name.slice(0, longestLabel - 1)}…` : name;
  svg.append('text')
      .attr('x', x)
      .attr('y', y)
      .attr('text-anchor', 'end')
      .text(cut)
      .append('title')
      .text(name);
}

function rectangle(svg, x, y, width, height, color) {
  return svg.append('rect')
      .attr('x', x)
      .attr('y', y)
      .attr('width', width)
      .attr('height', height)
      .style('fill', color);
}

// Keys that are the browser's own: Alt and left goes back, Ctrl and minus shrinks the page.
function ofBrowser({ctrlKey, altKey, metaKey}) {
  return ctrlKey || altKey || metaKey;
}

// Where keys lead from place `at` of `size`: arrows by one, with Shift by a twentieth of all, Home and End to
// the ends. Nothing for other keys.
function moved(at, size, {key, shiftKey}) {
  const step = shiftKey ? Math.max(1, Math.round(size / 20)) : 1;
  const to = {
    ArrowLeft: at - step,
    ArrowUp: at - step,
    ArrowRight: at + step,
    ArrowDown: at + step,
    Home: 0,
    End: size - 1
  }[key];
  return to === undefined ? undefined : Math.min(size - 1, Math.max(0, to));
}

// What keys do to a window [begin, end] of [0, size]: "+" and "-" zoom around `center`, "0" shows all.
// Nothing for other keys.
function zoomed(window, size, center, key) {
  const factor = {'+': 0.5, '=': 0.5, '-': 2}[key];
  if (key === '0') return [0, size];
  if (!factor) return null;
  return scaledAround(window, size, center, factor);
}

function scaledAround([begin, end], size, center, factor) {
  const length = Math.min(size, Math.max(size / 1e6, (end - begin) * factor));
  const part = end > begin ? (center - begin) / (end - begin) : 0.5;
  const first = Math.min(Math.max(0, center - part * length), size - length);
  return [first, first + length];
}
