'use strict';
// The page: its options, its text, and the link that stores both.

const LINKED = 2000; // characters; a longer text is not put into the link
const AT_ONCE = 5000; // characters; a longer text is encoded only when typing pauses
const LARGEST = 2000000; // bytes that the server accepts
const SWITCHES = ['special', 'bos', 'eos'];

const page = { models: [], panels: [], answer: null, text: '', timer: 0, seed: 0 };

const box = view.by('text');
const status = view.by('status');

page.number = (id) => Number(view.by(id).value);
page.chosen = () => {
  const [one, other] = [page.number('one'), page.number('other')];
  return other < 0 ? [one] : [one, other];
};
page.options = () => {
  const options = { prefix: view.by('prefix').value };
  for (const name of SWITCHES) options[name] = view.by(name).checked;
  return options;
};
// A text box turns carriage returns into newlines. So until somebody types, return the text that the page began with.
page.value = () => {
  if (page.first && box.value === page.first.replace(/\r\n?/g, '\n')) return page.first;
  return box.value.toWellFormed?.() ?? box.value;
};
// The selected part of the text, or all of it. Replaying and sampling need short texts.
page.part = () => {
  const selected = box.value.slice(box.selectionStart, box.selectionEnd);
  return selected ? (selected.toWellFormed?.() ?? selected) : page.value();
};

// --- The tokens ----------------------------------------------------------------------------------------------------

page.encode = async () => {
  const text = page.value();
  const begun = performance.now();
  page.writeLink();
  if (text.length > LARGEST / 4 && new TextEncoder().encode(text).length > LARGEST) {
    status.textContent = `The text is too long: the page takes ${view.number(LARGEST)} bytes.`;
    return;
  }
  let answer;
  try {
    answer = await view.ask('tokens', { text, models: page.chosen(), options: page.options() });
  } catch (error) {
    status.textContent = error.message;
    return;
  }
  if (answer === null) return;
  page.answer = answer;
  page.text = text;
  page.draw();
  const spans = answer.differing.length;
  const differ = answer.models.length < 2 ? '' : spans ? `; ${view.number(spans)} spans differ` : '; cut alike';
  const time = `${Math.round(performance.now() - begun)} ms`;
  status.textContent = `${time}${differ}`.replace(/^; /, '');
  document.body.dataset.shown = String(Number(document.body.dataset.shown || 0) + 1); // for tests: how often drawn
};

page.draw = () => {
  if (!page.answer) return;
  const { models, differing } = page.answer;
  const places = view.places(page.text);
  while (page.panels.length > models.length) page.panels.pop().section.remove();
  while (page.panels.length < models.length) page.panels.push(new view.Panel(view.by('panels'), page));
  view.by('panels').classList.toggle('two', models.length > 1);
  const chosen = page.chosen();
  models.forEach((answer, at) => {
    page.panels[at].show(page.models[chosen[at]], answer, page.text, places, differing, view.by('show').value);
  });
};

// While somebody types, only the last request counts; for a long text, none is sent before a pause.
page.soon = () => {
  clearTimeout(page.timer);
  page.timer = setTimeout(
    () => {
      page.encode();
      page.tools();
    },
    box.value.length > AT_ONCE ? 150 : 0,
  );
};

// --- The token under the pointer -----------------------------------------------------------------------------------

page.point = (panel, at) => {
  const { ids, begins, ends, pieces } = panel.answer;
  const id = ids[at];
  const [piece, type, score, hex] = pieces[id];
  const [begin, end] = [begins[at], ends[at]];
  const text = panel.slice(begin, end);
  const rows = view.element('dl');
  const row = (name, ...values) =>
    rows.append(view.element('dt', '', null, name), view.element('dd', '', null, ...values));
  row('piece', view.piece(piece));
  row('id', String(id));
  row('type', type);
  row(panel.model.bytes ? 'rank' : 'score', view.score(panel.model, score).replace(/^\S+ (?=.)/, ''));
  row('characters', begin === end ? `none, at ${begin}` : `${begin} to ${end}`);
  if (hex) row('bytes', hex.toUpperCase().replace(/..(?=.)/g, '$& '));
  const characters = Array.from(text);
  if (text) {
    const more = characters.length > 8 ? ` and ${characters.length - 8} more` : '';
    row('code points', characters.slice(0, 8).map(view.codePoint).join(' ') + more);
  }
  row('token', `${view.number(at + 1)} of ${view.number(ids.length)}`);
  view.by('about').replaceChildren(
    view.element('h2', '', null, view.element('bdi', '', null, panel.model.name)),
    rows,
    view.element('p', 'quiet', null, 'Enter, or a click, shows how it is built.'),
  );
  for (const other of page.panels) {
    if (other !== panel) other.mark(begin, end);
    else other.mark(0, 0);
  }
};

page.open = (panel, at) => {
  const number = page.chosen()[page.panels.indexOf(panel)];
  view.openTree(panel.model, number, panel.answer.ids[at]);
};

