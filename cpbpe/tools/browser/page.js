'use strict';
// The page: its state, the one place that draws it, and the files that are opened.

const AT_ONCE = 5000; // characters; a longer text is encoded only when typing pauses
const LARGEST = 2000000; // bytes of a text; `MAX_TEXT` in `cpbpe/tools/page.py`
const ANNOUNCED = 1000; // milliseconds without a change, after which screen readers hear the count
const EXAMPLES = {
  English: 'It was unbelievably quiet: the baker’s children had gone, and nobody had noticed.',
  code: 'def area(radius: float) -> float:\n    """The area of a circle."""\n    return 3.14159 * radius ** 2\n',
  emoji: 'Well done 👏🏽 to the whole family 👨‍👩‍👧 🏳️‍🌈 ❤️',
  Hindi: 'नमस्ते! आज का मौसम बहुत अच्छा है।',
  numbers: '7 42 365 1,024 65536 3.14159 2026-11-26 +49 30 1234567',
  chat: '<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n',
};

// What the page shows. `columns` are models, and `which` is the one that the tools are about; `absent` are models of
// the link that are not in the page, as `{ key, name }`; `token` is the one that was pointed at, as `{ column, at, id,
// model }`.
const state = {
  text: '', columns: [], show: 'text', prefix: 'model', special: false, bos: false, eos: false,
  which: null, tool: '', step: 0, seed: 0, token: null, absent: [], problem: '',
};
view.state = state;
view.models = []; // all that are loaded

// The controls of these options, and the property of each that has its value.
const OPTIONS = { show: 'value', prefix: 'value', special: 'checked', bos: 'checked', eos: 'checked' };
const box = view.by('text');
let written = ''; // the text that is in the box (the box itself turns carriage returns into newlines)
let panels = [];
let answers = [];
let timer = 0;
let announcing = 0;

view.options = () => {
  const { prefix, special, bos, eos } = state;
  return { prefix, special, bos, eos };
};

// Change the state and draw the page.
view.change = (part) => {
  Object.assign(state, { problem: '' }, part);
  view.redraw();
};

// Change what only the link needs to know, such as the step that a tool shows.
view.note = (part) => {
  Object.assign(state, part);
  view.writeLink();
};

// The selected part of the text, or all of it: replaying and sampling need short texts.
view.part = () => {
  const selected = box.value.slice(box.selectionStart, box.selectionEnd);
  return selected ? (selected.toWellFormed?.() ?? selected) : state.text;
};

// --- Drawing -------------------------------------------------------------------------------------------------------

// The tokens of a text with a model. The last answer is kept, because most changes leave it as it is.
const answerOf = (model) => {
  const asked = JSON.stringify(view.options());
  if (model.answered?.text === state.text && model.answered.asked === asked) return model.answered.answer;
  let answer;
  try {
    answer = cpbpe.tokens(model, state.text, view.options());
  } catch (error) {
    answer = { error: error.message };
  }
  model.answered = { text: state.text, asked, answer };
  return answer;
};

view.redraw = () => {
  clearTimeout(timer);
  const begun = performance.now();
  // 1. What there is to show.
  const { columns, text } = state;
  if (!columns.includes(state.which)) state.which = columns[0] ?? null;
  answers = columns.map(answerOf);
  const areComparable = answers.length > 1 && answers.every((answer) => !answer.error);
  const differing = areComparable ? cpbpe.differing(columns, answers, text) : [];
  const most = Math.max(...answers.map((answer) => answer.counts?.tokens ?? 0));
  // 2. The controls, the columns, and what is said about them.
  drawControls();
  while (panels.length > columns.length) panels.pop().section.remove();
  while (panels.length < columns.length) panels.push(new view.Panel(view.by('panels'), events));
  view.by('panels').dataset.columns = columns.length;
  const shown = { text, places: view.places(text), differing, mode: state.show, most };
  columns.forEach((model, at) => {
    panels[at].offer(view.models, columns.length > 1);
    panels[at].show(model, answers[at], shown);
  });
  drawHeadline(areComparable, differing);
  drawToken();
  drawOffer();
  drawTool();
  view.writeLink();
  // 3. The sizes, and how long this took.
  const { characters, bytes } = answers.find((answer) => answer.counts)?.counts ?? {};
  const sizes = bytes === undefined ? '' : `${view.count(characters, 'character')} · ${view.count(bytes, 'byte')} · `;
  view.by('size').textContent = columns.length ? `${sizes}${Math.round(performance.now() - begun)} ms` : '';
  announce();
  document.body.dataset.shown = String(Number(document.body.dataset.shown || 0) + 1); // for tests: how often drawn
};

// Before the browser lays out a long text: its box does not grow with it, and an endless word is broken anywhere,
// because finding where it may be takes long.
const fit = (text) => {
  box.classList.toggle('long', text.length > AT_ONCE);
  box.classList.toggle('unbroken', /\S{5000}/.test(text));
};

