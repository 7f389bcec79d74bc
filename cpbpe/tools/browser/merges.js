'use strict';
// How a piece is built, the merges of a text one by one, samples, and the search.

// --- Symbols and sentences -------------------------------------------------------------------------------------------

// A symbol, which is bytes. If it holds a part of a character, it is drawn as its bytes.
view.symbol = (bytes, className = 'piece') => {
  const text = cpbpe.text(bytes);
  const [, byte] = /^<0x([0-9A-F]{2})>$/.exec(text) ?? []; // the name of a piece for a byte
  if (!byte && !text.includes('\ufffd')) return view.piece(text, className);
  return view.element('span', `${className} bytes`, null, byte ?? view.hex(bytes));
};

// A sentence from `steps.js`: texts, symbols as chips, and names of models.
view.sentence = (parts) =>
  parts.map((part) => {
    if (typeof part === 'string') return part;
    return part.name === undefined ? view.symbol(part, 'symbol') : view.element('bdi', 'model-name', null, part.name);
  });

// --- Trees -----------------------------------------------------------------------------------------------------------

// A node of a tree: a symbol above those that it was made of. `marked`: the numbers of the steps that are highlighted.
view.node = (model, { symbol, parts, step }, marked = []) => {
  const text = cpbpe.text(symbol);
  const id = model.find(symbol) ?? model.special.get(text) ?? model.plain.get(text) ?? null;
  const label = view.element('span', marked.includes(step) ? 'label chosen' : 'label', null, view.symbol(symbol));
  const facts = id === null ? 'not a piece' : step ? `${id} · ${view.score(model, id)}` : `id ${id}`;
  label.append(view.element('span', 'quiet', null, facts));
  if (step) label.append(view.element('span', 'quiet', null, `step ${step}`));
  const children = parts.map((part) => view.node(model, part, marked));
  const below = children.length ? [view.element('div', 'children', null, ...children)] : [];
  return view.element('div', children.length ? 'node' : 'node leaf', null, label, ...below);
};

// Put trees into an element, which must be on the page. Wide ones are drawn smaller, as long as they can be read, and
// then scroll.
view.plant = (parent, nodes) => {
  parent.style.zoom = 1;
  parent.replaceChildren(...nodes);
  const [room, width] = [parent.clientWidth, parent.scrollWidth];
  if (width > room) parent.style.zoom = Math.max(0.7, (0.97 * room) / width);
};

// Open the dialog for trees. The title is a list of texts and elements.
view.openDialog = (title, ...notes) => {
  view.by('tree-title').replaceChildren(...title);
  view.by('tree-note').replaceChildren(...notes);
  view.by('tree-nodes').replaceChildren();
  if (!view.by('tree').open) view.by('tree').showModal();
};

view.openTree = (model, id) => {
  const { roots, note } = cpbpe.tree(model, id);
  const about = [`id ${id}`, model.typeOf(id), view.score(model, id)];
  view.openDialog([view.symbol(model.bytesOf(id))], `${about.join(' · ')}. `, ...view.sentence(note));
  view.plant(view.by('tree-nodes'), roots.map((root) => view.node(model, root)));
};

// Why the models cut a span of the text differently: the reason, and what each of them does there.
view.openWhy = (begin, end) => {
  const { columns, text } = view.state;
  let answer;
  try {
    answer = cpbpe.why(columns, text, begin, end, view.options());
  } catch (error) {
    view.openDialog(['Why different?'], error.message);
    return;
  }
  const part = view.piece(Array.from(text).slice(answer.begin, answer.end).join(''), 'symbol');
  const alike = answer.sentences.length ? [] : ['They cut it alike; at most, the ids differ.'];
  const said = answer.sentences.map((parts) => view.element('span', 'reason', null, ...view.sentence(parts)));
  view.openDialog(['Why is ', part, ' cut differently?'], ...said, ...alike);
  showSides(answer.sides, answer.sides.map(({ model }) => model.name));
};

// What several models make of a text, or one model of several texts, side by side in the dialog.
const showSides = (sides, titles) => {
  const forests = sides.map(({ model, steps, roots, marked }, number) => {
    const trees = view.element('div', 'forest', null);
    const title = view.element('h3', '', null, view.element('bdi', '', null, titles[number]));
    const list = view.element('ol', 'steps');
    steps.forEach((step, at) => {
      const row = view.element('li', marked.includes(at + 1) ? 'marked' : '', null);
      row.append(...view.sentence(cpbpe.explained(model, step)));
      list.append(row);
    });
    const none = steps.length ? [] : [view.element('p', 'quiet', null, 'Nothing merges.')];
    const side = view.element('section', 'side', null, title, trees, list, ...none);
    return { trees, side, nodes: () => roots.map((root) => view.node(model, root, marked)) };
  });
  view.by('tree-nodes').style.zoom = 1;
  view.by('tree-nodes').replaceChildren(...forests.map(({ side }) => side));
  for (const { trees, nodes } of forests) view.plant(trees, nodes());
};

