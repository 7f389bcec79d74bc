'use strict';
// How texts are shown. Texts and pieces enter the page only as text nodes, never as markup.

const view = {};

// Make an element with a class, attributes, and children, which are nodes or texts.
view.element = (name, className, attributes, ...children) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

view.by = (id) => document.getElementById(id);

// A number as readers write it, and with a noun: `1 token`, `1,200 tokens`.
view.number = (number) => (typeof number === 'number' ? number.toLocaleString('en') : String(number));
view.count = (number, noun) => `${view.number(number)} ${noun}${number === 1 ? '' : 's'}`;

// --- One notation for what cannot be seen ----------------------------------------------------------------------------
// The same as in `cpbpe/text/drawn.py`: signs for what is common, and otherwise the code in a frame. A frame is drawn
// around a sign in the page; where there is only text, it is written.

const SIGNS = { ' ': '␣', '\n': '⏎', '\r': '␍', '\t': '⇥' };

// (Test single characters only: with a `$`, Chromium 156 does not find characters above U+FFFF.)
const EMOJI = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u;
const INVISIBLE = /[\s\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u;


// Bytes, as two hexadecimal digits each.
view.hex = (bytes) => Array.from(bytes, (byte) => cpbpe.hex(byte)).join(' ');

// Whether something else is drawn instead of a character, which could not be seen.
const isHidden = (characters, place) => {
  const [character, before] = [characters[place], characters[place - 1]];
  if (!INVISIBLE.test(character)) return false;
  if (character === '\u200d') return !(before && EMOJI.test(before) && place + 1 < characters.length); // a family
  return !(/[\u{e0020}-\u{e007f}]/u.test(character) && before); // a part of a flag
};

// Append a text with marks for invisible characters. Spaces and tabs stay in the text, so that lines break, and copying
// gives the text itself. Characters that control the direction of text are drawn, and have no effect. `breaks`: whether
// newlines break lines. `spaces`: whether 'all' are marked, 'some' (at an edge or beside another), or 'none'.
view.append = (parent, text, breaks = true, spaces = 'all') => {
  if (!INVISIBLE.test(text) || (spaces === 'some' && /^ ?[!-~]+( [!-~]+)*$/.test(text))) {
    parent.append(text);
    return;
  }
  const characters = Array.from(text);
  let plain = '';
  const flush = () => {
    if (plain) parent.append(plain);
    plain = '';
  };
  const isMarked = (place) => {
    if (spaces !== 'some') return spaces === 'all';
    return characters[place - 1] === ' ' || [' ', '\n', undefined].includes(characters[place + 1]);
  };
  characters.forEach((character, place) => {
    if (!isHidden(characters, place) || (character === ' ' && !isMarked(place))) {
      plain += character;
      return;
    }
    flush();
    if (character === ' ') parent.append(view.element('span', 'space', null, ' '));
    else if (character === '\t') parent.append(view.element('span', 'tab', null, '\t'));
    else if (SIGNS[character]) parent.append(view.element('span', 'sign', null, SIGNS[character]));
    else parent.append(view.element('span', 'sign framed', null, cpbpe.codePoint(character)));
    if (character === '\n' && breaks) parent.append(document.createElement('br'));
  });
  flush();
};

// The same as one text.
view.drawn = (text, space = SIGNS[' ']) => {
  const characters = Array.from(text);
  const drawn = (character, place) => {
    if (character === ' ') return space;
    return isHidden(characters, place) ? (SIGNS[character] ?? `‹${cpbpe.codePoint(character)}›`) : character;
  };
  return characters.map(drawn).join('');
};

// A piece or a symbol in an element of its own, so that its letters do not combine with those beside it.
view.piece = (text, className = 'piece') => {
  const made = view.element('bdi', className);
  view.append(made, /^\p{M}/u.test(text) ? `◌${text}` : text, false);
  return made;
};

// A piece as text for screen readers.
view.spoken = (text) =>
  Array.from(text, (character) => {
    if (character === ' ') return text.length === 1 ? 'space' : ' ';
    if (character === '\n') return ' newline ';
    return INVISIBLE.test(character) ? ` ${cpbpe.codePoint(character)} ` : character;
  }).join('').trim() || 'empty';

// Whether a piece is drawn as its bytes: a byte, or a part of a character.
view.isBytes = (model, id) => model.typeOf(id) === 'BYTE' || model.textOf(id).includes('\ufffd');

// A piece of a model as text for screen readers.
view.spokenPiece = (model, id) => {
  const text = model.textOf(id);
  return text.includes('\ufffd') ? `bytes ${view.hex(model.bytesOf(id))}` : view.spoken(text);
};

view.score = (model, id) => {
  if (id >= model.size) return 'added';
  return cpbpe.measure(model, model.scores[id]);
};

view.summary = (model) =>
  `${view.count(model.size, 'piece')}, ${model.isByteLevel ? 'byte-level' : model.rule || 'no normalizer'}`;

// Where each character of a text begins in JavaScript's count, in which characters above U+FFFF are two.
view.places = (text) => {
  if (!/[\ud800-\udfff]/.test(text)) return null;
  const places = [];
  for (let at = 0; at < text.length; at += 1) {
    places.push(at);
    const unit = text.charCodeAt(at);
    const next = text.charCodeAt(at + 1);
    if (unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000) at += 1;
  }
  places.push(text.length);
  return places;
};

// --- Tools -----------------------------------------------------------------------------------------------------------

view.tools = new Map(); // what draws a tool, by the id of its <details>

// Register a tool. While its <details> is open, `draw` is called whenever something changes, with the model of the
// tools, the text (or what is selected of it), the options, and all columns with their answers.
view.tool = (id, draw) => view.tools.set(id, draw);

// --- What the page was delivered with --------------------------------------------------------------------------------

view.data = JSON.parse(view.by('data').textContent);

// Decompress what `_packed` in `cpbpe/tools/page.py` has compressed, to bytes.
view.unpacked = async (base64) => {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