// --- The tools below -----------------------------------------------------------------------------------------------

const replay = new view.Replay();

page.which = () => page.number('which');

page.tools = () => {
  if (view.by('replay').open) page.replay();
  if (view.by('samples').open) page.sample();
};

const answered = async (ask, show) => {
  let answer;
  try {
    answer = await ask();
  } catch (error) {
    answer = { error: error.message };
  }
  if (answer) show(answer);
};

page.replay = () => {
  const which = page.which();
  const question = { model: which, text: page.part(), options: page.options() };
  return answered(
    () => view.ask('steps', question),
    (answer) => replay.set(page.models[which], answer),
  );
};

page.sample = () => {
  const which = page.which();
  const alpha = Number(view.by('alpha').value);
  const question = { model: which, text: page.part(), options: page.options(), alpha, seed: page.seed };
  return answered(
    () => view.ask('samples', question),
    (answer) => view.showSamples(page.models[which], answer),
  );
};

page.search = () => {
  const which = page.which();
  const wanted = view.by('wanted').value;
  return answered(
    () => view.ask('search', { model: which, wanted }),
    (answer) => {
      if (answer.error) view.by('found').textContent = answer.error;
      else view.showFound(page.models[which], which, wanted, answer);
    },
  );
};

// --- The link ------------------------------------------------------------------------------------------------------

page.writeLink = () => {
  const state = new URLSearchParams();
  const set = (name, value, usual) => value !== usual && state.set(name, value);
  set('model', view.by('one').value, '0');
  set('with', view.by('other').value, page.models.length > 1 ? '1' : '-1');
  set('show', view.by('show').value, 'text');
  set('prefix', view.by('prefix').value, 'model');
  for (const name of SWITCHES) set(name, view.by(name).checked ? '1' : '', '');
  if (box.value.length <= LINKED) set('text', page.value(), page.first);
  try {
    history.replaceState(null, '', `#${state}`);
  } catch (error) {
    // Browsers refuse too many changes in a short time; a later change will succeed.
  }
};

page.readLink = () => {
  const state = new URLSearchParams(location.hash.slice(1));
  const choose = (id, value) => {
    const select = view.by(id);
    select.value = value;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  };
  choose('one', state.get('model') ?? '0');
  choose('other', state.get('with') ?? (page.models.length > 1 ? '1' : '-1'));
  choose('show', state.get('show') ?? 'text');
  choose('prefix', state.get('prefix') ?? 'model');
  for (const name of SWITCHES) view.by(name).checked = state.get(name) === '1';
  box.value = (state.get('text') ?? page.first).slice(0, LARGEST);
};

// --- Start ---------------------------------------------------------------------------------------------------------

page.setUp = ({ models, text }) => {
  page.models = models;
  page.first = text;
  const option = (value, name) => view.element('option', '', { value }, name);
  const names = () => models.map((model, at) => option(at, model.name));
  view.by('one').replaceChildren(...names());
  view.by('which').replaceChildren(...names());
  view.by('other').replaceChildren(option(-1, 'no other'), ...names());
  view.by('other-label').hidden = view.by('which-label').hidden = models.length < 2;
  for (const name of ['bos', 'eos']) {
    const without = models.filter((model) => !model[name]).map((model) => model.name);
    view.by(name).disabled = without.length === models.length;
    view.by(name).title = without.length ? `not in ${without.join(', ')}` : '';
  }
  page.readLink();
  if (!view.data) return;
};

page.begin = async () => {
  try {
    await cpbpe.start(await view.unpacked(view.by('core').textContent));
    for (const { name, file } of view.data.models) view.models.push(new cpbpe.Model(await view.unpacked(file), name));
    page.setUp(await view.ask('models'));
  } catch (error) {
    status.textContent = error.message;
    return;
  }
  box.addEventListener('input', page.soon);
  for (const id of ['one', 'other', 'prefix', ...SWITCHES]) view.by(id).addEventListener('change', page.soon);
  view.by('show').addEventListener('change', () => {
    page.writeLink();
    page.draw();
  });
  view.by('which').addEventListener('change', () => {
    page.tools();
    page.search();
  });
  view.by('replay').addEventListener('toggle', page.tools);
  view.by('samples').addEventListener('toggle', page.tools);
  box.addEventListener('select', page.tools);
  view.by('alpha').addEventListener('input', () => {
    view.by('chance').textContent = view.by('alpha').value;
    page.sample();
  });
  view.by('again').addEventListener('click', () => {
    page.seed += 8;
    page.sample();
  });
  view.by('wanted').addEventListener('input', page.search);
  view.by('close').addEventListener('click', () => view.by('tree').close());
  window.addEventListener('hashchange', () => {
    page.readLink();
    page.soon();
  });
  await page.encode();
  if (!box.value) box.focus();
};

page.begin();
