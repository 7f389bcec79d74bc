'use strict';
// How a text becomes ids step by step, how a piece is built, and why models cut a text differently. Nothing here knows
// the page.

{
  // --- Merges, one by one ------------------------------------------------------------------------------------------
  // The algorithm as it reads: merge the best pair, again and again. After every merge all pairs are compared again,
  // which the core avoids, and the whole takes quadratic time. `cpbpe/reference/step_by_step.py` is the same in Python.
  //
  // Symbols are bytes, because those of byte-level models may be parts of characters. Inside this file they are texts
  // in which each character stands for one byte, so that they can be joined and looked up: `pack` makes these texts.

  const UNKNOWN = 2, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
  const MATCHES = 64; // of the user-defined pieces at a place, sentencepiece looks at this many, the shortest first
  const DEPTH = 100; // sentencepiece splits an UNUSED piece, and UNUSED parts of it, to this depth
  const SHOWN = 3; // this many of the pairs that were not chosen are listed in a step
  const LARGEST_TREE = 200; // symbols; nobody could read a larger tree
  const LARGEST_PART = 400; // characters; models are compared on less

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

    // How a piece ranks by its score; the lowest rank is the best.
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
        // (The first four bits of a character say how many bytes it has.)
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

  const made = new WeakMap();
  const piecesOf = (model) => {
    if (!made.has(model)) made.set(model, new Pieces(model));
    return made.get(model);
  };

  // The symbols that a text starts as, in chunks that are merged by themselves. A special token is one of its own.
  const firstSymbols = (model, text, { prefix = 'model', bos = false, eos = false, special = false }) => {
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

  // Replace some of these symbols, and return this as a step.
  const replace = (symbols, kind, begin, end, made, about = {}) => {
    const old = symbols.splice(begin, end - begin, ...made);
    const [before, after] = [old, made].map((some) => some.map((symbol) => unpack(symbol.text)));
    return { kind, begin, end, old: before, made: after, ...about };
  };

  // Merge the best pair, until none is left, and return the steps.
  const merged = (pieces, symbols, splits = new Map()) => {
    const scored = (pair) => ({ piece: unpack(pair.text), score: pieces.model.scores[pair.id] });
    const steps = [];
    for (;;) {
      const [best, ...others] = pieces.pairs(symbols, splits);
      if (!best) return steps;
      const score = pieces.model.scores[best.id];
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

    // 1. Take a chunk whole if the model does that, or merge its symbols. (`isPart`: `sideOf` has a part of a chunk.)
    eachChunk((chunk) => {
      const whole = joinedText(chunk);
      const canBeWhole = model.takesWhole && chunk.length > 1 && !chunk[0].isPart;
      if (canBeWhole && pieces.mergeable(whole) !== null) {
        return [replace(chunk, 'whole', 0, chunk.length, [{ text: whole, merges: true }])];
      }
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
        const bytes = Array.from(unpack(chunk[at].text), (byte) => pieces.find(cpbpe.byteName(byte)));
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
  cpbpe.steps = (model, text, options = {}) => replayed(model, firstSymbols(model, text, options));

  // Why a step is taken: a sentence, which is a list of texts and of pieces (as bytes).
  cpbpe.explained = (model, { kind, old, made, score, others, count }) => {
    if (kind === 'whole') return sentence`The chunk ${made} is a piece, so it is taken whole.`;
    if (kind === 'split') return sentence`${old} is UNUSED, and taken apart again: ${made}.`;
    if (kind === 'unknown') return sentence`${old} is not a piece; it becomes ${made}.`;
    const best = model.isByteLevel ? 'lowest' : 'highest';
    const about = sentence`${[old[0]]} + ${[old[1]]} → ${made}: ${[cpbpe.measure(model, score)]}`;
    if (!count) return sentence`${about}, and no other pair can merge.`;
    const isTie = others[0].score === score;
    const next = others.flatMap((other, at) => [at ? ', ' : '', other.piece, ` ${amount(model, other.score)}`]);
    const more = count > others.length ? ` and ${count - others.length} more` : '';
    return sentence`${about}, the ${[best]}${[isTie ? ' and leftmost' : '']}. Next: ${next}${[more]}.`;
  };

  // The score of a piece, in a byte-level model its rank.
  const amount = (model, score) => (model.isByteLevel ? (0 - score).toLocaleString('en') : String(score));
  cpbpe.measure = (model, score) => `${model.isByteLevel ? 'rank' : 'score'} ${amount(model, score)}`;
  // A sentence from a template, which is filled with lists of texts and pieces.
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
  // no text yields the piece. The result: the nodes that are left (`roots`), and a sentence about it (`note`).
  cpbpe.tree = (model, id) => {
    const [pieces, type] = [piecesOf(model), model.typeOf(id)];
    const note = NOTES[type] ? [NOTES[type]] : [];
    if (!cpbpe.isMergeable(model.types[id])) return { roots: [], note };
    const text = pack(model.bytesOf(id));
    const symbols = pieces.symbols(text);
    const begin = symbols.map((symbol) => unpack(symbol.text));
    if (symbols.length > LARGEST_TREE) {
      const size = symbols.length.toLocaleString('en');
      return { roots: [], note: [`It begins as ${size} symbols, too many to be drawn.`] };
    }
    const steps = merged(pieces, symbols);
    const roots = cpbpe.forest({ begin, steps });
    const isMade = roots.length === 1 && pieces.find(text) === id;
    return { roots, note: isMade ? note : whyNot(pieces, id, begin, steps, roots) };
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
      return never('it begins with too many user-defined pieces, and one of them is found');
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

  // --- Why models cut a text differently -----------------------------------------------------------------------------
  // Where all models end a token, no merge of theirs crosses. So between two such places each merges as if nothing else
  // were there, and it is enough to replay that part of the text.
  //
  // Places are counted in bytes of the normalized text, in which a space is a space: models that write it as U+2581 are
  // compared with models that do not.

  const SPACE = pack(cpbpe.utf8('▁'));
  const withSpaces = (model, text) => (model.escapes ? text.replaceAll(SPACE, ' ') : text);
  const asModelWrites = (model, text) => (model.escapes ? text.replaceAll(' ', SPACE) : text);
  const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
  // Where parts of these sizes meet.
  const borders = (sizes, first = 0) => sizes.slice(1).map((_, at) => first + sum(sizes.slice(0, at + 1)));

  // The places where a model cuts a text of this many characters.
  const cutsOf = (model, { ids, begins, ends }, size) => {
    const own = new Set([...begins, ...ends]);
    ids.forEach((id, at) => {
      // (If a token begins inside a character, the place where it is said to begin is no border.)
      const first = model.outputOf(id)[0];
      if (begins[at] !== begins[at - 1] && first >= 0x80 && first < 0xc0) own.delete(begins[at]);
    });
    return own.add(0).add(size);
  };

  // The smallest part of a text that holds a span and at whose ends all models cut it.
  const commonPart = (models, answers, size, begin, end) => {
    const cuts = answers.map((answer, number) => cutsOf(models[number], answer, size));
    const isCommon = (place) => cuts.every((own) => own.has(place));
    let [first, last] = [begin, Math.max(end, begin + 1)];
    while (!isCommon(first)) first -= 1;
    while (last < size && !isCommon(last)) last += 1;
    return [first, Math.min(last, size)];
  };

  // Where the pattern of a byte-level model cuts a text, in bytes from the beginning of a token. The pattern sees only
  // the text between the special tokens around this one.
  const patternCuts = (model, made, text, token, options) => {
    if (!model.isByteLevel) return [];
    const isSpecial = (id) => made.special.has(id);
    const from = made.ids.slice(0, token).findLastIndex(isSpecial) + 1;
    const count = made.ids.slice(token).findIndex(isSpecial);
    const part = [from && made.ends[from - 1], count < 0 ? undefined : made.begins[token + count]];
    const normalized = cpbpe.text(model.normalize(Array.from(text).slice(...part).join(''), options.prefix));
    const before = sum(made.ids.slice(from, token).map((id) => model.bytesOf(id).length));
    return [0, ...model.chunks(normalized)].map((place) => place - before);
  };

  // What a model makes of a part of a text: the steps, whether they lead to its tokens (`isExact`), and the special
  // tokens.
  const sideOf = (model, made, text, [begin, end], options) => {
    const pieces = piecesOf(model);
    const characters = Array.from(text);
    const isInside = (id, at) => {
      const isEmpty = made.begins[at] === made.ends[at];
      const isBefore = made.begins[at] < end || (isEmpty && end === characters.length);
      return made.begins[at] >= begin && isBefore && !(isEmpty && made.special.has(id));
    };
    const tokens = made.ids.map((id, at) => ({ id, at })).filter(({ id, at }) => isInside(id, at));
    // 1. The tokens as normalized text, in chunks.
    let cuts = tokens.length ? patternCuts(model, made, text, tokens[0].at, options) : [];
    const [chunks, special] = [[], []];
    let run = '';
    const close = () => {
      const ends = [0, ...cuts.filter((place) => place > 0 && place < run.length), run.length];
      ends.slice(1).forEach((place, at) => {
        const isPart = !cuts.includes(ends[at]) || !cuts.includes(place); // of a chunk: never taken whole
        chunks.push(pieces.symbols(run.slice(ends[at], place)).map((symbol) => ({ ...symbol, isPart })));
      });
      cuts = [];
      run = '';
    };
    for (const { id, at } of tokens) {
      const own = characters.slice(made.begins[at], made.ends[at]).join('');
      if (made.special.has(id)) {
        close();
        special.push(own);
        chunks.push([{ text: pack(cpbpe.utf8(own)), merges: false, id }]);
      } else if (id === pieces.unknown) run += pack(model.normalize(own, 'off'));
      else run += pack(model.types[id] === BYTE ? model.outputOf(id) : model.bytesOf(id));
    }
    close();
    // 2. The steps from these chunks to ids.
    const side = mergedAlone(model, chunks.filter((chunk) => chunk.length));
    // 3. Whether there is a dummy prefix in it, in front or at the end.
    const hasPrefix = (options.prefix ?? 'model') === 'model' ? model.hasPrefix : options.prefix === 'on';
    const [from, to] = [tokens[0]?.at ?? 0, (tokens.at(-1)?.at ?? 0) + 1];
    const isEdge = (at) => made.ids[at] === undefined || made.special.has(made.ids[at]);
    const hasFront = hasPrefix && !model.isSuffix && isEdge(from - 1);
    const hasBack = hasPrefix && model.isSuffix && isEdge(to);
    const isExact = isSame(side.ids, tokens.map(({ id }) => id));
    return { ...side, special, isExact, hasFront, hasBack };
  };

  // The steps from chunks to ids, and what they do to the text: where chunks meet in it (`cuts`), the part that each
  // step changes (`spans`), which places are borders between symbols in the end, each with the step that made it
  // (`borders`; -1: from the beginning), and which are borders no more, with the step that took them away (`gone`).
  const mergedAlone = (model, chunks) => {
    const symbols = chunks.flat();
    const answer = replayed(model, chunks.map((chunk) => [...chunk]));
    const { walls, steps } = answer;
    const sizes = symbols.map((symbol) => withSpaces(model, symbol.text).length);
    const found = {
      text: withSpaces(model, joinedText(symbols)),
      sizes: [...sizes],
      cuts: new Set(walls.map((at) => sum(sizes.slice(0, at)))),
      spans: [],
      borders: new Map(borders(sizes).map((place) => [place, -1])),
      gone: new Map(),
    };
    steps.forEach((step, number) => {
      const first = sum(sizes.slice(0, step.begin));
      const old = sizes.slice(step.begin, step.end);
      // (What becomes bytes has a byte for each; what is unknown, one piece for all.)
      const isUnknown = step.kind === 'unknown' && step.made.length !== sum(old);
      const own = step.made.map((symbol) => (step.kind === 'unknown' ? 1 : withSpaces(model, pack(symbol)).length));
      const made = isUnknown ? [sum(old), ...step.made.slice(1).fill(0)] : own;
      sizes.splice(step.begin, old.length, ...made);
      found.spans.push([first, first + sum(old)]);
      for (const place of borders(old, first)) {
        found.borders.delete(place);
        found.gone.set(place, number);
      }
      for (const place of borders(made, first)) found.borders.set(place, number);
    });
    return { model, chunks, symbols, ...answer, ...found };
  };

  // The name of a side's model, and a piece, for `sentence`.
  const nameOf = ({ model }) => [{ name: model.name }];
  const piece = (text) => [unpack(text)];

  // The symbol, of those that a side begins with, that a place is within.
  const symbolAround = ({ symbols, sizes }, place) => {
    const ends = [...borders(sizes), sum(sizes)];
    const at = ends.findIndex((end) => place < end);
    return at >= 0 && place > ends[at] - sizes[at] ? symbols[at] : null;
  };
  // The two symbols, of those that a side begins with, that meet at a place.
  const symbolsBeside = ({ symbols, sizes }, place) => {
    const at = borders(sizes).indexOf(place);
    return at < 0 ? [] : [symbols[at], symbols[at + 1]];
  };
  const isUserDefined = (symbol) => symbol !== null && !symbol.merges && symbol.id === undefined;

  // Why a place is a border in the end for the side `kept`, but not for `lost`. `order` says how early the two sides
  // part: before anything merges (0 or 1), where a character has no piece (2), or by a merge (3), which is the step
  // `number` of `lost`.
  const reasonAt = (kept, lost, place, shift) => {
    const [K, L] = [nameOf(kept), nameOf(lost)];
    const there = place + shift; // the same place for `lost`
    const around = symbolAround(lost, there);
    const number = lost.gone.get(there);
    const step = lost.steps[number]; // which took the border away
    const own = kept.steps[kept.borders.get(place)]; // which made it
    const made = (order, parts, marks = []) => ({ order, number: number ?? -1, parts, marks: new Map(marks) });
    // 1. Before anything merges.
    if (kept.cuts.has(place)) return made(0, patternSays(kept, L, place));
    const found = [around, ...symbolsBeside(kept, place)].find(isUserDefined);
    if (found) {
      const [finds, other] = found === around ? [L, K] : [K, L];
      const why = 'whole before anything merges, because it is user-defined';
      return made(1, sentence`${finds} finds ${piece(found.text)} ${[why]}; ${other} does not.`);
    }
    if (step?.kind === 'whole') {
      const has = pieceOf(kept.model, lost.model, step.made[0]) === null ? 'has no such piece' : 'merges its symbols';
      return made(1, sentence`${L} takes the chunk ${step.made} whole, because it is a piece; ${K} ${[has]}.`);
    }
    // 2. Characters without a piece.
    if (own?.kind === 'unknown') return made(2, sentence`${K} has no piece ${own.old}, so it becomes bytes there.`);
    if (step?.kind === 'unknown') {
      return made(2, sentence`${L} has no piece for any of ${step.old}: together they become ${step.made}.`);
    }
    if (around) {
      const character = piece(around.text);
      const bytes = ['begins with bytes, and does not merge all of'];
      return made(2, sentence`${L} begins with characters; ${K} ${bytes} ${character}.`);
    }
    // 3. By a merge.
    if (own?.kind === 'split') {
      return made(3, sentence`${K} makes ${own.old}, too, but it is UNUSED, and taken apart again.`);
    }
    return made(3, ...mergeSays(kept, lost, number, shift));
  };

  // The id that a piece of one model has in another, if merging can make it there; null if there is none.
  const pieceOf = (model, from, bytes) => piecesOf(model).mergeable(asModelWrites(model, withSpaces(from, pack(bytes))));

  const patternSays = (kept, other, place) => {
    const decoded = (text) => Array.from(cpbpe.text(unpack(text)));
    const [left, right] = [decoded(kept.text.slice(0, place)).at(-1), decoded(kept.text.slice(place))[0]];
    const both = (kind) => kind.test(left) && kind.test(right);
    const why = both(/\p{N}/u) ? 'its pattern splits digits' : 'its pattern begins a chunk there';
    const [before, after] = [[cpbpe.utf8(left)], [cpbpe.utf8(right)]];
    const cuts = sentence`${nameOf(kept)} cuts the text between ${before} and ${after} before merging`;
    return sentence`${cuts}: ${[why]}. ${other} does not.`;
  };

  // Why the side `lost` merges two symbols, by this step, and `kept` does not; and the steps that show it.
  const mergeSays = (kept, lost, number, shift) => {
    const [K, L] = [nameOf(kept), nameOf(lost)];
    const { old: [left, right], made, score } = lost.steps[number];
    const pair = sentence`${[left]} + ${[right]}`;
    const worth = (side, value) => [`(${cpbpe.measure(side.model, value)})`];
    const marks = [[lost, number + 1]];
    const id = pieceOf(kept.model, lost.model, made[0]);
    if (id === null) return [sentence`${L} merges ${pair} ${worth(lost, score)}; ${K} has no piece ${made}.`, marks];
    // It has the piece, so another merge took one of the two symbols away: one across an end of the pair.
    const ends = lost.spans[number].map((end) => kept.gone.get(end - shift)).filter((one) => one !== undefined);
    const earlier = Math.min(...ends);
    const first = kept.steps[earlier];
    if (first?.kind !== 'merge') {
      const space = lost.spans[number][0] < shift ? 'puts a space in front of the text (a dummy prefix), and ' : '';
      return [sentence`${L} ${[space]}merges ${pair} ${worth(lost, score)}; ${K} does not.`, marks];
    }
    const before = sentence`${[first.old[0]]} + ${[first.old[1]]}`;
    const own = worth(kept, kept.model.scores[id]);
    const also = pieceOf(lost.model, kept.model, first.made[0]);
    const without = sentence`has no piece ${first.made}`;
    const end = also === null ? without : sentence`merges ${pair} ${worth(lost, score)} first`;
    const parts = sentence`${K} merges ${before} ${worth(kept, first.score)} before ${pair} ${own}; ${L} ${end}.`;
    return [parts, [...marks, [kept, earlier + 1]]];
  };

  // Where two normalized texts differ: a sentence.
  const normalizersSay = (sides, texts) => {
    const parts = (text) => Array.from(cpbpe.segmenter.segment(cpbpe.text(unpack(text))), ({ segment }) => segment);
    const [one, other] = texts.map(parts);
    while (one.length && other.length && one[0] === other[0]) [one, other].forEach((some) => some.shift());
    while (one.length && other.length && one.at(-1) === other.at(-1)) [one, other].forEach((some) => some.pop());
    const [first, second] = [one, other].map((some) => some.join(''));
    const codes = (text) => Array.from(text, cpbpe.codePoint).join(' ');
    const seen = (text) => [cpbpe.utf8(text), text.length < 4 ? ` (${codes(text)})` : ''];
    const [A, B] = sides.map(nameOf);
    if (!first) return sentence`Their normalizers differ: ${A} leaves out ${seen(second)}, and ${B} keeps it.`;
    if (!second) return sentence`Their normalizers differ: ${B} leaves out ${seen(first)}, and ${A} keeps it.`;
    return sentence`Their normalizers differ: ${A} sees ${seen(first)}, and ${B} sees ${seen(second)}.`;
  };

  // What first makes two sides cut their text differently: a sentence, and the number of the step that shows it for each
  // side that has one; null if they cut it alike.
  const differenceOf = (sides) => {
    const said = (parts) => ({ parts, marks: new Map() });
    // 1. The text: special tokens, what normalizers made of it, and a space that was put in front or after it.
    const own = (at) => sides[at].special.find((token) => !sides[1 - at].special.includes(token));
    const at = own(0) === undefined ? 1 : 0;
    const token = own(at);
    const [A, B] = [nameOf(sides[at]), nameOf(sides[1 - at])];
    if (token !== undefined) {
      return said(sentence`${A} takes ${[cpbpe.utf8(token)]} as a special token; for ${B} it is text.`);
    }
    if (!sides.every((side) => side.isExact)) return said(['What happens here depends on the text around it.']);
    // (Whether each side alone has a space there, which is its dummy prefix.)
    const alone = (where, edge) => sides.map((side, at) => side[where] && edge(side.text) && !edge(sides[1 - at].text));
    const fronts = alone('hasFront', (text) => text.startsWith(' '));
    const backs = alone('hasBack', (text) => text.endsWith(' '));
    const texts = sides.map(({ text }, at) => text.slice(fronts[at] ? 1 : 0, backs[at] ? -1 : undefined));
    if (texts[0] !== texts[1]) return said(normalizersSay(sides, texts));
    // 2. Where one has a border that the other has not.
    const differing = (some, shifts) =>
      [[0, 1], [1, 0]].flatMap(([kept, lost]) => {
        const shift = shifts[lost] - shifts[kept];
        const isInside = (place) => place > shifts[kept] && place < shifts[kept] + texts[0].length;
        const isOwn = (place) => isInside(place) && !some[lost].borders.has(place + shift);
        const places = [...some[kept].borders.keys()].filter(isOwn);
        return places.map((place) => ({ kept: some[kept], lost: some[lost], place, shift }));
      });
    const found = differing(sides, fronts.map(Number));
    const who = fronts[0] || backs[0] ? 0 : 1;
    const where = [fronts[who] ? 'in front of the text (a dummy prefix)' : 'after the text'];
    const spaced = sentence`${nameOf(sides[who])} puts a space ${where}, and ${nameOf(sides[1 - who])} does not.`;
    const hasSpace = fronts[who] || backs[who];
    if (!found.length) return hasSpace && sides[0].ids.length !== sides[1].ids.length ? said(spaced) : null;
    // 3. Would there be any without the space?
    const bare = sides.map((side, at) => {
      const chunks = side.chunks.map((chunk) => [...chunk]);
      if (fronts[at]) chunks[0].shift();
      if (backs[at]) chunks.at(-1).pop();
      return fronts[at] || backs[at] ? mergedAlone(side.model, chunks.filter((chunk) => chunk.length)) : side;
    });
    if (!differing(bare, [0, 0]).length) return said([...spaced, ' Without it they would cut it alike.']);
    // 4. The earliest reason.
    const reasons = found.map(({ kept, lost, place, shift }) => reasonAt(kept, lost, place, shift));
    return reasons.sort((one, other) => one.order - other.order || one.number - other.number)[0];
  };

  // Why models cut a span of a text differently. The answer: the part of the text that was compared, from one common
  // border to another; what each model does there (`sides`), with the trees that come out (`roots`) and the numbers of
  // the steps that show a difference (`marked`); and for each model that cuts otherwise than the first, a sentence that
  // says why.
  cpbpe.why = (models, text, begin, end, options = {}) => {
    const answers = models.map((model) => cpbpe.tokens(model, text, options));
    const part = commonPart(models, answers, answers[0].counts.characters, begin, end);
    const size = part[1] - part[0];
    if (size > LARGEST_PART) {
      const many = size.toLocaleString('en');
      throw new Error(`The models have no border in common in these ${many} characters, too many to compare.`);
    }
    const sides = models.map((model, at) => sideOf(model, answers[at], text, part, options));
    const differences = sides.slice(1).map((other) => differenceOf([sides[0], other])).filter(Boolean);
    const marked = (side) => differences.map(({ marks }) => marks.get(side)).filter(Boolean);
    return {
      begin: part[0],
      end: part[1],
      sides: sides.map((side) => shownSide(side, marked(side))),
      sentences: differences.map(({ parts }) => parts),
    };
  };

  // What is shown of a side, with the numbers of the steps to point at.
  const shownSide = (side, marked) => ({
    model: side.model, begin: side.begin, walls: side.walls, steps: side.steps, ids: side.ids,
    roots: cpbpe.forest(side), marked,
  });

  // How much two texts, or lists, share at their beginnings; and of the rest, at their ends.
  const sharedEnds = (one, other) => {
    const least = Math.min(one.length, other.length);
    let front = 0;
    while (front < least && one[front] === other[front]) front += 1;
    let back = 0;
    while (back < least - front && one.at(-1 - back) === other.at(-1 - back)) back += 1;
    return [front, back];
  };

  // How far from the beginning two texts have the same cuts, among the first `most` places: the last one there.
  const sameCuts = ([one, other], most) => {
    let last = 0;
    for (let place = 0; place <= most && one.has(place) === other.has(place); place += 1) if (one.has(place)) last = place;
    return last;
  };

  // Why a model cuts what two texts share differently: what they share are their beginnings and their ends. The answer:
  // whether both are cut alike there; in each text, the part from the last common border at the beginning to the first
  // one at the end; what the model does there; and a sentence about the first step that differs.
  cpbpe.whyTexts = (model, texts, options = {}) => {
    // 1. What both share, in characters.
    const answers = texts.map((text) => cpbpe.tokens(model, text, options));
    const [one, other] = texts.map((text) => Array.from(text));
    const [front, back] = sharedEnds(one, other);
    // 2. The borders around what is cut differently. (Right beside what differs, a border may come or go.)
    const cuts = [one, other].map(({ length }, at) => cutsOf(model, answers[at], length));
    const fromEnd = cuts.map((own, at) => new Set([...own].map((place) => [one, other][at].length - place)));
    const begin = sameCuts(cuts, front - 1);
    const end = sameCuts(fromEnd, back - 1);
    const isInside = (own, from, to) => [...own].some((place) => place > from && place < to);
    const isAlike = !cuts.some((own) => isInside(own, begin, front)) && !fromEnd.some((own) => isInside(own, end, back));
    const parts = [one, other].map(({ length }) => [begin, length - end]);
    if (Math.max(...parts.map(([from, to]) => to - from)) > LARGEST_PART) {
      throw new Error('The texts have no border in common for too many characters to compare.');
    }
    // 3. The steps there, and the first of each text that the other has not. (A step in what they share is at the same
    // distance from the beginning, or from the end.)
    const sides = texts.map((text, at) => sideOf(model, answers[at], text, parts[at], options));
    const [first, last] = sharedEnds(...sides.map((side) => side.text));
    const keyOf = ({ text, steps, spans }, at, step) => {
      const [from, to] = spans[step];
      if (to > first && from < text.length - last) return `only in ${at}`;
      return `${to <= first ? from : from - text.length} ${steps[step].made.map(pack)}`;
    };
    const keys = sides.map((side, at) => side.steps.map((_, step) => keyOf(side, at, step)));
    const own = keys.map((some, at) => some.findIndex((key) => !keys[1 - at].includes(key)));
    const same = Math.min(...keys.map((some, at) => (own[at] < 0 ? some.length : own[at])));
    const then = (at, text) => {
      const step = sides[at].steps[own[at]];
      return step
        ? sentence`in the ${[text]} text ${[step.made[0]]} comes about`
        : sentence`the ${[text]} text has no step of its own`;
    };
    const begins = same ? `The first ${same === 1 ? 'step is' : `${same} steps are`} the same. Then ` : 'At once, ';
    return {
      isAlike,
      counts: answers.map(({ ids }) => ids.length),
      parts,
      sides: sides.map((side, at) => shownSide(side, own[at] < 0 ? [] : [own[at] + 1])),
      sentence: [begins, ...then(0, 'first'), ', and ', ...then(1, 'second'), '.'],
    };
  };
}