const drawControls = () => {
  const { columns } = state;
  if (state.text !== written) box.value = written = state.text;
  fit(state.text);
  if (state.text.length <= AT_ONCE) {
    box.style.height = 'auto';
    box.style.height = `${box.scrollHeight + 2}px`;
  } else box.style.height = '';
  for (const [id, property] of Object.entries(OPTIONS)) view.by(id)[property] = state[id];
  for (const name of ['bos', 'eos']) {
    const without = columns.filter((model) => model[name] === null).map((model) => model.name);
    view.by(name).disabled = !state[name] && without.length === columns.length;
    view.by(name).title = without.length ? `not in ${without.join(', ')}` : '';
  }
  view.by('add').hidden = !view.models.length;
  view.by('empty').hidden = columns.length > 0;
  view.by('add').disabled = columns.length >= COLUMNS;
  view.by('clear').disabled = !state.text;
  view.by('which-label').hidden = columns.length < 2;
  const names = [...new Set(columns)].map((model) =>
    view.element('option', '', { value: view.models.indexOf(model) }, model.name),
  );
  view.by('which').replaceChildren(...names);
  view.by('which').value = String(view.models.indexOf(state.which));
  for (const tool of document.querySelectorAll('.tools > details')) tool.open = tool.id === state.tool;
  const absent = state.absent.map(({ key, name }) => `${name || 'a model'} (fingerprint ${key})`).join(' and ');
  const missing = absent && `The link shows ${absent}, which this page does not have. Open the file to see it.`;
  view.by('notice').textContent = [state.problem, missing].filter(Boolean).join(' ');
};

const drawHeadline = (areComparable, differing) => {
  const headline = view.by('headline');
  headline.replaceChildren();
  const counts = areComparable ? answers.map((answer) => answer.counts.tokens) : [];
  if (!counts.some(Boolean)) return;
  const several = counts.map(view.number).join(counts.length === 2 ? ' against ' : ' · ');
  const change = Math.round((100 * (counts[1] - counts[0])) / counts[0]);
  const percent = counts.length === 2 && counts[0] ? `, ${change < 0 ? '−' : '+'}${Math.abs(change)} %` : '';
  headline.append(view.element('strong', '', null, `${several} tokens${change ? percent : ''}`));
  const cut = differing.length ? `${view.count(differing.length, 'span')} cut differently` : 'cut alike';
  headline.append(view.element('span', 'quiet', null, cut));
};

// What is known about the token that was pointed at, if it is still there.
const drawToken = () => {
  const { token } = state;
  const panel = token && panels[token.column];
  const isThere = panel && panel.model === token.model && panel.answer.ids?.[token.at] === token.id;
  if (!isThere) state.token = null;
  view.by('about').replaceChildren(...(isThere ? details(panel, token.at) : [hint()]));
  panels.forEach((one) => one.mark(...(isThere && one !== panel ? panel.span(token.at) : [0, 0])));
};

const hint = () =>
  view.element('p', 'quiet', null, 'Point at a token, or go to it with Tab and the arrow keys, to see what it is.');

const details = (panel, at) => {
  const { model } = panel;
  const { ids } = panel.answer;
  const id = ids[at];
  const [begin, end] = panel.span(at);
  const rows = view.element('dl');
  const row = (name, value) => {
    const [term, description] = [view.element('dt', '', null, name), view.element('dd', '', null, value)];
    rows.append(view.element('div', '', null, term, description));
  };
  row('piece', view.symbol(model.bytesOf(id)));
  row('id', String(id));
  row('type', model.typeOf(id));
  if (id < model.size) row(...view.score(model, id).split(' ')); // "score -7" or "rank 300"
  row('characters', begin === end ? `none, at ${begin}` : `${begin} to ${end}`);
  const bytes = view.hex(model.outputOf(id));
  if (bytes) row('bytes', bytes);
  const characters = Array.from(panel.slice(begin, end));
  if (characters.length) {
    const more = characters.length > 8 ? ` and ${characters.length - 8} more` : '';
    row('code points', characters.slice(0, 8).map(cpbpe.codePoint).join(' ') + more);
  }
  row('token', `${view.number(at + 1)} of ${view.number(ids.length)}`);
  const name = panels.length > 1 ? [view.element('bdi', 'quiet', null, model.name)] : [];
  const button = view.element('button', '', { type: 'button' }, 'How it is built');
  button.addEventListener('click', () => view.openTree(model, id));
  const why = view.element('button', '', { type: 'button', id: 'differs' }, 'Why different?');
  why.addEventListener('click', () => view.openWhy(begin, end));
  const buttons = panel.differs(begin, end) ? [button, why] : [button];
  return [view.element('div', 'row', null, ...buttons, ...name), rows];
};

