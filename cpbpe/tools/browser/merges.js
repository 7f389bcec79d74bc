'use strict';
// How a piece is built, the merges of a text one by one, samples, and the search.

// --- The tree of a piece -------------------------------------------------------------------------------------------

view.node = (model, [text, id, , children, order]) => {
  const label = view.element('span', 'label', null, view.piece(text));
  if (id !== null) {
    const about = order ? `${id} · ${view.score(model, id)}` : `id ${id}`;
    label.append(view.element('span', 'quiet', null, about));
  }
  if (order) label.append(view.element('span', 'quiet', null, `merge ${order}`));
  const node = view.element('div', children.length ? 'node' : 'node leaf', null, label);
  if (children.length) {
    node.append(view.element('div', 'children', null, ...children.map((child) => view.node(model, child))));
  }
  return node;
};

view.openTree = (model, id) => {
  const dialog = view.by('tree');
  const answer = { error: 'not here yet' };
  const title = view.by('tree-title');
  const note = view.by('tree-note');
  view.by('tree-nodes').replaceChildren();
  if (answer.error) {
    title.replaceChildren(`Id ${id}`);
    note.textContent = answer.error;
  } else {
    const [piece, type] = answer.piece;
    title.replaceChildren(view.piece(piece));
    const says = answer.note || (answer.reachable ? '' : 'No text yields it.');
    const several = answer.roots.length > 1 ? ` It ends as ${answer.roots.length} symbols.` : '';
    note.textContent = `id ${id} · ${type} · ${view.score(model, id)}. ${says}${several}`;
    view.by('tree-nodes').replaceChildren(...answer.roots.map((root) => view.node(model, root)));
  }
  if (!dialog.open) dialog.showModal();
};

// --- The merges of a text --------------------------------------------------------------------------------------

view.Replay = class {
  constructor() {
    this.slider = view.by('step');
    this.timer = 0;
    this.slider.addEventListener('input', () => this.draw());
    view.by('back').addEventListener('click', () => this.move(-1));
    view.by('forward').addEventListener('click', () => this.move(1));
    view.by('play').addEventListener('click', () => (this.timer ? this.stop() : this.start()));
  }

  set(model) {
    const answer = { error: 'not here yet' };
    this.stop();
    this.model = model;
    this.answer = answer.error ? null : answer;
    const last = this.answer ? answer.steps.length : 0;
    const before = Math.min(Number(this.slider.value), last);
    this.slider.max = String(last);
    this.slider.value = String(before);
    for (const id of ['step', 'back', 'forward', 'play']) view.by(id).disabled = !this.answer;
    this.draw();
    if (answer.error) view.by('why').textContent = answer.error;
  }

  move(by) {
    this.slider.value = String(Number(this.slider.value) + by);
    this.draw();
  }

  start() {
    if (Number(this.slider.value) >= Number(this.slider.max)) this.slider.value = '0';
    view.by('play').textContent = 'Pause';
    this.draw();
    this.timer = setInterval(() => {
      this.move(1);
      if (Number(this.slider.value) >= Number(this.slider.max)) this.stop();
    }, 700);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    view.by('play').textContent = 'Play';
  }

  draw() {
    const [why, list] = [view.by('why'), view.by('symbols')];
    list.replaceChildren();
    why.textContent = '';
    view.by('place').textContent = '';
    if (!this.answer) return;
    // 1. The symbols before this step.
    const { begin, steps, ids } = this.answer;
    const place = Number(this.slider.value);
    const symbols = [...begin];
    const walls = new Set(this.answer.walls);
    let borders = symbols.map((_, at) => walls.has(at));
    for (const step of steps.slice(0, place)) {
      symbols.splice(step.begin, step.end - step.begin, ...step.made);
      const first = borders[step.begin];
      borders.splice(step.begin, step.end - step.begin, ...step.made.map((_, at) => at === 0 && first));
    }
    // 2. The symbols that this step changes, and the reason.
    const step = steps[place];
    this.slider.setAttribute('aria-valuetext', step ? `${place + 1} of ${steps.length}: ${step.why}` : 'the end');
    view.by('place').textContent = `${place} of ${steps.length}`;
    symbols.forEach((symbol, at) => {
      const chosen = step && at >= step.begin && at < step.end;
      const made = view.piece(symbol, chosen ? 'symbol chosen' : 'symbol');
      if (borders[at]) list.append(view.element('span', 'wall', null, '|'));
      list.append(made);
    });
    if (!step) {
      why.textContent = ids.length ? `Nothing merges any more. The ids are ${ids.join(', ')}` : 'There is no text.';
      return;
    }
    const names = { merge: 'Merge', split: 'Split', unknown: 'Unknown', whole: 'Whole' };
    why.append(`${names[step.kind] || step.kind} ${place + 1}: `);
    view.append(why, step.why, false, 'none');
    list.querySelector('.chosen')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
};

// --- Samples -----------------------------------------------------------------------------------------------------

view.showSamples = (model, text, options, alpha, seed) => {
  const samples = cpbpe.samples(model, text, options, alpha, seed);
  const ways = new Set(samples.map(({ ids }) => ids.join())).size;
  view.by('sampled').textContent = `${view.count(samples.length, 'sample')}, ${ways} of them different`;
  const row = ({ seed: own, ids }) => {
    const symbols = ids.map((id) => view.piece(model.textOf(id), 'symbol'));
    const title = view.element('span', 'quiet', null, `seed ${own} · ${view.count(ids.length, 'token')}`);
    return view.element('li', '', null, title, view.element('div', 'symbols', null, ...symbols));
  };
  view.by('rows').replaceChildren(...samples.map(row));
};

// --- The search ----------------------------------------------------------------------------------------------------

const LISTED = 200; // pieces

view.showFound = (model, wanted) => {
  const found = cpbpe.search(model, wanted);
  const shown = found.length > LISTED ? `; the ${LISTED} shortest are shown` : '';
  view.by('found').textContent = wanted ? `${view.count(found.length, 'piece')}${shown}` : '';
  const row = (id) => {
    const button = view.element('button', 'found', { type: 'button' }, view.piece(model.textOf(id)));
    button.append(view.element('span', 'quiet', null, `${id} · ${model.typeOf(id)} · ${view.score(model, id)}`));
    button.addEventListener('click', () => view.openTree(model, id));
    return view.element('li', '', null, button);
  };
  view.by('pieces').replaceChildren(...found.slice(0, LISTED).map(row));
};
