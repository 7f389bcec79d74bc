'use strict';
// The core of cpbpe in JavaScript: models, and what they make of texts. It calls the exports of `core/wasm`, and needs
// no page: it also runs in a worker and in Node. (Models need `protobuf.js`, too.)

const cpbpe = {};

{
  const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
  cpbpe.TYPES = ['', 'NORMAL', 'UNKNOWN', 'CONTROL', 'USER_DEFINED', 'UNUSED', 'BYTE'];
  // Whether merging can make pieces of a type.
  cpbpe.isMergeable = (type) => type === NORMAL || type === USER_DEFINED || type === UNUSED;
  cpbpe.hex = (number, digits = 2) => number.toString(16).toUpperCase().padStart(digits, '0');
  // What the piece of a byte is called, and a character as a code point.
  cpbpe.byteName = (byte) => `<0x${cpbpe.hex(byte)}>`;
  cpbpe.codePoint = (character) => `U+${cpbpe.hex(character.codePointAt(0), 4)}`;

  const encoder = new TextEncoder();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
  let [module, core] = [null, null];

  // Start the core: `file` are the bytes of the WebAssembly file.
  cpbpe.start = async (file) => {
    module = await WebAssembly.compile(file);
    restart();
  };
  const restart = () => {
    core = new WebAssembly.Instance(module, {}).exports;
  };

  cpbpe.utf8 = (text) => encoder.encode(text);
  // Bytes as text; null if they are not UTF-8.
  cpbpe.strictText = (bytes) => {
    try {
      return strict.decode(bytes);
    } catch {
      return null;
    }
  };
  // Bytes as text, whatever they are. Each byte that belongs to no character is one U+FFFD, as in Python. (`decoder`
  // would make one of several.)
  cpbpe.text = (bytes) => {
    const whole = cpbpe.strictText(bytes);
    if (whole !== null) return whole;
    let [text, at] = ['', 0];
    while (at < bytes.length) {
      // How many bytes the character has, as the first of them says.
      const size = [0x80, 0xc0, 0xe0, 0xf0].findLastIndex((lead) => bytes[at] >= lead) + 1 || 1;
      const character = cpbpe.strictText(bytes.subarray(at, at + size));
      text += character ?? '\ufffd';
      at += character === null ? 1 : size;
    }
    return text;
  };
  cpbpe.join = (parts) => {
    const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    parts.reduce((at, part) => (joined.set(part, at), at + part.length), 0);
    return joined;
  };
  // How many characters a text has. (An array of them would take a hundred bytes for each.)
  cpbpe.length = (text) => {
    let count = 0;
    for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) count += 1;
    return count;
  };

  // --- What passes between JavaScript and the core -----------------------------------------------------------------
  // (Memory moves when it grows, so a view of it is made for each use, and everything that is kept is copied.)

  const numbers = () => new Uint32Array(core.memory.buffer, core.numbers(), core.numbers_length()).slice();
  const bytes = () => new Uint8Array(core.memory.buffer, core.text(), core.text_length()).slice();
  const NOTHING = new Uint8Array();
  const PREFIX = { model: -1, off: 0, on: 1 };

  // Call the core with some bytes. The result is a number; `numbers` and `bytes` have what is longer.
  cpbpe.call = (name, given, ...values) => {
    if (!core[name]) throw new Error(`engine.wasm is older than these scripts: it has no ${name}. Run .ci/wasm.`);
    let result;
    try {
      const at = core.room(given.length);
      new Uint8Array(core.memory.buffer, at, given.length).set(given);
      result = core[name](...values);
    } catch (error) {
      // What was half done may be in any state, so a new core takes over. Models are loaded again when they are used.
      restart();
      throw new Error(`The core gave up on this (${error.message}): it ran out of memory, or has a mistake, which ` +
        'you can report. Everything else still works.');
    }
    if (result < 0) throw new Error(decoder.decode(bytes()));
    return result;
  };
  cpbpe.numbers = numbers;
  cpbpe.bytes = bytes;

  // What a file says in addition to the model, as `Carried` in cpbpe/model/spec.py. Only the flags of tokens change what
  // texts become, so everything else is ignored if it is damaged.
  const CARRIED = 41701;
  const FLAGS = ['plain', 'lstrip', 'rstrip', 'single_word', 'late', 'normalized'];
  const carriedBy = (file) => {
    const found = cpbpe.fields(file, CARRIED)?.at(-1); // (the last one counts)
    let carried;
    try {
      carried = JSON.parse(strict.decode(found?.value ?? NOTHING));
    } catch {
      // as if it said nothing
    }
    const { options = {}, roles = {}, chat_templates = {}, tokens = {} } = Object(carried);
    const areFlags = (flags) => Array.isArray(flags) && flags.every((flag) => FLAGS.includes(flag));
    if (Object(tokens) !== tokens || Array.isArray(tokens) || !Object.values(tokens).every(areFlags)) {
      throw new Error('The list of tokens in this file is damaged. Convert the original again.');
    }
    return { options: Object(options), roles: Object(roles), templates: Object(chat_templates), tokens };
  };

  // --- A model -----------------------------------------------------------------------------------------------------

  cpbpe.Model = class {
    // `file` are the bytes of a .model file.
    constructor(file, name = 'model') {
      this.name = name;
      this.file = file;
      // 1. The pieces.
      this.size = cpbpe.call('pieces', NOTHING, this.number);
      const columns = numbers();
      this.blob = bytes();
      this.ends = columns.subarray(0, this.size);
      this.scores = new Float32Array(columns.buffer, 4 * this.size, this.size);
      this.types = Uint8Array.from(columns.subarray(2 * this.size));
      this.read = new Map(); // the texts of pieces that were asked for
      // 2. All else, in the order that `facts` in core/wasm has.
      cpbpe.call('facts', NOTHING, this.number);
      const [about, blob] = [Array.from(numbers()), bytes()];
      const take = (count) => about.splice(0, count);
      [this.unk, this.bos, this.eos, this.pad] = take(4).map((id) => (id ? id - 1 : null));
      [this.hasBytes, this.isByteLevel, this.takesWhole, this.hasPrefix, this.prefixesSpace, this.trims, this.escapes,
        this.isSuffix, this.carries] = take(9).map(Boolean);
      const ids = take((about.length - 2) / 2);
      const parts = about.map((end, at) => blob.subarray(at ? about[at - 1] : 0, end)); // only the ends are left
      this.rule = decoder.decode(parts[0]); // the pattern of a byte-level model, or the name of the normalizer
      this.surface = parts[1]; // what the unknown piece is decoded to, in bytes
      // 3. Tokens that are no pieces, or have flags.
      this.carried = carriedBy(this.carries ? file : NOTHING);
      this.flags = new Map(Object.entries(this.carried.tokens));
      this.added = new Map(ids.map((id, at) => [id, cpbpe.strictText(parts[2 + at])])); // their texts by their ids
      const isWrong = ([id, text]) => !text || id < this.size || (this.find(text) !== null && !this.flags.has(text));
      if (new Set(this.added.values()).size < ids.length || [...this.added].some(isWrong)) {
        throw new Error('The tokens that were added to this model are damaged. Add them to the original again.');
      }
      this.#findTokens();
    }

    // The core's number of this model. A core that was started anew has to load it again.
    get number() {
      if (this.core !== core) this.loaded = cpbpe.call('load', this.file);
      this.core = core;
      return this.loaded;
    }

    close() {
      if (this.core === core) core.unload(this.loaded);
    }

    // The piece of an id as bytes, and as text. Added tokens come after the pieces.
    bytesOf(id) {
      if (id >= this.size) return encoder.encode(this.added.get(id) ?? '');
      return this.blob.subarray(id ? this.ends[id - 1] : 0, this.ends[id]);
    }
    textOf(id) {
      if (!this.read.has(id)) this.read.set(id, cpbpe.text(this.bytesOf(id)));
      return this.read.get(id);
    }
    typeOf(id) {
      return id < this.size ? cpbpe.TYPES[this.types[id]] : 'ADDED';
    }
    // The id of a piece, given as bytes or text; null if there is none.
    find(piece) {
      const id = cpbpe.call('find', typeof piece === 'string' ? encoder.encode(piece) : piece, this.number);
      return id ? id - 1 : null;
    }

    // What an id adds in the middle of a text, in bytes; as `ModelFacts.bytes_of` in Python.
    outputOf(id) {
      if (this.shown.has(id)) return encoder.encode(this.shown.get(id));
      const [piece, type] = [this.bytesOf(id), this.types[id]];
      if (type === CONTROL) return NOTHING;
      if (type === UNKNOWN) return this.surface;
      if (type === BYTE) return Uint8Array.of(parseInt(decoder.decode(piece.subarray(3, 5)), 16));
      if (this.isByteLevel) return piece;
      // U+2581 stands for a space. (The piece may not be UTF-8, so it is not decoded.)
      const isSpace = (at) => piece[at] === 0xe2 && piece[at + 1] === 0x96 && piece[at + 2] === 0x81;
      const output = [];
      for (let at = 0; at < piece.length; at += isSpace(at) ? 3 : 1) output.push(isSpace(at) ? 0x20 : piece[at]);
      return Uint8Array.from(output);
    }

    // --- Texts -----------------------------------------------------------------------------------------------------

    // Encode a text: ids, and where each begins and ends in it, in characters (not in JavaScript's units). `alpha` is
    // the chance that a merge is skipped. `row` are the parts of the text, if they are known.
    encode(text, { prefix = 'model', alpha = 0, seed = 0, bos = false, eos = false, special = false, row } = {}) {
      for (const [wanted, id, name] of [[bos, this.bos, 'bos'], [eos, this.eos, 'eos']]) {
        if (wanted && id === null) throw new Error(`This model has no ${name}.`);
      }
      if (!(alpha >= 0 && alpha <= 1)) throw new Error(`The chance of skipping a merge is from 0 to 1, not ${alpha}.`);
      const parts = row ?? this.split(text, { special, prefix });
      const later = row && this.carried.options.prefix_after_special === false ? 'off' : prefix;
      const made = { ids: bos ? [this.bos] : [], begins: bos ? [0] : [], ends: bos ? [0] : [] };
      let at = 0;
      parts.forEach((part, place) => {
        if (typeof part === 'object') {
          made.ids.push(part.id);
          made.begins.push(at);
          made.ends.push((at += cpbpe.length(part.text)));
          return;
        }
        // Each part has a seed of its own; the first one has that of the text.
        const own = BigInt.asUintN(64, place ? mixed(mixed(BigInt(seed)) ^ BigInt(place)) : BigInt(seed));
        const halves = [Number(own & 0xffffffffn), Number(own >> 32n)];
        const count = cpbpe.call('encode', encoder.encode(part), this.number, PREFIX[place ? later : prefix], alpha, ...halves);
        const found = numbers();
        for (let token = 0; token < count; token += 1) {
          made.ids.push(found[token]);
          made.begins.push(at + found[count + token]);
          made.ends.push(at + found[2 * count + token]);
        }
        if (parts.length > 1) at += cpbpe.length(part); // (of a single part, nobody asks where it ends)
      });
      if (eos) {
        const end = cpbpe.length(text);
        made.ids.push(this.eos);
        made.begins.push(end);
        made.ends.push(end);
      }
      return made;
    }

    // How many ids a text has. Special tokens in it are text.
    count(text, prefix = 'model') {
      const ids = (part) => cpbpe.call('count', encoder.encode(part), this.number, PREFIX[prefix]);
      const parts = this.split(text, { prefix });
      return parts.reduce((sum, part) => sum + (typeof part === 'object' ? 1 : ids(part)), 0);
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

    // The text of ids, in bytes. Tokens that are shown divide it: what follows one is decoded as a text by itself.
    decode(ids) {
      const used = (id) => Number.isInteger(id) && id >= 0 && (id < this.size || this.added.has(id));
      const wrong = ids.find((id) => !used(id));
      if (wrong !== undefined) throw new Error(`There is no id ${wrong}.`);
      const keeps = Boolean(this.carried.options.keep_space_after_special);
      const parts = [];
      let [segment, kept] = [[], 0];
      const made = (kept) => {
        cpbpe.call('decode', new Uint8Array(Uint32Array.from(segment).buffer), this.number, kept);
        return bytes();
      };
      const end = () => {
        parts.push(made(kept));
        segment = [];
      };
      ids.forEach((id) => {
        const text = this.shown.get(id);
        if (text === undefined) {
          segment.push(id);
          return;
        }
        const strips = keeps && this.hasPrefix && !this.trims && !this.isByteLevel && !parts.length && !made(1).length;
        end();
        parts.push(encoder.encode(strips ? text.replace(/^ /, '') : text));
        kept = Number(keeps);
      });
      end();
      return cpbpe.join(parts);
    }

    // --- Special tokens: cpbpe/tokenizer/special_tokens.py does the same, and says what their flags mean -------------

    // `special`: the ids of special tokens by their texts; `texts`: the reverse; `plain`: the ids of tokens that every
    // text is searched for; `shown`: what tokens are decoded to, by their ids, if the core would decode them to something else.
    #findTokens() {
      const ids = new Map();
      for (let id = 0; id < this.size; id += 1) {
        const piece = this.bytesOf(id);
        const text = this.types[id] === CONTROL ? cpbpe.strictText(piece) : null;
        if (text !== null) ids.set(text, id); // (else no text can spell it)
      }
      for (const [id, text] of this.added) ids.set(text, id);
      for (const text of this.flags.keys()) {
        const id = ids.get(text) ?? this.find(text);
        if (id !== null) ids.set(text, id);
      }
      const isPlain = ([text]) => this.#has(text, 'plain');
      this.special = new Map([...ids].filter((row) => !isPlain(row)));
      this.plain = new Map([...ids].filter(isPlain));
      this.shown = new Map();
      for (const [text, id] of [...this.special, ...this.plain]) {
        if (!this.added.has(id) && !this.flags.has(text)) continue;
        const name = this.#has(text, 'normalized') ? this.#normalized(text) : text;
        const isForTheCore = id < this.size && this.types[id] !== CONTROL && name === text;
        const isSpaced = name !== text || this.carried.options.keep_space_after_special;
        if (!isForTheCore) this.shown.set(id, isSpaced ? name.replaceAll('▁', ' ') : text);
      }
      this.texts = new Map([...this.special].map(([text, id]) => [id, text]));
      this.searches = {}; // what `split` has made of these
    }
    #has(token, flag) {
      return Boolean(this.flags.get(token)?.includes(flag));
    }
    #normalized(text) {
      return decoder.decode(this.normalize(text, this.prefixesSpace ? 'model' : 'off'));
    }

    // A text as parts: texts, and `{ text, id }` for the tokens between them. Without `special`, only plain tokens are
    // looked for.
    split(text, { special = false, prefix = 'model' } = {}) {
      if (!(prefix in PREFIX)) throw new Error(`The prefix is ${Object.keys(PREFIX).join(', ')}, not ${prefix}.`);
      const ids = special ? new Map([...this.plain, ...this.special]) : this.plain;
      if (!ids.size) return [text];
      const which = special ? 'all' : 'plain';
      this.searches[which] ??= this.#searches([...ids.keys()]);
      const { steps, normalized } = this.searches[which];
      let parts = [cpbpe.text(encoder.encode(text))]; // (halves of surrogate pairs are gone)
      for (const step of steps) {
        parts = parts.flatMap((part) => (typeof part === 'object' ? [part] : this.#cut(part, step, ids)));
      }
      for (const part of normalized.size ? parts.filter((one) => one && typeof one === 'string') : []) {
        const found = decoder.decode(this.normalize(part, 'off'));
        const token = [...normalized.keys()].find((one) => found.includes(normalized.get(one)));
        if (token !== undefined) {
          throw new Error(`The text may hold the token ${token}, which this model looks for in normalized text. ` +
            'The page cannot do that; cpbpe encode can.');
        }
      }
      return parts;
    }

    // What to look for, step by step: of several tokens that begin at one place, the longest is taken. `normalized`: the
    // tokens that are looked for in normalized text, each with what such a text must hold at least.
    #searches(texts) {
      const isLate = (text) => this.#has(text, 'late');
      const isNormalized = (text) => this.#has(text, 'normalized');
      const usual = texts.filter((text) => !isNormalized(text)).sort((one, other) => other.length - one.length);
      const steps = [usual.filter((text) => !isLate(text)), usual.filter(isLate)].filter((some) => some.length);
      const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      const inner = (text) => decoder.decode(this.normalize(text, 'off')).replace(/^[▁ ]+|[▁ ]+$/g, '');
      return {
        steps: steps.map((some) => new RegExp(some.map(escaped).join('|'), 'g')),
        normalized: new Map(texts.filter(isNormalized).map((text) => [text, inner(text)])),
      };
    }

    // The parts of a text that one step finds.
    #cut(text, step, ids) {
      const found = [];
      let free = 0; // where the last token ends, with its spaces
      for (const { 0: token, index } of text.matchAll(step)) {
        let [begin, end] = [index, index + token.length];
        const around = [text.slice(Math.max(0, begin - 2), begin), text.slice(end, end + 2)];
        if (this.#has(token, 'single_word') && (WORD_ENDS.test(around[0]) || WORD_BEGINS.test(around[1]))) continue;
        if (this.#has(token, 'rstrip')) while (SPACE.test(text.charAt(end))) end += 1;
        if (this.#has(token, 'lstrip')) {
          begin = Math.max(begin, free);
          while (begin > free && SPACE.test(text.charAt(begin - 1))) begin -= 1;
          if (begin >= end) continue; // it consists of spaces that the token before it has taken
        }
        // A token may begin within the spaces that the one before it has taken, which are then its own.
        const last = found[found.length - 1];
        if (last) last.end = Math.max(last.begin, Math.min(last.end, begin));
        found.push({ id: ids.get(token), begin, end });
        free = end;
      }
      const parts = [];
      let done = 0;
      for (const { id, begin, end } of found) {
        parts.push(text.slice(done, begin), { text: text.slice(begin, end), id });
        done = end;
      }
      return [...parts, text.slice(done)];
    }
  };

  // As Unicode and the regular expressions of tokenizers have them. (Letters in circles and squares are symbols.)
  const SPACE = /\p{White_Space}/u;
  const CIRCLED = '\\u24b6-\\u24e9\\u{1f130}-\\u{1f149}\\u{1f150}-\\u{1f169}\\u{1f170}-\\u{1f189}';
  const WORD = `[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\u200c\\u200d${CIRCLED}]`;
  const [WORD_BEGINS, WORD_ENDS] = [new RegExp(`^${WORD}`, 'u'), new RegExp(`${WORD}$`, 'u')];

  // A number of 64 bits that depends on all bits of another (SplitMix64); `cpbpe/reference/merging.py` has the same.
  const MASK = (1n << 64n) - 1n;
  const mixed = (number) => {
    let made = (number + 0x9e3779b97f4a7c15n) & MASK;
    made = ((made ^ (made >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    made = ((made ^ (made >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return made ^ (made >> 31n);
  };

}
