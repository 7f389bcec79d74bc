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

view.number = (number) => (typeof number === 'number' ? number.toLocaleString('en') : String(number));

// (Test single characters only: with a `$`, Chromium 156 does not find characters above U+FFFF.)
const PICTURE = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u;
const SPECIAL = /[\s\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u;

view.codePoint = (character) =>
  'U+' + character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

// Append a text with marks for invisible characters. Spaces and tabs stay in the text, so that lines break, text
// runs in its own direction, and copying gives the text itself. Controls of the direction have no effect here. In
// prose, spaces get no mark.
view.append = (parent, text, breaks = true, prose = false) => {
  if (!SPECIAL.test(text)) {
    parent.append(text);
    return;
  }
  let plain = '';
  const flush = () => {
    if (plain) parent.append(plain);
    plain = '';
  };
  const characters = Array.from(text);
  characters.forEach((character, place) => {
    if (!SPECIAL.test(character)) {
      plain += character;
    } else if (character === '\u200d' && place && PICTURE.test(characters[place - 1]) && place + 1 < characters.length) {
      plain += character; // a part of an emoji, such as a family
    } else if (/[\u{e0020}-\u{e007f}]/u.test(character) && plain) {
      plain += character; // a part of a flag
    } else {
      flush();
      if (character === ' ' && prose) parent.append(' ');
      else if (character === ' ') parent.append(view.element('span', 'space', null, ' '));
      else if (character === '\t') parent.append(view.element('span', 'tab', null, '\t'));
      else if (character === '\n') {
        parent.append(view.element('span', 'sign', null, '⏎'));
        if (breaks) parent.append(document.createElement('br'));
      } else if (character === '\r') parent.append(view.element('span', 'sign', null, '␍'));
      else parent.append(view.element('span', 'sign', null, view.codePoint(character)));
    }
  });
  flush();
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
    return SPECIAL.test(character) ? ` ${view.codePoint(character)} ` : character;
  }).join('').trim() || 'empty';

view.score = (model, score) => {
  if (typeof score !== 'number') return String(score);
  return model.bytes ? `rank ${view.number(-score)}` : `score ${score}`;
};

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

// --- What the page was delivered with, and its answers ---------------------------------------------------------------

view.data = JSON.parse(view.by('data').textContent);

// The bytes of an element that holds them compressed, in base64.
view.unpacked = async (base64) => {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

view.models = [];

const about = (model) => ({
  name: model.name,
  summary: `${view.number(model.size)} pieces, ${model.isByteLevel ? 'byte-level' : model.rule}`,
  size: model.size,
  bytes: model.isByteLevel,
  bos: model.bos !== null,
  eos: model.eos !== null,
});
const piece = (model, id) => {
  const hex = Array.from(model.outputOf(id), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [model.textOf(id), model.typeOf(id), id < model.size ? model.scores[id] : 0, hex];
};
const pieces = (model, ids) => Object.fromEntries([...new Set(ids)].map((id) => [id, piece(model, id)]));

const answers = {
  models: () => ({ models: view.models.map(about), text: view.data.text }),
  tokens: ({ text, models, options }) => {
    const chosen = models.map((number) => view.models[number]);
    const made = chosen.map((model) => {
      try {
        const tokens = cpbpe.tokens(model, text, options);
        return { ...tokens, pieces: pieces(model, tokens.ids) };
      } catch (error) {
        return { error: error.message };
      }
    });
    const all = made.length > 1 && made.every((answer) => !answer.error);
    return { models: made, differing: all ? cpbpe.differing(chosen, made, text) : [] };
  },
  samples: ({ model, text, options, alpha, seed }) => {
    const rows = cpbpe.samples(view.models[model], text, options, alpha, seed);
    const ids = rows.flatMap((row) => row.ids);
    return { samples: rows.map((row) => [row.seed, row.ids]), pieces: pieces(view.models[model], ids) };
  },
  search: ({ model, wanted }) => {
    const found = cpbpe.search(view.models[model], wanted);
    return { found: found.slice(0, 200).map((id) => [id, piece(view.models[model], id)]), total: found.length };
  },
  steps: () => ({ error: 'not here yet' }),
  tree: () => ({ error: 'not here yet' }),
};

view.ask = async (kind, question) => answers[kind](question);
