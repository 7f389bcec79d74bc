'use strict';
// What leaves the page: its link, what is copied, and pictures of tokens.

const COLUMNS = 4; // models side by side
const LINKED = 2000; // characters; a longer text is not put into the link
const KEY_DIGITS = 12; // of a fingerprint, which are hexadecimal, links have this many
const BEHAVIOUR = 2; // as in cpbpe/tokenizer/identity.py
const PICTURED = 1000; // tokens

// --- The link ------------------------------------------------------------------------------------------------------

// The first digits of `Tokenizer.fingerprint`, from the bytes of a model. (The browser's own hash is a hundred times as
// fast, but pages that came over http without encryption may not use it.)
view.fingerprint = async (file) => {
  const bytes = cpbpe.join([cpbpe.utf8(`cpbpe ${BEHAVIOUR}\0`), file]);
  if (!crypto.subtle) return cpbpe.sha256(bytes).slice(0, KEY_DIGITS);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return view.hex(hash).replaceAll(' ', '').toLowerCase().slice(0, KEY_DIGITS);
};

// The link follows when nothing has changed for a moment: browsers refuse to change it all the time, and take longer
// for that than for a key.
let linking = 0;
view.writeLink = () => {
  clearTimeout(linking);
  linking = setTimeout(writeLink, 150);
};

const writeLink = () => {
  const { state } = view;
  const link = new URLSearchParams();
  const set = (name, value, usual) => value !== usual && link.set(name, value);
  for (const { key, name } of [...state.columns, ...state.absent]) link.append('model', `${key} ${name}`);
  set('show', state.show, 'text');
  set('prefix', state.prefix, 'model');
  for (const name of ['special', 'bos', 'eos']) set(name, state[name] ? '1' : '', '');
  set('tool', state.tool, '');
  if (state.tool && state.which && state.which !== state.columns[0]) link.set('of', state.which.key);
  set('step', String(state.step), '0');
  if (state.text.length <= LINKED) set('text', state.text, view.data.text);
  try {
    history.replaceState(null, '', `#${link}`);
  } catch (error) {
    // This browser wants fewer changes; a later one will succeed.
  }
};

// The state that a link describes. What it does not say, or says in a way that makes no sense, is as usual.
view.readLink = () => {
  const link = new URLSearchParams(location.hash.slice(1));
  const one = (name, ...known) => (known.includes(link.get(name)) ? link.get(name) : known[0]);
  const named = link.getAll('model').map((value) => {
    const [, key, name] = /^(\S*) ?(.*)$/s.exec(value);
    return view.models.find((model) => model.key === key) ?? { key, name };
  });
  const there = named.filter((model) => view.models.includes(model)).slice(0, COLUMNS);
  const columns = there.length ? there : view.models.slice(0, COLUMNS);
  return {
    columns,
    absent: named.filter((model) => !view.models.includes(model)).slice(0, COLUMNS),
    show: one('show', 'text', 'pieces', 'ids'),
    prefix: one('prefix', 'model', 'on', 'off'),
    ...Object.fromEntries(['special', 'bos', 'eos'].map((name) => [name, link.get(name) === '1'])),
    tool: one('tool', '', ...[...document.querySelectorAll('.tools > details')].map((tool) => tool.id)),
    which: columns.find((model) => model.key === link.get('of')) ?? columns[0] ?? null,
    step: Math.max(0, Math.floor(Number(link.get('step')))) || 0,
    text: link.get('text') ?? view.data.text,
  };
};

// --- Copying -------------------------------------------------------------------------------------------------------

view.copy = async (text, what) => {
  let said = `${what} copied`;
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    said = `The browser does not let this page copy: ${error.message}`;
  }
  view.by('spoken').textContent = said;
  view.flash(said);
};

// A short message that goes away.
view.flash = (said) => {
  const shown = view.element('p', 'flash', { 'aria-hidden': 'true' }, said);
  document.body.append(shown);
  setTimeout(() => shown.remove(), 2000);
};

// Python code that makes the ids of a column.
const python = ({ model, text, answer }) => {
  const { prefix, special, bos, eos } = view.options();
  const given = [JSON.stringify(text)];
  if (bos) given.push('add_bos=True');
  if (eos) given.push('add_eos=True');
  if (prefix !== 'model') given.push(`prefix_space=${prefix === 'on' ? 'True' : 'False'}`);
  if (special) given.push('allowed_special="all"');
  const lines = ['import cpbpe', '', `tok = cpbpe.load(${JSON.stringify(model.name)})`];
  lines.push(`ids = tok.encode(${given.join(', ')})`, `assert ids == [${answer.ids.join(', ')}]`);
  return `${lines.join('\n')}\n`;
};

