'use strict';
// What the page asks about models and texts. Each answer is made anew; nothing here knows the page.

{
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

  // The places inside characters as readers see them (grapheme clusters), in code points.
  // (Kept, because several models are asked about the same text.)
  let latest = { text: '', inside: new Set() };
  const insideCharacters = (text) => {
    if (latest.text === text) return latest.inside;
    const inside = new Set();
    latest = { text, inside };
    if (/^[\x00-\x0c\x0e-\x7f]*$/.test(text)) return inside;
    let at = 0;
    for (const { segment } of segmenter.segment(text)) {
      const size = segment.length === 1 ? 1 : Array.from(segment).length;
      for (let place = 1; place < size; place += 1) inside.add(at + place);
      at += size;
    }
    return inside;
  };

  // The indices of tokens that are shown together with the token before, because both share a character as readers see
  // it: a browser cannot colour half of an emoji, and draws an accent away from its letter if a border is between them.
  const joined = (model, { ids, begins, ends }, text, special) => {
    const inside = insideCharacters(text);
    const size = Array.from(text).length;
    const continues = new Map();
    const found = new Set();
    for (let at = 1; at < ids.length; at += 1) {
      const [id, before] = [ids[at], ids[at - 1]];
      if (special.has(id) || special.has(before)) continue;
      if (!continues.has(id)) {
        const first = model.outputOf(id)[0];
        continues.set(id, first >= 0x80 && first < 0xc0);
      }
      const isEmpty = begins[at - 1] === ends[at - 1] && ends[at - 1] === begins[at] && begins[at] < size;
      if (continues.get(id) || inside.has(begins[at])) found.add(at);
      else if (isEmpty && !['▁', ''].includes(model.textOf(before))) found.add(at); // a normalizer made several of one
    }
    return found;
  };

  // The tokens of a text.
  cpbpe.tokens = (model, text, options) => {
    const made = model.encode(text, options);
    const special = new Set(made.ids.filter((id) => id >= model.size || model.types[id] === 3));
    const counts = { tokens: made.ids.length, characters: Array.from(text).length, bytes: cpbpe.utf8(text).length };
    return { ...made, special, joined: joined(model, made, text, special), counts };
  };

  // The spans of a text that models cut differently. All cut at the ends of each span. Tokens around the text (bos, eos)
  // and a dummy prefix are no difference.
  cpbpe.differing = (models, answers, text) => {
    const size = Array.from(text).length;
    const cuts = answers.map(({ begins, ends }) => {
      const own = new Uint8Array(size + 1); // whether a token begins or ends at a place
      for (const place of begins) own[place] = 1;
      for (const place of ends) own[place] = 1;
      return own;
    });
    const counts = answers.map(({ ids, begins, ends, special }, number) => {
      const own = new Uint32Array(size + 1); // how many tokens begin at a place
      ids.forEach((id, at) => {
        const isEmpty = begins[at] === ends[at];
        if (!isEmpty || !(special.has(id) || models[number].textOf(id) === '▁')) own[begins[at]] += 1;
      });
      return own;
    });
    const found = [];
    let begin = 0;
    let differs = false;
    for (let place = 0; place <= size; place += 1) {
      if (place && place < size && !cuts.some((own) => own[place])) continue;
      if (place > begin && (place === size || cuts.every((own) => own[place]))) {
        if (differs && found.length && found[found.length - 1][1] === begin) found[found.length - 1][1] = place;
        else if (differs) found.push([begin, place]);
        [begin, differs] = [place, false];
      } else if (place > begin) differs = true;
      if (counts.some((own) => own[place] !== counts[0][place])) differs = true;
    }
    return found;
  };

  // Several encodings of a text, with merges skipped at random (BPE-dropout).
  cpbpe.samples = (model, text, options, alpha, seed, count = 8) =>
    Array.from({ length: count }, (_, number) => ({
      seed: seed + number,
      ids: model.encode(text, { ...options, alpha, seed: seed + number }).ids,
    }));

  // The ids of the pieces that contain a text, ignoring case, the shortest first. If the text is an id, that comes first.
  cpbpe.search = (model, wanted) => {
    if (!wanted) return [];
    const id = /^#?([0-9]{1,9})$/.exec(wanted.trim())?.[1];
    const found = id !== undefined && (Number(id) < model.size || model.added.has(Number(id))) ? [Number(id)] : [];
    if (wanted.startsWith('#')) return found;
    model.lowered ??= Array.from({ length: model.size }, (_, one) => model.textOf(one).toLowerCase());
    const keys = [wanted.toLowerCase()];
    if (!model.isByteLevel) keys.push(keys[0].replaceAll(' ', '▁'));
    const holds = (text) => keys.some((key) => text.includes(key));
    const ids = model.lowered.flatMap((text, one) => (holds(text) ? [one] : []));
    for (const [one, text] of model.added) if (holds(text.toLowerCase())) ids.push(one);
    ids.sort((one, other) => model.textOf(one).length - model.textOf(other).length || one - other);
    return [...found, ...ids.filter((one) => one !== found[0])];
  };

  // --- Merges, one by one ------------------------------------------------------------------------------------------
  // The algorithm as it reads: merge the best pair, again and again. After every merge all pairs are compared again,
  // which the core avoids, and the whole takes quadratic time. `cpbpe/reference/step_by_step.py` is the same in Python.
  //
  // Symbols are bytes, because those of byte-level models may be parts of characters. In here they are texts in which
  // each character stands for one byte, so that they can be joined and looked up; `pack` and `unpack` convert them.

  const UNKNOWN = 2, USER_DEFINED = 4, UNUSED = 5;
  const MATCHES = 64; // of the user-defined pieces at a place, sentencepiece looks at this many, the shortest first
  const DEPTH = 100; // sentencepiece splits an UNUSED piece, and UNUSED parts of it, to this depth
  const SHOWN = 3; // of the pairs that were not chosen, a step tells this many
  const LARGEST_TREE = 200; // symbols; nobody could read a larger tree

  const pack = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  const unpack = (text) => Uint8Array.from(text, (byte) => byte.charCodeAt(0));
  const joinedText = (symbols) => symbols.map((symbol) => symbol.text).join('');

  // What merging needs to know about the pieces of a model.
  class Pieces {
    constructor(model) {
      this.model = model;
      // The bits of the scores order them as sentencepiece does: -0.0 comes after 0.0, and even NaN has a place.
      this.bits = new Int32Array(model.scores.buffer, model.scores.byteOffset, model.size);
      this.ids = new Map(); // a cache: five times as fast
      this.unknown = model.types.indexOf(UNKNOWN);
      const isWanted = (id) => !model.isByteLevel && model.types[id] === USER_DEFINED;
      const found = Array.from(model.types.keys()).filter(isWanted);
      const texts = found.map((id) => pack(model.bytesOf(id))).filter((text, at) => this.find(text) === found[at]);
      this.userDefined = new Set(texts);
      this.longest = Math.max(0, ...texts.map((text) => text.length));
    }

    // The id of a piece; null if there is none.
    find(text) {
      if (this.ids.size > 100000) this.ids.clear();
      if (!this.ids.has(text)) this.ids.set(text, this.model.find(unpack(text)));
      return this.ids.get(text);
    }

    isUnused(id) {
      return this.model.types[id] === UNUSED;
    }

    // The id of a piece that merging can make; null if there is none.
    mergeable(text) {
      const id = this.find(text);
      return id !== null && cpbpe.isMergeable(this.model.types[id]) ? id : null;
    }

    // The lower it is, the better.
    rank(id) {
      const bits = this.bits[id];
      return bits >= 0 ? -bits : (bits & 0x7fffffff) + 1;
    }

    // The length of the longest user-defined piece at a place; 0 if there is none.
    userDefinedAt(text, at) {
      let [found, matches] = [0, 0];
      for (let length = 1; length <= this.longest && at + length <= text.length && matches < MATCHES; length += 1) {
        if (this.userDefined.has(text.slice(at, at + length))) [found, matches] = [length, matches + 1];
      }
      return found;
    }

    // The symbols that a text starts as: bytes; or characters, and user-defined pieces, which never merge.
    symbols(text) {
      if (this.model.isByteLevel) return Array.from(text, (byte) => ({ text: byte, merges: true }));
      const symbols = [];
      let at = 0;
      while (at < text.length) {
        const length = this.userDefinedAt(text, at);
        const character = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4][text.charCodeAt(at) >> 4];
        const end = at + (length || character);
        symbols.push({ text: text.slice(at, end), merges: !length });
        at = end;
      }
      return symbols;
    }

    // All pairs of neighbours whose joined text is a piece, the next one to merge first: the best, then the leftmost.
    // `splits` remembers, for each UNUSED piece, the two symbols that make it.
    pairs(symbols, splits) {
      const found = [];
      for (let at = 0; at + 1 < symbols.length; at += 1) {
        const [left, right] = symbols.slice(at, at + 2);
        const text = left.text + right.text;
        const id = left.merges && right.merges ? this.mergeable(text) : null;
        if (id === null) continue;
        if (this.isUnused(id)) splits.set(text, [left.text, right.text]);
        found.push({ at, text, id, rank: this.rank(id) });
      }
      return found.sort((one, other) => one.rank - other.rank || one.at - other.at);
    }

    // A symbol with its id; or, if it is UNUSED, the symbols that it is split into, with theirs.
    split(text, splits, depth = 0) {
      if (depth > DEPTH) return [{ text, id: this.find(text) ?? this.unknown }];
      if (splits.has(text)) return splits.get(text).flatMap((half) => this.split(half, splits, depth + 1));
      const id = this.mergeable(text);
      return [{ text, id: id === null || this.isUnused(id) ? this.unknown : id }];
    }
  }

  const known = new WeakMap();
  const piecesOf = (model) => {
    if (!known.has(model)) known.set(model, new Pieces(model));
    return known.get(model);
  };

  // The symbols that a text starts as, in chunks that are merged by themselves. A special token is one of its own.
  const begun = (model, text, { prefix = 'model', bos = false, eos = false, special = false }) => {
    const pieces = piecesOf(model);
    const token = (id, text) => [{ text: pack(cpbpe.utf8(text)), merges: false, id }];
    const around = (wanted, id, name) => {
      if (wanted && id === null) throw new Error(`This model has no ${name}.`);
      return wanted ? [token(id, model.textOf(id))] : [];
    };
    const chunks = model.split(text, { special, prefix }).flatMap((part) => {
      if (typeof part === 'object') return [token(part.id, part.text)];
      const normalized = model.normalize(part, prefix);
      const ends = model.isByteLevel ? model.chunks(cpbpe.text(normalized)) : [normalized.length];
      return ends.map((end, at) => pieces.symbols(pack(normalized.subarray(at && ends[at - 1], end))));
    });
    const all = [...around(bos, model.bos, 'bos'), ...chunks, ...around(eos, model.eos, 'eos')];
    return all.filter((chunk) => chunk.length);
  };

  // Replace some of these symbols: the step that does so.
  const replace = (symbols, kind, begin, end, made, about = {}) => {
    const old = symbols.splice(begin, end - begin, ...made);
    const [before, after] = [old, made].map((some) => some.map((symbol) => unpack(symbol.text)));
    return { kind, begin, end, old: before, made: after, ...about };
  };

  // Merge the best pair, until none is left.
  const merged = (pieces, symbols, splits = new Map()) => {
    const scored = (pair) => ({ piece: unpack(pair.text), score: pieces.model.scores[pair.id] });
    const steps = [];
    for (;;) {
      const [best, ...others] = pieces.pairs(symbols, splits);
      if (!best) return steps;
      const { score } = scored(best);
      const about = { score, others: others.slice(0, SHOWN).map(scored), count: others.length };
      steps.push(replace(symbols, 'merge', best.at, best.at + 2, [{ text: best.text, merges: true }], about));
    }
  };

  // The steps from chunks of symbols to ids.
  const replayed = (model, chunks) => {
    const pieces = piecesOf(model);
    const begin = chunks.flat().map((symbol) => unpack(symbol.text));
    const walls = [];
    for (const chunk of chunks.slice(0, -1)) walls.push((walls.at(-1) ?? 0) + chunk.length);
    const [steps, splits] = [[], new Map()];
    const eachChunk = (work) => {
      let first = 0; // where the chunk begins among all symbols
      for (const chunk of chunks) {
        for (const step of work(chunk)) steps.push({ ...step, begin: first + step.begin, end: first + step.end });
        first += chunk.length;
      }
    };

    // 1. Take a chunk whole if the model does that, or merge its symbols.
    eachChunk((chunk) => {
      const whole = joinedText(chunk);
      const isWhole = model.takesWhole && chunk.length > 1 && pieces.mergeable(whole) !== null;
      if (isWhole) return [replace(chunk, 'whole', 0, chunk.length, [{ text: whole, merges: true }])];
      return merged(pieces, chunk, splits);
    });

    // 2. Split UNUSED pieces, and find the ids.
    eachChunk((chunk) => {
      const found = [];
      for (let at = 0; at < chunk.length; at += 1) {
        if (chunk[at].id !== undefined) continue; // a special token
        const parts = pieces.split(chunk[at].text, splits);
        if (parts.length > 1) found.push(replace(chunk, 'split', at, at + 1, parts));
        else chunk[at] = parts[0];
        at += parts.length - 1;
      }
      return found;
    });

    // 3. A symbol that is not a piece becomes bytes; or else a run of such symbols becomes the UNKNOWN piece.
    eachChunk((chunk) => {
      const found = [];
      for (let at = 0; at < chunk.length; at += 1) {
        if (chunk[at].id !== pieces.unknown) continue;
        let end = at + 1;
        while (!model.hasBytes && end < chunk.length && chunk[end].id === pieces.unknown) end += 1;
        const hex = (byte) => byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
        const bytes = Array.from(chunk[at].text, (byte) => pieces.find(`<0x${hex(byte)}>`));
        const ids = model.hasBytes ? bytes : [pieces.unknown];
        found.push(replace(chunk, 'unknown', at, end, ids.map((id) => ({ text: pack(model.bytesOf(id)), id }))));
        at += ids.length - 1;
      }
      return found;
    });
    return { begin, walls, steps, ids: chunks.flat().map((symbol) => symbol.id) };
  };

  // How a text becomes ids: the symbols that it starts as (`begin`), where chunks begin in them (`walls`), `steps`, and
  // the ids of the symbols that are left. Each step replaces the symbols from `begin` to `end`, which are `old`, by
  // `made`. Its kind is `merge`, `whole` (a chunk that is a piece), `split` (an UNUSED piece) or `unknown`. A merge has
  // the score of its piece, the next best pairs (`others`), and the `count` of all others.
  cpbpe.steps = (model, text, options = {}) => replayed(model, begun(model, text, options));

  // Why a step is taken: a sentence as a list of texts and of pieces, which are bytes.
  cpbpe.explained = (model, { kind, old, made, score, others, count }) => {
    if (kind === 'whole') return sentence`The chunk ${made} is a piece, so it is taken whole.`;
    if (kind === 'split') return sentence`${old} is UNUSED, and taken apart again: ${made}.`;
    if (kind === 'unknown') return sentence`${old} is not a piece; it becomes ${made}.`;
    const best = model.isByteLevel ? 'lowest' : 'highest';
    const about = sentence`${[old[0]]} + ${[old[1]]} = ${made}: ${[cpbpe.measure(model, score)]}`;
    if (!count) return sentence`${about}, and no other pair can merge.`;
    const isTie = others[0].score === score;
    const next = others.flatMap((other, at) => [at ? ', ' : '', other.piece, ` ${amount(model, other.score)}`]);
    const more = count > others.length ? ` and ${count - others.length} more` : '';
    return sentence`${about}, the ${[best]}${[isTie ? ' and leftmost' : '']}. Next: ${next}${[more]}.`;
  };

  // The score of a piece, in a byte-level model its rank.
  const amount = (model, score) => (model.isByteLevel ? (0 - score).toLocaleString('en') : String(score));
  cpbpe.measure = (model, score) => `${model.isByteLevel ? 'rank' : 'score'} ${amount(model, score)}`;
  // A sentence with texts, and lists of pieces, in it.
  const sentence = (texts, ...given) => {
    const parts = texts.flatMap((text, at) => (at ? [given[at - 1], text] : [text]));
    return parts.flat().filter((part) => part !== '');
  };

  // --- Trees -------------------------------------------------------------------------------------------------------

  // The symbols that are left after some steps, as nodes: each has the nodes that merged into it (`parts`) and the
  // number of the step that made it, 0 for a symbol that the text started as.
  cpbpe.forest = ({ begin, steps }) => {
    const nodes = begin.map((symbol) => ({ symbol, parts: [], step: 0 }));
    steps.forEach((step, at) => {
      const old = nodes.slice(step.begin, step.end);
      const parts = step.kind === 'merge' ? old : [];
      const made = step.made.map((symbol) => ({ symbol, parts, step: at + 1 }));
      nodes.splice(step.begin, old.length, ...(step.kind === 'split' ? takenApart(old[0], step.made) : made));
    });
    return nodes;
  };

  const isSame = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);

  // The nodes of the symbols that an UNUSED piece is split into, with their parts.
  const takenApart = (node, made) => {
    const waiting = [node];
    const nodes = [];
    for (const symbol of made) {
      while (waiting.length && waiting[0].symbol.length > symbol.length && waiting[0].parts.length) {
        waiting.splice(0, 1, ...waiting[0].parts);
      }
      // (Another place in the text may have decided how it is split; then these parts were never made here.)
      const isMade = waiting.length && isSame(waiting[0].symbol, symbol);
      if (!isMade) return made.map((other) => ({ symbol: other, parts: [], step: 0 }));
      nodes.push(waiting.shift());
    }
    return nodes;
  };

  const NOTES = {
    UNKNOWN: 'It stands for whatever has no piece, and is not built from its text.',
    CONTROL: 'A program inserts it; text that spells it out is cut into other pieces.',
    BYTE: 'It stands for a byte of a character that has no piece, and is not built from its text.',
    USER_DEFINED: 'It is found in the text, whole, before anything merges.',
    UNUSED: 'It is UNUSED: it takes part in merging, but is taken apart again in the end.',
    ADDED: 'It was added to the model, and is not built from its text.',
  };

  // How a piece is built. A merge across the border of a piece would take away a part of it. So a text yields the piece
  // only if its own symbols merge into it, and it is enough to merge these, without normalizing. If several are left,
  // no text yields the piece. The result: whether one does, the nodes that are left (`roots`), and a sentence about it.
  cpbpe.tree = (model, id) => {
    const [pieces, type] = [piecesOf(model), model.typeOf(id)];
    const note = NOTES[type] ? [NOTES[type]] : [];
    if (!cpbpe.isMergeable(model.types[id])) return { reachable: false, roots: [], note };
    const text = pack(model.bytesOf(id));
    const symbols = pieces.symbols(text);
    const begin = symbols.map((symbol) => unpack(symbol.text));
    if (symbols.length > LARGEST_TREE) {
      const size = symbols.length.toLocaleString('en');
      return { reachable: null, roots: [], note: [`It begins as ${size} symbols, too many to be drawn.`] };
    }
    const steps = merged(pieces, symbols);
    const roots = cpbpe.forest({ begin, steps });
    const isMade = roots.length === 1 && pieces.find(text) === id;
    const reachable = isMade && type !== 'UNUSED';
    return { reachable, roots, note: isMade ? note : whyNot(pieces, id, begin, steps, roots) };
  };

  // Where each merge happens in the bytes of the text: where its symbols begin, meet and end.
  const places = (begin, steps) => {
    const sizes = begin.map((symbol) => symbol.length);
    return steps.map((step) => {
      const at = sizes.slice(0, step.begin).reduce((sum, size) => sum + size, 0);
      const old = sizes.splice(step.begin, step.end - step.begin, ...step.made.map((symbol) => symbol.length));
      return { begin: at, middle: at + old[0], end: at + old.reduce((sum, size) => sum + size, 0) };
    });
  };

  // Why the symbols of a piece do not become the piece.
  const whyNot = (pieces, id, begin, steps, roots) => {
    const bytes = pieces.model.bytesOf(id);
    const never = (why) => [`No text yields it: ${why}.`];
    if (pieces.find(pack(bytes)) !== id) return never('another piece has the same text, or none is ever found');
    if (pieces.model.types[id] === USER_DEFINED) {
      return never('too many user-defined pieces begin like it, and one of them is found');
    }
    if (pieces.model.takesWhole) return ['No merges make it; only a chunk of exactly this text becomes it, whole.'];
    const makes = (symbols) => {
      const left = symbols.map((symbol) => ({ text: pack(symbol), merges: !pieces.userDefined.has(pack(symbol)) }));
      merged(pieces, left);
      return left.length === 1;
    };
    const border = begin.findIndex((_, at) => at && makes(begin.slice(0, at)) && makes(begin.slice(at)));
    if (border < 0) return never('merging never makes two parts that together are this text');
    const middle = begin.slice(0, border).reduce((sum, symbol) => sum + symbol.length, 0);
    const first = places(begin, steps).find((place) => place.begin < middle && middle < place.end);
    const ends = roots.map((root) => root.symbol);
    if (!first) return sentence`No text yields it: its symbols end as ${ends}.`;
    const part = (begin, end) => [bytes.slice(begin, end)];
    const wrong = sentence`${part(0, middle)} + ${part(middle)} would make it, but ${part(first.begin, first.end)}`;
    return sentence`No text yields it: ${wrong} merges first. It ends as ${ends}.`;
  };
}