// The tokens of two texts that one model makes, and why it cuts what they share differently.
view.showTwo = (model, texts, options) => {
  const [about, button] = [view.by('compared'), view.by('two-why')];
  button.hidden = true;
  view.by('pair').replaceChildren();
  about.textContent = texts[0] && texts[1] ? '' : 'Type two texts: one above, the other here.';
  if (about.textContent) return;
  let answer;
  try {
    answer = cpbpe.whyTexts(model, texts, options);
  } catch (error) {
    about.textContent = error.message;
    return;
  }
  const counts = answer.counts.map((count) => view.count(count, 'token')).join(' and ');
  about.textContent = `${counts}; what the texts share is cut ${answer.isAlike ? 'alike' : 'differently'}.`;
  for (const text of texts) {
    const { ids } = cpbpe.tokens(model, text, options);
    const symbols = ids.map((id) => view.symbol(model.bytesOf(id), 'symbol'));
    view.by('pair').append(view.element('div', 'symbols', null, ...symbols));
  }
  button.hidden = answer.isAlike;
  button.onclick = () => {
    view.openDialog(['Why are the texts cut differently?'], ...view.sentence(answer.sentence));
    showSides(answer.sides, ['The first text', 'The second text']);
  };
};

// --- The merges of a text --------------------------------------------------------------------------------------------

const REPLAYED = 400; // characters; the time is quadratic
const ROWS = 100; // steps that are listed

// Why a text has the wrong length for a tool; empty if it has not.
const lengthProblem = (text, most, what, done) => {
  if (!text) return `Type a text to see ${what}.`;
  const size = cpbpe.length(text);
  if (size <= most) return '';
  return `The text has ${view.number(size)} characters, and ${done} of up to ${view.number(most)}. ` +
    'Select a part of it in the text box.';
};

view.Replay = class {
  constructor() {
    this.slider = view.by('step');
    this.timer = 0;
    this.slider.addEventListener('input', () => this.moved());
    view.by('back').addEventListener('click', () => this.move(-1));
    view.by('forward').addEventListener('click', () => this.move(1));
    view.by('play').addEventListener('click', () => (this.timer ? this.stop() : this.start()));
    view.by('speed').addEventListener('change', () => this.timer && this.start());
    view.by('drawn').addEventListener('change', () => this.draw());
    view.by('replay').addEventListener('keydown', (event) => this.key(event));
  }

  get place() {
    return Number(this.slider.value);
  }

  get last() {
    return this.answer ? this.answer.steps.length : 0;
  }

  set(model, text, options) {
    this.stop();
    this.model = model;
    this.answer = null;
    let problem = lengthProblem(text, REPLAYED, 'how it is merged', 'merges are shown');
    try {
      if (!problem) this.answer = cpbpe.steps(model, text, options);
    } catch (error) {
      problem = error.message;
    }
    this.slider.max = String(this.last);
    this.slider.value = String(Math.min(view.state.step, this.last));
    for (const id of ['step', 'back', 'forward', 'play']) view.by(id).disabled = !this.last;
    this.draw();
    if (problem) view.by('why').textContent = problem;
  }

  move(by) {
    this.slider.value = String(this.place + by);
    this.moved();
    view.by('heard').textContent = this.said(); // (Of a slider that the reader moves, browsers say this themselves.)
  }

  moved() {
    view.note({ step: this.place });
    this.draw();
  }

  // Arrow keys go to other steps, except in fields that have their own use for them.
  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const isOther = event.altKey || event.ctrlKey || event.metaKey || ['INPUT', 'SELECT'].includes(event.target.tagName);
    if (!by || isOther) return;
    event.preventDefault();
    this.move(by);
  }

  start() {
    this.stop();
    if (this.place >= this.last) this.move(-this.last);
    view.by('play').textContent = 'Pause';
    this.timer = setInterval(() => {
      this.move(1);
      if (this.place >= this.last) this.stop();
    }, Number(view.by('speed').value));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    view.by('play').textContent = 'Play';
  }

  // --- What is shown -------------------------------------------------------------------------------------------------

  // The symbols after a number of steps; those that the last of these steps made are highlighted.
  line(place) {
    const { begin, walls, steps } = this.answer;
    const symbols = begin.map((symbol, at) => ({ symbol, isWall: walls.includes(at), isMade: false }));
    steps.slice(0, place).forEach((step, at) => {
      const isLast = at === place - 1;
      const { isWall } = symbols[step.begin];
      const made = step.made.map((symbol, number) => ({ symbol, isWall: isWall && !number, isMade: isLast }));
      symbols.splice(step.begin, step.end - step.begin, ...made);
    });
    return symbols.flatMap(({ symbol, isWall, isMade }) => {
      const made = view.symbol(symbol, isMade ? 'symbol chosen' : 'symbol');
      return isWall ? [view.element('span', 'wall', null, '|'), made] : [made];
    });
  }

  // All steps, each with the symbols after it.
  rows() {
    const { steps } = this.answer;
    const row = (place) => {
      const [title, why] = [place ? `Step ${place}` : 'The beginning', place ? this.why(place) : []];
      const made = view.element('div', place === this.place ? 'step current' : 'step', null);
      made.append(view.element('p', '', null, view.element('b', '', null, title), ' ', ...view.sentence(why)));
      made.append(view.element('div', 'line', null, ...this.line(place)));
      made.addEventListener('click', () => this.move(place - this.place));
      return made;
    };
    const made = Array.from({ length: Math.min(ROWS, steps.length) + 1 }, (_, place) => row(place));
    const more = steps.length - ROWS;
    return more > 0 ? [...made, `The other ${more} steps are not listed; go to them with the slider.`] : made;
  }

  why(place) {
    return cpbpe.explained(this.model, this.answer.steps[place - 1]);
  }

  // What a screen reader says at this step.
  said() {
    if (!this.place) return 'The beginning';
    const { old, made } = this.answer.steps[this.place - 1];
    const spoken = (symbols) => symbols.map((symbol) => view.spoken(cpbpe.text(symbol))).join(' and ');
    const verb = old.length > 1 ? 'become' : 'becomes';
    return `Step ${this.place} of ${this.last}: ${spoken(old)} ${verb} ${spoken(made)}`;
  }

  draw() {
    const [place, list, why] = [this.place, view.by('symbols'), view.by('why')];
    why.textContent = '';
    view.by('place').textContent = this.last ? `${place} of ${this.last}` : '';
    list.className = `symbols ${view.by('drawn').value}`;
    view.plant(list, []);
    if (!this.answer) return;
    const { begin, steps, ids } = this.answer;
    this.slider.setAttribute('aria-valuetext', this.said());
    // 1. The reason of this step; and at the end, the ids.
    if (place) why.append(`Step ${place} of ${this.last}: `, ...view.sentence(this.why(place)));
    else why.append(`The text begins as ${view.count(begin.length, 'symbol')}.`);
    if (place === this.last) why.append(` Nothing merges any more; the ids are ${ids.join(', ')}.`);
    // 2. The symbols.
    const drawn = {
      line: () => this.line(place),
      rows: () => this.rows(),
      trees: () => {
        const roots = cpbpe.forest({ begin, steps: steps.slice(0, place) });
        return roots.map((root) => view.node(this.model, root, place ? [place] : []));
      },
    }[view.by('drawn').value]();
    if (view.by('drawn').value === 'trees') view.plant(list, drawn);
    else list.replaceChildren(...drawn);
    list.querySelector('.current, .chosen')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }
};

