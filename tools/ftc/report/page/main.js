// The page: a section for each question, a panel for each plan in it. What is not on the first screen is
// drawn when it comes near.

const report = readDocument();

function addSection(id, title) {
  const container = element('section', {id, 'aria-label': title}, element('h2', {}, title));
  document.getElementById('main').append(container);
  document.getElementById('sections').append(element('a', {href: `#${id}`}, title));
  return container;
}

// `draw` fills a panel of each plan, once, when the reader comes near.
const undrawn = new Map();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries)
    if (entry.isIntersecting) drawNow(entry.target);
}, {rootMargin: '600px'});

function drawNow(place) {
  const draw = undrawn.get(place);
  if (!draw) return;
  undrawn.delete(place);
  near.unobserve(place);
  place.style.minHeight = '';
  draw();
  place.dataset.drawn = String(Math.round(performance.now()));
}

function later(place, height, draw) {
  place.style.minHeight = `${height}px`;
  undrawn.set(place, draw);
  near.observe(place);
}

function addPlans(id, title, height, draw) {
  const container = addSection(id, title), panels = element('div', {class: 'plans'});
  container.append(panels);
  report.plans.forEach((plan, index) => {
    const panel = element('div', {'data-plan': index});
    if (report.plans.length > 1) panel.append(element('h3', {}, plan.title));
    panels.append(panel);
    later(panel, height, () => draw(panel, plan));
  });
}

// Each click shows the other one; until the first the page is as the system asks for.
function addTheme() {
  const {dataset} = document.documentElement;
  document.getElementById('theme').addEventListener('click', () => {
    const system = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    dataset.theme = (dataset.theme || system) === 'dark' ? 'light' : 'dark';
  });
}

function begin() {
  const {plans, run, trace} = report, first = plans[0],
                     titles = plans.map((plan) => plan.title).join(' and ');
  document.title = `ft report: ${titles}`;
  document.getElementById('title').textContent = titles;
  document.getElementById('subtitle').textContent = plans.length === 1 ?
      `${first.explain.model}, ${first.explain.strategy}, ${first.explain.world_size} ranks on ${
          first.target.name}` :
      'side by side';
  document.getElementById('producer').textContent = `Written by ftc report; the plan by ${
      report.producer}. All times are estimates on the target but those that are called measured.`;
  addTheme();
  const most = d3.max(plans, (plan) => plan.explain.arena_bytes);
  addPlans('summary', 'Summary', 0, drawSummary);
  for (const place of [...undrawn.keys()]) drawNow(place);
  if (plans.length > 1) drawCompare(addSection('compare', 'Side by side'), plans, report.left_out);
  addPlans('memory', 'Memory', 760, (panel, plan) => {
    panel.chart = new MemoryChart(panel, plan, report.classes, most);
  });
  addPlans('time', 'Time line', 480, (panel, plan) => {
    panel.chart = new Timeline(panel, plan, report.streams, plan === first ? trace : null);
  });
  addPlans('traffic', 'Units and traffic', 300, drawTraffic);
  addPlans('kernels', 'Kernels', 520, (panel, plan) => {
    panel.chart = new Roofline(panel, plan);
  });
  addPlans('recomputation', 'Recomputation', 300, drawRecomputation);
  addPlans('scaling', 'Scaling', 320, drawScaling);
  for (const [id, title, data, draw] of [
           ['run', 'Run', run, drawRun], ['measured', 'Predicted and measured', trace, drawMeasured]]) {
    if (!data) continue;
    const container = addSection(id, title), panel = element('div');
    container.append(panel);
    later(panel, 420, () => draw(panel, data));
  }
  window.addEventListener('beforeprint', () => {
    for (const place of [...undrawn.keys()]) drawNow(place);
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

begin();