// Special tokens in a text are usually meant as such, but are text unless somebody says so.
const drawOffer = () => {
  const offer = view.by('offer');
  offer.replaceChildren();
  if (state.special || !state.text || state.text.length > AT_ONCE) return;
  for (const model of state.columns) {
    const found = [...model.special.keys()].find((text) => text.length > 2 && state.text.includes(text));
    if (!found) continue;
    const button = view.element('button', '', { type: 'button' }, 'Treat it as one token');
    button.addEventListener('click', () => view.change({ special: true }));
    const named = view.element('bdi', 'piece', null, found);
    offer.append(named, ' is a special token of ', view.element('bdi', '', null, model.name), '. ', button);
    return;
  }
};

const drawTool = () => {
  const { which: model, columns, tool } = state;
  if (!model && tool !== 'train') return; // (training needs no model)
  view.tools.get(tool)?.({ model, text: view.part(), options: view.options(), columns, answers });
};

const replay = new view.Replay();
view.tool('replay', ({ model, text, options }) => replay.set(model, text, options));
view.tool('samples', ({ model, text, options }) =>
  view.showSamples(model, text, options, Number(view.by('alpha').value), state.seed),
);
view.tool('two', ({ model, text, options }) => view.showTwo(model, [text, view.by('other').value], options));
view.tool('search', ({ model }) => view.showFound(model, view.by('wanted').value));

const announce = () => {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    const said = state.columns.map((model, at) => {
      const { error, counts } = answers[at];
      return `${model.name}: ${error ?? view.count(counts.tokens, 'token')}`;
    });
    view.by('spoken').textContent = said.join('; ');
  }, ANNOUNCED);
};

// --- What happens in a column --------------------------------------------------------------------------------------

const events = {
  point: (panel, at) => {
    const { model } = panel;
    state.token = { column: panels.indexOf(panel), at, id: panel.answer.ids[at], model };
    drawToken();
  },
  open: (panel, at) => view.openTree(panel.model, panel.answer.ids[at]),
  scrolled: (panel, place) => panels.forEach((one) => one !== panel && !one.answer.error && one.follow(place)),
  choose: (panel, model) =>
    view.change({ columns: panels.map((one) => (one === panel ? model : one.model)) }),
  remove: (panel) => view.change({ columns: panels.filter((one) => one !== panel).map((one) => one.model) }),
};

// --- Files ---------------------------------------------------------------------------------------------------------

const PUBLISHED = { // patterns, and who uses them
  gpt2: 'GPT-2, GPT-3', cl100k: 'GPT-3.5, GPT-4', o200k: 'GPT-4o, Llama 4', llama3: 'Llama 3', qwen2: 'Qwen',
  tekken: 'Mistral',
};

// The pattern for a file that does not say how texts are cut; null if the dialog is closed without one.
const askPattern = (name, patterns) =>
  new Promise((answer) => {
    const dialog = view.by('pattern');
    view.by('pattern-file').textContent = name;
    const names = patterns.map((pattern) => [pattern, `${pattern} (${PUBLISHED[pattern]})`]);
    const options = [...names, ['', 'none: a text is one chunk']];
    view.by('patterns').replaceChildren(...options.map(([value, text]) => view.element('option', '', { value }, text)));
    dialog.returnValue = 'cancel';
    dialog.onclose = () => answer(dialog.returnValue === 'cut' ? view.by('patterns').value : null);
    view.by('cut').onclick = () => dialog.close('cut');
    view.by('cancel').onclick = () => dialog.close('cancel');
    dialog.showModal();
  });

const read = async (name, bytes) => {
  try {
    return cpbpe.read(name, bytes);
  } catch (error) {
    const pattern = error.patterns ? await askPattern(name, error.patterns) : null;
    if (pattern === null) throw error;
    return cpbpe.read(name, bytes, { pattern });
  }
};

// The model of a file, with a name that no other has. If the page has a model with this fingerprint, it is that one.
const loaded = async (name, bytes) => {
  const { file, notes } = await read(name, bytes);
  const made = Object.assign(new cpbpe.Model(file, name), { notes });
  const key = await view.fingerprint(file);
  const same = view.models.find((one) => one.key === key);
  if (same) {
    made.close();
    return same;
  }
  made.key = key;
  const isTaken = () => view.models.some((one) => one.name === made.name);
  for (let number = 2; isTaken(); number += 1) made.name = `${name} (${number})`;
  view.models.push(made);
  return made;
};