// What can be copied or saved of a column, by its name in the menu.
const MENU = {
  ids: (panel) => view.copy(panel.answer.ids.join(', '), 'Ids'),
  pieces: (panel) => view.copy(JSON.stringify(panel.answer.ids.map((id) => panel.model.textOf(id))), 'Pieces'),
  'Python that makes them': (panel) => view.copy(python(panel), 'Python'),
  'picture (SVG)': (panel) => view.save(new Blob([view.picture(panel)], { type: 'image/svg+xml' }), 'tokens.svg'),
  'picture (PNG)': async (panel) => view.save(await view.pixels(view.picture(panel)), 'tokens.png'),
};

// The menu of a column.
view.menu = (panel) => {
  const menu = view.element('details', 'menu', null, view.element('summary', '', null, 'Copy'));
  const list = view.element('div', 'menu-list');
  for (const [name, then] of Object.entries(MENU)) {
    const button = view.element('button', '', { type: 'button' }, name);
    button.addEventListener('click', () => {
      menu.open = false;
      if (!panel.answer.error) then(panel);
    });
    list.append(button);
  }
  menu.append(list);
  menu.addEventListener('keydown', (event) => event.key === 'Escape' && (menu.open = false));
  document.addEventListener('click', (event) => !menu.contains(event.target) && (menu.open = false));
  return menu;
};

view.save = (blob, name) => {
  const link = view.element('a', '', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

// --- Pictures ------------------------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

// The coloured text of a column as SVG, in which every token has a place of its own, so that it looks alike in all
// programs and with all fonts.
view.picture = (panel) => {
  const { answer, model } = panel;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const pen = document.createElement('canvas').getContext('2d');
  const [most, line, edge] = [800, 34, 24]; // pixels: the largest width, the height of a line, and the margin
  const font = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
  pen.font = `18px ${font}`;
  // 1. The tokens.
  const drawn = [];
  let [x, y, right] = [edge, edge + 40, 0];
  for (let at = 0; at < Math.min(answer.ids.length, PICTURED); ) {
    let end = at + 1;
    while (end < answer.ids.length && answer.joined.has(end)) end += 1;
    const text = panel.slice(answer.begins[at], answer.ends[end - 1]);
    const several = end - at > 1 ? ` ×${end - at}` : '';
    const label = (view.drawn(text, '\u00a0') || view.drawn(model.textOf(answer.ids[at]))) + several;
    const width = Math.min(pen.measureText(label).width + 4, most - 2 * edge);
    if (x + width > most - edge) [x, y] = [edge, y + line];
    drawn.push(
      `<rect x="${x}" y="${y - 19}" width="${width}" height="26" rx="4" fill="${colour(`c${at % 6}`)}" ` +
        `stroke="${colour('edge')}"/><text x="${x + 2}" y="${y}" textLength="${width - 4}" ` +
        `lengthAdjust="spacingAndGlyphs">${escaped(label)}</text>`,
    );
    x += width;
    right = Math.max(right, x);
    if (text.endsWith('\n')) [x, y] = [edge, y + line];
    at = end;
  }
  // 2. The title, and all of it.
  const more = answer.ids.length > PICTURED ? ` · the first ${view.number(PICTURED)} are shown` : '';
  const title = `${view.count(answer.ids.length, 'token')} · ${model.name}${more}`;
  right = Math.max(right, edge + 1.1 * pen.measureText(title).width);
  const [width, height] = [Math.ceil(Math.min(right + edge, most)), y + edge];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="${escaped(font)}" font-size="18" fill="${colour('front')}"><title>${escaped(title)}</title>` +
    `<rect width="${width}" height="${height}" fill="${colour('back')}"/>` +
    `<text x="${edge}" y="${edge + 10}" font-weight="bold">${escaped(title)}</text>${drawn.join('')}</svg>`
  );
};

// A picture as PNG, with two pixels for each of its units, so that it is sharp on most screens.
view.pixels = async (svg) => {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = view.element('canvas', '', { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
};

view.by('copy-link').addEventListener('click', () => {
  writeLink();
  view.copy(location.href, 'Link');
});