// --- Samples -----------------------------------------------------------------------------------------------------

const SAMPLED = 2000; // characters

view.showSamples = (model, text, options, alpha, seed) => {
  const [rows, about] = [view.by('rows'), view.by('sampled')];
  rows.replaceChildren();
  about.textContent = lengthProblem(text, SAMPLED, 'samples of its encoding', 'samples are drawn');
  if (about.textContent) return;
  let samples;
  try {
    samples = cpbpe.samples(model, text, options, alpha, seed);
  } catch (error) {
    about.textContent = error.message;
    return;
  }
  const ways = new Set(samples.map(({ ids }) => ids.join())).size;
  about.textContent = `${samples.length} samples, ${ways === 1 ? 'all alike' : `${ways} of them different`}`;
  for (const { seed, ids } of samples) {
    const line = view.element('div', 'symbols', null, ...ids.map((id) => view.symbol(model.bytesOf(id), 'symbol')));
    const title = view.element('span', 'quiet', null, `seed ${seed} · ${view.count(ids.length, 'token')}`);
    rows.append(view.element('li', '', null, title, line));
  }
};

// --- The search ----------------------------------------------------------------------------------------------------

const LISTED = 200; // pieces

view.showFound = (model, wanted) => {
  const ids = cpbpe.search(model, wanted);
  const shown = ids.length > LISTED ? `; the ${LISTED} shortest are shown` : '';
  const found = ids.length ? `${view.count(ids.length, 'piece')}${shown}` : 'No piece contains this.';
  view.by('found').textContent = wanted ? found : '';
  const row = (id) => {
    const button = view.element('button', 'found', { type: 'button' }, view.symbol(model.bytesOf(id)));
    button.append(view.element('span', 'quiet', null, `${id} · ${model.typeOf(id)} · ${view.score(model, id)}`));
    button.addEventListener('click', () => view.openTree(model, id));
    return view.element('li', '', null, button);
  };
  view.by('pieces').replaceChildren(...ids.slice(0, LISTED).map(row));
};
