// Elements of the page. What is shown comes from a plan that anyone may have made: texts are set as texts,
// never as markup.

// element("p", {class: "note"}, "text" or further elements ...)
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on'))
      made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined)
      made.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : String(child));
  }
  return made;
}

// A place to draw in, which the keyboard can reach.
function chart(container, height, label) {
  const width = Math.max(320, Math.floor(container.clientWidth || 900));
  const svg = d3.select(container)
                  .append('svg')
                  .attr('class', 'chart')
                  .attr('viewBox', `0 0 ${width} ${height}`)
                  .attr('role', 'application')
                  .attr('tabindex', 0)
                  .attr('aria-label', label);
  return {svg, width, height};
}

function legend(container, entries) {
  const list = element('div', {class: 'legend'});
  for (const [name, color] of entries) {
    const key = element('span', {class: 'key'});
    key.style.background = color;
    list.append(element('span', {}, key, name));
  }
  container.append(list);
}

// A choice among names; `changed` gets the index.
function choice(label, names, chosen, changed) {
  const select = element(
      'select', {onchange: () => changed(select.selectedIndex)},
      names.map((name) => element('option', {}, name)));
  select.selectedIndex = chosen;
  return element('label', {}, label, ' ', select);
}

// Runs at most once for each picture that the screen shows.
function oncePerFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

// Where the pointer is, in the chart's own units.
function pointerIn(svg) {
  return d3.mouse(svg.node());
}
