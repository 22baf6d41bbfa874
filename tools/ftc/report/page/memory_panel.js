// Beside the picture of memory: the buffers that live at an instruction, and the one that is followed.

const liveShown = 60;

function livesText(plan, buffer) {
  const {buffers} = plan;
  if (buffers.persistent[buffer]) return 'all the time';
  const program = buffers.program[buffer];
  return `${buffers.first[buffer]} to ${buffers.last[buffer]} of ${plan.programs[program].name}`;
}

class MemoryPanel {
  // `follow` is called with a buffer, or -1 for none.
  constructor(container, plan, classes, follow) {
    Object.assign(this, {plan, classes, follow});
    // What is read aloud has to stay the same element.
    this.heading = element('h4', {role: 'status', 'aria-live': 'polite'});
    this.list = element('div', {class: 'live'});
    this.live = element('div', {class: 'panel live-panel', 'aria-live': 'off'}, this.heading, this.list);
    this.followed = element('div', {class: 'panel followed-panel', 'aria-live': 'polite'});
    container.append(this.live, this.followed);
    this.showFollowed(-1);
  }

  showLive(program, space, at, chosen) {
    const {plan, classes} = this, {buffers} = plan;
    const {first, count, bytes} = liveAt(plan, program, space, at, liveShown);
    const rows = first.map(
        (buffer) => element(
            'tr',
            {class: `row-button ${buffer === chosen ? 'followed' : ''}`, onclick: () => this.follow(buffer)},
            element(
                'td', {},
                element('button', {type: 'button', 'data-buffer': buffer}, bufferText(plan, buffer))),
            element('td', {}, plan.text(buffers.layer[buffer]) || '-'),
            element('td', {}, classes[buffers.class[buffer]].name),
            element('td', {class: 'number'}, format.bytes(buffers.bytes[buffer])),
            element('td', {}, livesText(plan, buffer))));
    const head = ['buffer', 'layer', 'class', 'bytes', 'lives from instruction'].map(
        (title, i) => element('th', {scope: 'col', class: i === 3 ? 'number' : null}, title));
    const {activeElement} = document,
          focused = this.live.contains(activeElement) ? activeElement.dataset.buffer : undefined;
    const heading = `At instruction ${instructionText(plan, program, at)}: ${
        format.count(count)} buffers live, ${format.bytes(bytes)} (${format.count(bytes)} B)`;
    if (this.heading.textContent !== heading) this.heading.textContent = heading;
    const rest = `and ${format.count(count - first.length)} smaller ones`;
    this.list.replaceChildren(
        element('table', {}, element('thead', {}, element('tr', {}, head)), element('tbody', {}, rows)),
        ...(count > first.length ? [element('p', {class: 'note'}, rest)] : []));
    if (focused !== undefined) this.live.querySelector(`[data-buffer="${focused}"]`)?.focus();
  }

  showFollowed(buffer) {
    const {plan, classes} = this;
    if (buffer < 0) {
      this.followed.replaceChildren(element(
          'p', {class: 'note'},
          'A click on the picture or on a name follows a buffer; Escape lets go of it.'));
      return;
    }
    const {buffers} = plan, rows = [];
    const programs = buffers.persistent[buffer] ? d3.range(plan.programs.length) : [buffers.program[buffer]];
    for (const program of programs) {
      const {found, count} = touches(plan, program, buffer, 40);
      for (const [number, how] of found)
        rows.push(element(
            'tr', {}, element('td', {}, how), element('td', {}, plan.programs[program].name),
            element('td', {}, instructionText(plan, program, number))));
      if (count > found.length)
        rows.push(element(
            'tr', {}, element('td', {}), element('td', {}),
            element('td', {}, `and ${format.count(count - found.length)} more`)));
    }
    this.followed.replaceChildren(
        element('h4', {}, `Followed: ${bufferText(plan, buffer)}`),
        element(
            'p', {},
            `${classes[buffers.class[buffer]].name}, layer ${plan.text(buffers.layer[buffer]) || '-'}, ${
                format.count(buffers.bytes[buffer])} B, ` +
                `lives ${livesText(plan, buffer)}, at ${format.count(buffers.offset[buffer])} of the ${
                    memorySpaces[buffers.space[buffer]]} arena`),
        element('div', {class: 'live'}, element('table', {}, element('tbody', {}, rows))),
        element('button', {type: 'button', onclick: () => this.follow(-1)}, 'let go'));
  }
}
