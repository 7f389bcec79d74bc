'use strict';
// The core of cpbpe in JavaScript: models, and what they make of texts. It calls the exports of `core/wasm`, and needs
// nothing of a page, so it runs in a page, in a worker and in Node alike.

const cpbpe = {};

{
  const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
  cpbpe.TYPES = ['', 'NORMAL', 'UNKNOWN', 'CONTROL', 'USER_DEFINED', 'UNUSED', 'BYTE'];

  const encoder = new TextEncoder();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
  let core = null;

  // Start the core: `module` are the bytes of the WebAssembly file.
  cpbpe.start = async (module) => {
    core = (await WebAssembly.instantiate(module, {})).instance.exports;
  };

  cpbpe.utf8 = (text) => encoder.encode(text);
  cpbpe.text = (bytes) => decoder.decode(bytes);

  // --- What passes between JavaScript and the core -----------------------------------------------------------------
  // (Memory moves when it grows, so a view of it is made for each use, and everything that is kept is copied.)

  const give = (bytes) => {
    const at = core.room(bytes.length);
    new Uint8Array(core.memory.buffer, at, bytes.length).set(bytes);
  };
  const numbers = () => new Uint32Array(core.memory.buffer, core.numbers(), core.numbers_length()).slice();
  const bytes = () => new Uint8Array(core.memory.buffer, core.text(), core.text_length()).slice();
  const checked = (result) => {
    if (result < 0) throw new Error(decoder.decode(bytes()));
    return result;
  };
  const PREFIX = { model: -1, off: 0, on: 1 };

  // Call the core with some bytes. The result is a number; `numbers` and `bytes` have what is longer.
  cpbpe.call = (name, given, ...values) => {
    give(given);
    return checked(core[name](...values));
  };
  cpbpe.numbers = numbers;
  cpbpe.bytes = bytes;

  // --- A model -----------------------------------------------------------------------------------------------------

  cpbpe.Model = class {
    // `file` are the bytes of a .model file.
    constructor(file, name = 'model') {
      this.name = name;
      this.file = file;
      this.number = cpbpe.call('load', file);
      // 1. The pieces.
      this.size = core.pieces(this.number);
      const columns = numbers();
      this.blob = bytes();
      this.ends = columns.subarray(0, this.size);
      this.scores = new Float32Array(columns.buffer, 4 * this.size, this.size);
      this.types = Uint8Array.from(columns.subarray(2 * this.size));
      // 2. Added tokens.
      const count = core.added(this.number);
      const [places, texts] = [numbers(), bytes()];
      this.added = new Map(); // the texts of added tokens by their ids
      for (let at = 0; at < count; at += 1) {
        this.added.set(places[count + at], decoder.decode(texts.subarray(at ? places[at - 1] : 0, places[at])));
      }
      // 3. All else.
      core.about(this.number);
      const about = Array.from(numbers());
      [this.unk, this.bos, this.eos, this.pad] = about.slice(0, 4).map((id) => (id ? id - 1 : null));
      const flags = about.slice(4).map(Boolean);
      [this.hasBytes, this.isByteLevel, this.takesWhole, this.hasPrefix, this.trims, this.escapes, this.isSuffix] = flags;
      this.rule = decoder.decode(bytes()); // the pattern of a byte-level model, or the name of the normalizer
    }

    close() {
      core.unload(this.number);
    }

    // The piece of an id as bytes, and as text. Added tokens come after the pieces.
    bytesOf(id) {
      if (id >= this.size) return encoder.encode(this.added.get(id) ?? '');
      return this.blob.subarray(id ? this.ends[id - 1] : 0, this.ends[id]);
    }
    textOf(id) {
      return decoder.decode(this.bytesOf(id));
    }
    typeOf(id) {
      return id < this.size ? cpbpe.TYPES[this.types[id]] : 'ADDED';
    }
    // The id of a piece, given as bytes or text; null if there is none.
    find(piece) {
      give(typeof piece === 'string' ? encoder.encode(piece) : piece);
      const id = core.find(this.number);
      return id < 0 ? null : id;
    }

    // What an id adds in the middle of a text, in bytes.
    outputOf(id) {
      const [piece, type] = [this.bytesOf(id), id < this.size ? this.types[id] : 0];
      if (type === CONTROL) return new Uint8Array();
      if (type === BYTE) return Uint8Array.of(parseInt(decoder.decode(piece.subarray(3, 5)), 16));
      if (type === UNKNOWN || this.isByteLevel || type === 0) return type === UNKNOWN ? this.decode([id]) : piece;
      return this.escapes ? encoder.encode(decoder.decode(piece).replaceAll('▁', ' ')) : piece;
    }

    // --- Texts -----------------------------------------------------------------------------------------------------

    // Encode a text: ids, and where each begins and ends in it, in characters (not in JavaScript's units).
    encode(text, { prefix = 'model', alpha = 0, seed = 0, bos = false, eos = false, special = false } = {}) {
      for (const [wanted, id, name] of [[bos, this.bos, 'bos'], [eos, this.eos, 'eos']]) {
        if (wanted && id === null) throw new Error(`This model has no ${name}.`);
      }
      const parts = special ? this.split(text) : [text];
      const made = { ids: bos ? [this.bos] : [], begins: bos ? [0] : [], ends: bos ? [0] : [] };
      let at = 0;
      parts.forEach((part, place) => {
        if (typeof part === 'object') {
          const length = Array.from(part.text).length;
          made.ids.push(part.id);
          made.begins.push(at);
          made.ends.push((at += length));
          return;
        }
        const own = place && alpha ? mixed(mixed(BigInt(seed)) ^ BigInt(place)) : BigInt(seed);
        const halves = [Number(own & 0xffffffffn), Number(own >> 32n)];
        const count = cpbpe.call('encode', encoder.encode(part), this.number, PREFIX[prefix], alpha, ...halves);
        const found = numbers();
        for (let token = 0; token < count; token += 1) {
          made.ids.push(found[token]);
          made.begins.push(at + found[count + token]);
          made.ends.push(at + found[2 * count + token]);
        }
        if (parts.length > 1) at += Array.from(part).length;
      });
      if (eos) {
        const end = Array.from(text).length;
        made.ids.push(this.eos);
        made.begins.push(end);
        made.ends.push(end);
      }
      return made;
    }

    // How many ids a text has, without special tokens.
    count(text, prefix = 'model') {
      return cpbpe.call('count', encoder.encode(text), this.number, PREFIX[prefix]);
    }

    // The normalized text, in bytes.
    normalize(text, prefix = 'model') {
      cpbpe.call('normalize', encoder.encode(text), this.number, PREFIX[prefix]);
      return bytes();
    }

    // Where the pattern of a byte-level model cuts a text: the end of each chunk, in bytes.
    chunks(text) {
      cpbpe.call('chunks', encoder.encode(text), this.number);
      return Array.from(numbers());
    }

    // The text of ids, in bytes.
    decode(ids) {
      cpbpe.call('decode', new Uint8Array(Uint32Array.from(ids).buffer), this.number);
      return bytes();
    }

    // --- Special tokens --------------------------------------------------------------------------------------------

    // The ids of special tokens by their texts: CONTROL pieces and added tokens.
    get special() {
      if (!this.specialIds) {
        this.specialIds = new Map();
        for (let id = 0; id < this.size; id += 1) {
          if (this.types[id] !== CONTROL) continue;
          try {
            this.specialIds.set(strict.decode(this.bytesOf(id)), id);
          } catch {
            // no text can spell it
          }
        }
        for (const [id, text] of this.added) this.specialIds.set(text, id);
      }
      return this.specialIds;
    }

    // A text as parts: texts, and `{ text, id }` for special tokens between them. Of several that begin at one place,
    // the longest is taken.
    split(text) {
      const texts = [...this.special.keys()].filter(Boolean).sort((one, other) => other.length - one.length);
      if (!texts.length) return [text];
      const any = new RegExp(texts.map((one) => one.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
      const parts = [];
      let done = 0;
      for (const found of text.matchAll(any)) {
        parts.push(text.slice(done, found.index), { text: found[0], id: this.special.get(found[0]) });
        done = found.index + found[0].length;
      }
      return [...parts, text.slice(done)];
    }
  };

  // A number of 64 bits that depends on all bits of another (SplitMix64); `cpbpe/reference/merging.py` has the same.
  const MASK = (1n << 64n) - 1n;
  const mixed = (number) => {
    let made = (number + 0x9e3779b97f4a7c15n) & MASK;
    made = ((made ^ (made >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    made = ((made ^ (made >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return made ^ (made >> 31n);
  };

  cpbpe.isMergeable = (type) => type === NORMAL || type === USER_DEFINED || type === UNUSED;
}