// Load the bytes of a model's file and show the model in a column.
view.addModel = async (name, bytes) => {
  let model;
  try {
    view.by('size').textContent = `Reading ${name} …`; // (a tokenizer.json of 128,000 tokens takes a second or two)
    await new Promise((drawn) => setTimeout(drawn, 50));
    model = await loaded(name, bytes);
  } catch (error) {
    return view.change({ problem: `${name}: ${error.message}` });
  }
  const columns = state.columns.includes(model) ? state.columns : [...state.columns.slice(0, COLUMNS - 1), model];
  return view.change({ columns, absent: state.absent.filter(({ key }) => key !== model.key) });
};

// Whether a file is a model: its name or its beginning says so, or it does not look like a text.
const isModel = (name, bytes) => {
  if (/\.(model|tiktoken)$/i.test(name) || cpbpe.isModelFile(bytes)) return true;
  return /[\0-\x08\ufffd]/.test(cpbpe.text(bytes.subarray(0, 1000)));
};

view.openFiles = async (files) => {
  for (const file of files) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (isModel(file.name, bytes)) await view.addModel(file.name, bytes);
    else if (bytes.length > LARGEST) tooLong();
    else view.change({ text: cpbpe.text(bytes) });
  }
};

const tooLong = () => view.change({ problem: `The text is too long: the page takes ${view.number(LARGEST)} bytes.` });

// --- Start ---------------------------------------------------------------------------------------------------------

const typed = () => {
  const text = box.value.toWellFormed?.() ?? box.value;
  if (text.length > LARGEST / 4 && cpbpe.utf8(text).length > LARGEST) return tooLong();
  written = text;
  return view.change({ text });
};

const listen = () => {
  const on = (id, event, then) => view.by(id).addEventListener(event, then);
  on('text', 'input', () => {
    fit(box.value);
    clearTimeout(timer);
    timer = setTimeout(typed, box.value.length > AT_ONCE ? 150 : 0);
  });
  on('clear', 'click', () => {
    view.change({ text: '' });
    box.focus();
  });
  for (const [name, text] of Object.entries(EXAMPLES)) {
    const button = view.element('button', 'chip-button', { type: 'button' }, name);
    button.addEventListener('click', () => view.change({ text }));
    view.by('examples').append(button);
  }
  for (const [id, property] of Object.entries(OPTIONS)) {
    on(id, 'change', () => view.change({ [id]: view.by(id)[property] }));
  }
  on('menu', 'click', () => {
    const isOpen = document.body.classList.toggle('options');
    view.by('menu').setAttribute('aria-expanded', isOpen);
  });
  on('which', 'change', () => view.change({ which: view.models[Number(view.by('which').value)], step: 0 }));
  for (const tool of document.querySelectorAll('.tools > details')) {
    // (The state changes at once: a browser reports `toggle` later, and drawing in between would close the tool again.)
    tool.querySelector('summary').addEventListener('click', (event) => {
      event.preventDefault();
      view.change(tool.open ? { tool: '' } : { tool: tool.id, step: 0 });
    });
    tool.addEventListener('toggle', () => {
      if (tool.open && state.tool !== tool.id) view.change({ tool: tool.id, step: 0 });
      else if (!tool.open && state.tool === tool.id) view.change({ tool: '' });
    });
  }
  on('add', 'click', () => {
    const next = view.models.find((model) => !state.columns.includes(model)) ?? view.models[0];
    if (next) view.change({ columns: [...state.columns, next] });
    else view.by('files').click();
  });
  for (const id of ['open', 'choose']) on(id, 'click', () => view.by('files').click());
  on('files', 'change', async () => {
    await view.openFiles([...view.by('files').files]);
    view.by('files').value = '';
  });
  on('alpha', 'input', () => {
    view.by('chance').textContent = view.by('alpha').value;
    drawTool();
  });
  on('again', 'click', () => view.change({ seed: state.seed + 8 }));
  for (const id of ['wanted', 'other']) on(id, 'input', drawTool);
  on('close', 'click', () => view.by('tree').close());
  document.addEventListener('selectionchange', () => document.activeElement === box && drawTool());
  for (const [event, isOver] of [['dragover', true], ['dragleave', false], ['drop', false]]) {
    document.addEventListener(event, (dragged) => {
      if (!dragged.dataTransfer.types.includes('Files')) return;
      dragged.preventDefault();
      if (event === 'dragleave' && dragged.relatedTarget) return; // only to another part of the page
      document.body.classList.toggle('dropping', isOver);
      if (event === 'drop') view.openFiles([...dragged.dataTransfer.files]);
    });
  }
  window.addEventListener('hashchange', () => view.change(view.readLink()));
};

view.begin = async () => {
  try {
    await cpbpe.start(await view.unpacked(view.by('core').textContent));
    for (const { name, file, chats } of view.data.models) (await loaded(name, await view.unpacked(file))).chats = chats;
  } catch (error) {
    view.by('notice').textContent = error.message;
    return;
  }
  listen();
  view.change({ text: view.data.text, ...view.readLink() });
  if (!state.text) box.focus({ preventScroll: true });
};

view.begin();
