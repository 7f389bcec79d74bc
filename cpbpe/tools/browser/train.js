'use strict';
// Training: the question to the core, and what its answer says: a model of any size, as `cpbpe.train` writes it, byte
// for byte, and how it was learned. Nothing here knows the page.

{
  const [PIECES, TRAINER, NORMALIZER, BYTE_LEVEL] = [1, 2, 3, 41703]; // the fields of a .model file
  const [NORMAL, CONTROL, BYTE] = [1, 3, 6]; // types of pieces
  const { join, fields } = cpbpe;
  const valueOf = (message, number) => fields(message).find((one) => one.number === number)?.value;

  // --- Options -------------------------------------------------------------------------------------------------------

  // The options that a model file records: in which message, as which field, and which value is not written, because it
  // is sentencepiece's default. The vocabulary size is always written.
  const RECORDED = {
    vocab_size: [TRAINER, 4, null],
    character_coverage: [TRAINER, 10, 0.9995],
    max_sentence_length: [TRAINER, 18, 4192],
    split_by_whitespace: [TRAINER, 22, true],
    split_digits: [TRAINER, 25, false],
    allow_whitespace_only_pieces: [TRAINER, 26, false],
    byte_fallback: [TRAINER, 35, false],
    add_dummy_prefix: [NORMALIZER, 3, true],
    remove_extra_whitespaces: [NORMALIZER, 4, true],
  };
  const NO_LIMIT = 2 ** 30; // what a file records of a sentence length of 0

  // The fields of a message, with these options put into it. `place`: which message it is.
  const recording = (message, place, options) => {
    const kept = new Map(fields(message).map(({ number, all }) => [number, all]));
    for (const [name, [where, number, usual]] of Object.entries(RECORDED)) {
      if (where !== place) continue;
      let value = options[name];
      if (name === 'max_sentence_length') value ||= NO_LIMIT;
      const written = name === 'character_coverage' ? Float32Array.of(value) : value;
      if (value === usual) kept.delete(number);
      else kept.set(number, cpbpe.message([[number, written]]));
    }
    return [...kept].sort(([one], [other]) => one - other).map(([, all]) => all);
  };

  // What does not depend on the text: pieces and settings, from the file of a model that has learned nothing.
  // (`cpbpe/tools/page.py` makes these files.)
  const readBase = (file, options) => {
    const all = fields(file);
    const byteLevel = all.find(({ number }) => number === BYTE_LEVEL)?.value;
    const pieces = all.filter(({ number }) => number === PIECES).map(({ value }) => {
      return { text: valueOf(value, 1), type: valueOf(value, 3) ?? NORMAL };
    });
    return {
      isByteLevel: Boolean(byteLevel),
      pattern: (byteLevel && valueOf(byteLevel, 1)) ?? new Uint8Array(),
      pieces: pieces.filter(({ type }) => type !== BYTE || options.byte_fallback),
      others: all.filter(({ number }) => number !== PIECES),
    };
  };

  // What to ask the core: the name of a call, the bytes that it is given, and its other values. `base` is the file of a
  // model that has learned nothing, `corpus` are the bytes of the text.
  cpbpe.training = (base, options, corpus) => {
    const { isByteLevel, pattern, pieces } = readBase(base, options);
    const special = pieces.filter(({ type }) => type !== NORMAL).map(({ text }) => text);
    const NUL = Uint8Array.of(0);
    const texts = isByteLevel ? [pattern, ...special] : special;
    const head = join(texts.flatMap((text, at) => (at ? [NUL, text] : [text])));
    const given = join([new Uint8Array(Uint32Array.of(head.length).buffer), head, corpus]);
    if (isByteLevel) {
      const merges = Math.max(0, options.vocab_size - pieces.length);
      return { name: 'train_bytes', given, values: [merges, MOST_BYTES, options.ties === 'minbpe'] };
    }
    // The flags of `train` in core/wasm/src/train.rs, in its order.
    const flags = [
      true, true, options.split_digits, options.split_by_whitespace, false, options.allow_whitespace_only_pieces,
      options.add_dummy_prefix, options.remove_extra_whitespaces,
    ].reduce((bits, flag, bit) => bits | (Number(flag) << bit), 0);
    const { vocab_size: size, character_coverage: coverage, max_sentence_length: longest } = options;
    return { name: 'train', given, values: [flags, size, pieces.length, coverage, LONGEST_PIECE, longest] };
  };
  const MOST_BYTES = 7999; // no model can hold a longer piece
  const LONGEST_PIECE = 16; // characters

  // --- What was learned ----------------------------------------------------------------------------------------------

  const LONGER = ' Raise the longest line, or set it to 0 for no limit.';
  const SKIPPED = ['empty', 'too long', 'with U+2585, which is reserved', 'blank'];
  const counted = (count, one, more = `${one}s`) => `${count.toLocaleString('en')} ${count === 1 ? one : more}`;

  // The result of a training, of which every size is a model: pieces are learned one after the other.
  cpbpe.Trained = class {
    // `numbers` and `bytes` are the answer of the core to what `cpbpe.training` asks.
    constructor(base, options, { numbers, bytes: text }) {
      this.options = options;
      this.base = readBase(base, options);
      let at = 0;
      const take = (count) => numbers.subarray(at, (at += count));
      const wide = (count) => Float64Array.from({ length: count }, () => numbers[at++] + numbers[at++] * 2 ** 32);
      // 1. Texts, and those that were left out.
      const tallies = wide(11);
      [this.sentences, this.bytes, this.broken] = [tallies[0], tallies[1], tallies[10]];
      this.skipped = SKIPPED.map((reason, row) => {
        const [sentences, bytes] = tallies.subarray(2 * row + 2);
        return { reason, sentences, bytes };
      });
      // 2. Merges.
      [this.merges] = take(1);
      const ends = take(this.merges);
      this.pieces = Array.from(ends, (end, row) => text.subarray(row ? ends[row - 1] : 0, end));
      this.pairs = take(2 * this.merges);
      this.frequencies = wide(this.merges);
      this.symbols = wide(this.merges + 1);
      // 3. Characters.
      const characters = () => {
        const [count] = take(1);
        const codes = Array.from(take(count));
        const counts = wide(count);
        return codes.map((code, row) => ({ text: String.fromCodePoint(code), count: counts[row] }));
      };
      const isByteLevel = this.base.isByteLevel;
      [this.characters, this.dropped] = isByteLevel ? [[], []] : [characters(), characters()];
      // The texts of the symbols that are not merges.
      const bytesAlone = this.base.pieces.filter(({ type }) => type === NORMAL).map(({ text }) => text);
      this.singles = isByteLevel ? bytesAlone : this.characters.map(({ text }) => cpbpe.utf8(text));
      // 4. How much text there is. Spaces, which are U+2581 now, are one byte each.
      const size = ({ text }) => (text === '▁' ? 1 : cpbpe.utf8(text).length);
      const seen = [...this.characters, ...this.dropped];
      const nuls = isByteLevel ? 0 : wide(1)[0];
      this.textBytes = isByteLevel ? this.symbols[0] : seen.reduce((sum, one) => sum + one.count * size(one), nuls);
      // With byte fallback, a character that was left out is one symbol, and as many tokens as it has bytes.
      this.extra = options.byte_fallback
        ? this.dropped.reduce((sum, { text, count }) => sum + count * (cpbpe.utf8(text).length - 1), 0) : 0;
    }

    // How many pieces the smallest model has, which has no merges; and one with this many merges.
    get least() {
      return this.base.pieces.length + this.characters.length;
    }
    size(merges = this.merges) {
      return this.least + merges;
    }

    // The text of a symbol, in bytes.
    bytesOf(symbol) {
      return symbol < this.singles.length ? this.singles[symbol] : this.pieces[symbol - this.singles.length];
    }

    // How many tokens the text has for each of its bytes, after this many merges.
    rate(merges) {
      return (this.symbols[merges] + this.extra) / this.textBytes;
    }

    // Why there is no model; empty if there is one.
    get problem() {
      const { vocab_size: wanted } = this.options;
      if (!this.textBytes) {
        if (this.base.isByteLevel || !this.sentences) return 'There is nothing to train on: the text is empty.';
        const left = this.skipped.filter(({ sentences }) => sentences);
        const reasons = left.map(({ reason, sentences }) => `${sentences} ${reason}`).join(', ');
        const all = counted(this.sentences, 'line was', 'lines were');
        return `There is nothing to train on: ${all} left out (${reasons}).${this.skipped[1].sentences ? LONGER : ''}`;
      }
      if (this.least <= wanted) return '';
      const special = this.base.pieces.filter(({ type }) => ![NORMAL, BYTE].includes(type)).length;
      const bytes = this.base.pieces.length - special;
      const parts = [counted(special, 'special piece')];
      if (bytes) parts.push(counted(bytes, 'byte'));
      if (this.characters.length) parts.push(counted(this.characters.length, 'character'));
      const smaller = this.options.character_coverage > 0.98 && this.characters.length ? ', or a smaller coverage' : '';
      return `A vocabulary of ${wanted.toLocaleString('en')} is too small: this text with these options needs ` +
        `${this.least.toLocaleString('en')} at least, for ${parts.join(', ')}. Choose a larger size${smaller}.`;
    }

    // What may not be as intended.
    get warnings() {
      const found = [];
      if (this.size() < this.options.vocab_size) {
        const [wanted, least] = [this.options.vocab_size, this.least].map((size) => size.toLocaleString('en'));
        found.push(`The text gives ${least} to ${counted(this.size(), 'piece')} with these options, ` +
          `and ${wanted} were asked for. The largest vocabulary is shown; more text gives a larger one.`);
      }
      for (const { reason, sentences, bytes } of this.base.isByteLevel ? [] : this.skipped.slice(1)) {
        if (!sentences) continue;
        const share = (100 * bytes) / Math.max(1, this.bytes);
        const size = `${share < 1 ? share.toFixed(2) : Math.round(share)} % of the bytes`;
        found.push(`${counted(sentences, 'line was', 'lines were')} left out: ${reason} (${size}).` +
          (reason === SKIPPED[1] ? LONGER : ''));
      }
      if (this.dropped.length) {
        const times = this.dropped.reduce((sum, { count }) => sum + count, 0);
        const first = this.dropped.slice(0, 20).map(({ text }) => text).join(' ');
        const what = this.options.byte_fallback ? 'bytes' : 'the unknown piece';
        const characters = counted(this.dropped.length, 'character');
        found.push(`The coverage leaves out ${characters}, seen ${counted(times, 'time')}, ` +
          `which will be ${what}: ${first}${this.dropped.length > 20 ? ' …' : ''}`);
      }
      const empty = this.frequencies.reduce((sum, count) => sum + !count, 0);
      if (empty) {
        found.push(`The last ${counted(empty, 'merge')} joined pairs that the text no longer had, as in ` +
          'sentencepiece: everything else was merged. A smaller vocabulary loses nothing.');
      }
      if (this.broken) {
        const what = this.base.isByteLevel ? 'The text is' : counted(this.broken, 'line is', 'lines are');
        found.push(`${what} not valid UTF-8: every invalid byte was trained on as U+FFFD.`);
      }
      const returns = this.characters.find(({ text }) => text === '\r')?.count ?? 0;
      if (returns * 2 > this.sentences) {
        found.push(`The text has ${counted(returns, 'carriage return')} (U+000D): lines that end in \\r\\n keep it.`);
      }
      return found;
    }

    // The .model file of the model with this many merges: what `cpbpe.train` writes for a vocabulary of that size.
    file(merges = this.merges) {
      const { isByteLevel, pieces, others } = this.base;
      // 1. Pieces: those of the base, and what was learned: at their end, or in a byte-level model after the bytes.
      const learned = [...this.pieces.slice(0, merges), ...(isByteLevel ? [] : this.singles)];
      const last = isByteLevel ? pieces.findIndex(({ type }) => type === CONTROL) : pieces.length;
      const before = pieces.slice(0, last < 0 ? pieces.length : last);
      const rows = [...before, ...learned.map((text) => ({ text, type: NORMAL })), ...pieces.slice(before.length)];
      // 2. Scores fall from 0, or from -0, as sentencepiece has it.
      let rank = 0;
      const score = () => (isByteLevel ? 0 : -0) - rank++;
      const written = rows.map(({ text, type }) => {
        const piece = [[1, text], [2, Float32Array.of(type === NORMAL ? score() : 0)]];
        return [PIECES, type === NORMAL ? piece : [...piece, [3, type]]];
      });
      // 3. Settings.
      const options = { ...this.options, vocab_size: this.size(merges) };
      const settings = others.map(({ number, all, value }) => {
        if (isByteLevel || (number !== TRAINER && number !== NORMALIZER)) return all;
        return [number, recording(value, number, options)];
      });
      return cpbpe.message([...written, ...settings]);
    }

    // --- A text at every size ----------------------------------------------------------------------------------------

    // A text as units, which no merge divides: characters, or bytes. Each says until how many merges it begins a token
    // (`until`; Infinity if it always does). So the tokens of a model of any size are found in one pass. `model` has all
    // merges.
    //
    // (This is exact. Merging takes the best pair again and again. Until it takes a merge that a smaller model does not
    // have, both models do the same, and then the smaller one is done. So a unit counts the highest merge until then.)
    units(model, text) {
      const { ids, begins, ends } = model.encode(text);
      const characters = Array.from(text);
      this.borders ??= new Map();
      return ids.flatMap((id, at) => {
        if (model.types[id] !== NORMAL) {
          const isByte = model.types[id] === BYTE;
          const shown = isByte ? model.outputOf(id) : cpbpe.utf8(characters.slice(begins[at], ends[at]).join(''));
          return [{ bytes: shown, until: Infinity }];
        }
        if (!this.borders.has(id)) this.borders.set(id, this.unitsOf(model.bytesOf(id)));
        return this.borders.get(id);
      });
    }

    // The units of a piece.
    unitsOf(piece) {
      const isByteLevel = this.base.isByteLevel;
      const key = (bytes) => (isByteLevel ? String.fromCharCode(...bytes) : cpbpe.text(bytes));
      this.ranks ??= new Map(this.pieces.map((bytes, rank) => [key(bytes), rank]));
      const symbols = Array.from(key(piece), (text, place) => ({ text, place }));
      const units = symbols.map(({ text }) => {
        const bytes = isByteLevel ? Uint8Array.of(text.charCodeAt(0)) : cpbpe.utf8(text === '▁' ? ' ' : text);
        return { bytes, until: Infinity };
      });
      // (The ranks of pairs are kept, because a piece of a text that no pattern cuts may have thousands of bytes.)
      const rankAt = (at) => {
        const [left, right] = symbols.slice(at, at + 2);
        return (right && this.ranks.get(left.text + right.text)) ?? Infinity;
      };
      const ranks = symbols.map((_, at) => rankAt(at));
      let highest = 0;
      for (let best = Math.min(...ranks); best < Infinity; best = Math.min(...ranks)) {
        highest = Math.max(highest, best + 1);
        const at = ranks.indexOf(best);
        const [gone] = symbols.splice(at + 1, 1);
        ranks.splice(at + 1, 1);
        symbols[at].text += gone.text;
        units[gone.place].until = highest;
        for (const changed of [at - 1, at]) if (changed >= 0) ranks[changed] = rankAt(changed);
      }
      return units;
    }
  };
}
