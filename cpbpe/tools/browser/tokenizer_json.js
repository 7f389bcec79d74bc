'use strict';
// tokenizer.json, read into the bytes of a .model: byte-level models as those of GPT-2, Llama 3 and Qwen, and models of
// characters as those of Llama 2, Mistral and Gemma. `formats.js` says what is accepted.

{
  const { between, kindOf, member, parsed, shown, typed, unknown, valid, written, wrong } = cpbpe.formats;
  const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;
  const SPACE = '▁';
  const HIDDEN = '\0'; // the first character of the names of tokens that must not be found in texts

  // --- Bytes as letters (`cpbpe/text/utf8.py`) ----------------------------------------------------------------------

  const PRINTABLE = [...between(0x21, 0x7e), ...between(0xa1, 0xac), ...between(0xae, 0xff)];
  const BYTE_ORDER = [...PRINTABLE, ...between(0, 255).filter((byte) => !PRINTABLE.includes(byte))];
  const LETTERS = []; // the letter of each byte
  BYTE_ORDER.forEach((byte, place) => {
    LETTERS[byte] = String.fromCharCode(place < PRINTABLE.length ? byte : 256 + place - PRINTABLE.length);
  });
  const BYTES_OF = new Int16Array(0x10000).fill(-1); // by the letter
  LETTERS.forEach((letter, byte) => (BYTES_OF[letter.charCodeAt(0)] = byte));
  // The bytes that letters stand for; null if a character is no letter of a byte.
  const fromLetters = (letters) => {
    const bytes = new Uint8Array(letters.length);
    for (let at = 0; at < letters.length; at += 1) {
      const byte = BYTES_OF[letters.charCodeAt(at)];
      if (byte < 0) return null;
      bytes[at] = byte;
    }
    return bytes;
  };
  const toLetters = (text) => Array.from(cpbpe.utf8(text), (byte) => LETTERS[byte]).join('');
  const isCharacter = (text) => text.length === 1 || (text.length === 2 && text.codePointAt(0) > 0xffff);

  // --- Merging (`cpbpe/model/pair_ranks.py`) ------------------------------------------------------------------------

  // What a text becomes, and the rank of the last merge. `rank` is that of two neighbours; the lowest merges first.
  const merged = (text, rank) => {
    const symbols = [...text];
    const ranks = [];
    for (let at = 1; at < symbols.length; at += 1) ranks.push(rank(symbols[at - 1], symbols[at]) ?? Infinity);
    let last = null;
    while (ranks.length) {
      let best = 0;
      for (let at = 1; at < ranks.length; at += 1) if (ranks[at] < ranks[best]) best = at;
      if (ranks[best] === Infinity) break;
      last = ranks[best];
      symbols[best] += symbols[best + 1];
      symbols.splice(best + 1, 1);
      ranks.splice(best, 1);
      if (best < ranks.length) ranks[best] = rank(symbols[best], symbols[best + 1]) ?? Infinity;
      if (best) ranks[best - 1] = rank(symbols[best - 1], symbols[best]) ?? Infinity;
    }
    return { symbols, last };
  };

  // The merges of a file: each with its two tokens and what they become, and a `rank` for `merged`. (Of equal ones the
  // last counts.) `splits`: texts are cut before each space, so merges across that place never happen.
  const checkedMerges = (merges, vocab, splits) => {
    const list = [];
    const ranks = new Map(); // by the left token, and then by the right one
    merges.forEach((merge, place) => {
      if (typeof merge !== typeof merges[0]) wrong(`model.merges[${place}] is of another type than the first`);
      const pair = typeof merge === 'string' ? merge.split(' ') : merge;
      if (!Array.isArray(pair) || pair.length !== 2 || pair.some((token) => typeof token !== 'string')) {
        wrong(`model.merges[${place}] must be two tokens, and is ${shown(merge)}`);
      }
      const [left, right] = pair;
      const tokens = [left, right, left + right];
      const other = tokens.find((token) => !vocab.has(token));
      if (other !== undefined) wrong(`model.merges[${place}] is ${shown(merge)}, and ${shown(other)} is no token`);
      if (splits && right[0] === SPACE) return;
      list.push(tokens);
      if (!ranks.has(left)) ranks.set(left, new Map());
      ranks.get(left).set(right, place);
    });
    return { list, rank: (left, right) => ranks.get(left)?.get(right) };
  };

  // Scores by which pieces, in letters, merge as by pairs (`scores_of` in `cpbpe/model/byte_level.py`).
  const scoresOf = (ids, { list, rank }) => {
    const made = new Map();
    for (const piece of ids.keys()) {
      if (piece.length < 2) continue;
      const { symbols, last } = merged(piece, rank);
      if (symbols.length === 1) made.set(piece, last);
      else if (symbols.length === 2) {
        unknown(`no merges make the token ${shown(piece)}, and a model of scores would merge its two parts`);
      }
    }
    const order = [...made].sort(([, one], [, other]) => one - other).map(([piece]) => ids.get(piece));
    const inOrder = order.every((id, place) => !place || order[place - 1] < id);
    if (inOrder && [...ids.values()].every((id) => id < 2 ** 24)) {
      return new Map([...ids].map(([piece, id]) => [piece, 0 - id]));
    }
    const places = new Map(BYTE_ORDER.map((byte, place) => [LETTERS[byte], 0 - place]));
    const score = (piece) => (made.has(piece) ? -256 - made.get(piece) : places.get(piece) ?? -256 - list.length);
    return new Map([...ids.keys()].map((piece) => [piece, score(piece)]));
  };

  // --- What cuts texts ----------------------------------------------------------------------------------------------

  // The published patterns by their form in files, where `$` and some possessive repeats mean something else. Each of
  // them matches every character of a text.
  const OF_FILES = new Map([
    ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", cpbpe.PATTERNS.gpt2],
    ...Object.values(cpbpe.PATTERNS).map((pattern) => [
      pattern.replace('$', '(?![\\s\\S])').replace('\\p{N}{1,3}+', '(?>\\p{N}{1,3})'),
      pattern,
    ]),
  ]);

  const GENERAL = 'L|Lu|Ll|Lt|Lm|Lo|M|Mn|Mc|Me|N|Nd|Nl|No|P|Pc|Pd|Ps|Pe|Pi|Pf|Po|S|Sm|Sc|Sk|So|Z|Zs|Zl|Zp|Cc|Cf|Co';
  const SCRIPTS = 'Han|Hiragana|Katakana|Hangul|Latin|Cyrillic|Greek|Arabic|Hebrew|Thai|Devanagari|Bengali|Armenian';
  const ESCAPE = `\\\\(?:[sSdDrntfv]|[pP]\\{(?:${GENERAL}|${SCRIPTS})\\}|[!-\\/:;=?@\\[-\`\\{-~])`;
  const IN_CLASS = `(?!&&|~~|\\|\\|)[^\\\\\\[\\]\\-]`;
  const ITEM = `(?:${ESCAPE}|${IN_CLASS}(?:-${IN_CLASS})?)`;
  const PART = new RegExp(`${ESCAPE}|\\[(?:\\^${ITEM}+|(?!\\^)${ITEM}+)\\]|[^\\\\\\[\\](){}*+?|^$]`, 'yu');
  // Where case is ignored, Oniguruma takes these pairs for one letter, and classes for something else.
  const CASELESS = /\(\?i:(?![^)]*(?:ss|ff|fi|fl|st))['a-z|]+\)/giu;
  const GROUP = /\(\?(?:[:>]|i:|(<?[=!]))/yu;
  const REPEAT = /[*+?][?+]?|\{(?:0|[1-9]\d{0,2})(?:,(?:[1-9]\d{0,2})?)?\}(?![?+])/yu;

  // Whether a pattern of a file, which is one of Oniguruma, is known to mean the same in the core. It must not match an
  // empty text.
  const isPortable = (pattern) => {
    let at = 0;
    const take = (expression) => {
      expression.lastIndex = at;
      const found = expression.exec(pattern);
      if (found) at = expression.lastIndex;
      return found;
    };
    // Read up to the end of a group, or to what is not known, and return whether this can match an empty text.
    const canBeEmpty = (depth) => {
      let before = false; // whether a branch before this one can
      let branch = true; // whether this one can, so far
      for (;;) {
        if (take(/\|/yu)) {
          before ||= branch;
          branch = true;
          continue;
        }
        const group = depth < 30 && take(GROUP);
        let empty = false;
        if (group) {
          empty = canBeEmpty(depth + 1) || group[1] !== undefined;
          if (!take(/\)/yu)) return true;
        } else if (!take(PART)) return before || branch;
        if (!group?.[1]) empty ||= /^(?:[*?]|\{0)/.test(take(REPEAT)?.[0] ?? '');
        branch &&= empty;
      }
    };
    return !canBeEmpty(0) && at === pattern.length && !pattern.replace(CASELESS, '').includes('(?i');
  };

  const escaped = (text) => text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  const NUMBERS = '\\p{N}𑷠-𑷩𖿴-𖿶'; // what Digits takes for numbers
  // The pattern that cuts a text as a step of a pre-tokenizer does.
  const STEPS = {
    Digits: (step) => `[${NUMBERS}]${member(step, 'individual_digits', 'flag', 'Digits', false) ? '' : '+'}`,
    Split: (step) => {
      const given = member(step, 'pattern', 'object', 'Split');
      const behavior = member(step, 'behavior', 'text', 'Split');
      const inverted = member(step, 'invert', 'flag', 'Split', false);
      const kind = Object.keys(given).join();
      const text = given[kind];
      if (!['String', 'Regex'].includes(kind) || typeof text !== 'string' || !text) {
        wrong(`the pattern of a Split must be a String or a Regex, and is ${shown(given)}`);
      }
      const isWhole = kind === 'Regex' && OF_FILES.has(text);
      if (behavior !== 'Isolated' && !(behavior === 'Removed' && inverted && isWhole)) {
        unknown(`its pre-tokenizer splits at ${shown(text)} with the behavior ${shown(behavior)}`);
      }
      if (kind === 'String') return escaped(text);
      if (!isWhole && !isPortable(text)) unknown(`its pre-tokenizer has the pattern ${shown(text)}`);
      return OF_FILES.get(text) ?? text;
    },
  };

  // --- What all models have -----------------------------------------------------------------------------------------

  const isObject = (value) => kindOf(value) === 'object';
  const typeOf = (step, where) => member(typed(step, 'object', where), 'type', 'text', where);
  const namesOf = (steps) => steps.map((step) => step.type).join(', ') || 'none';
  // The steps of a sequence, even if nested; a single step as a list.
  const stepsOf = (step, inner, where) => {
    if ((step ?? null) === null) return [];
    if (typeOf(step, where) !== 'Sequence') return [step];
    return member(step, inner, 'list', where).flatMap((one) => typeOf(one, where) && stepsOf(one, inner, where));
  };
  // The parts of a file that are steps, and where each has the steps of a sequence.
  const PLACES = {
    normalizer: 'normalizers',
    pre_tokenizer: 'pretokenizers',
    decoder: 'decoders',
    post_processor: 'processors',
  };

  // The members of a model, and their types.
  const MEMBERS = {
    type: 'text',
    continuing_subword_prefix: 'text',
    end_of_word_suffix: 'text',
    unk_token: 'text',
    fuse_unk: 'flag',
    byte_fallback: 'flag',
    ignore_merges: 'flag',
    vocab: 'object',
    merges: 'list',
  };

  cpbpe.formats.readTokenizerJson = (text) => {
    const content = parsed(text);
    // 1. The model.
    const model = member(content, 'model', 'object', '');
    if (model.type !== 'BPE') wrong(`model.type is ${shown(model.type)}, and cpbpe reads BPE models only`);
    for (const [name, kind] of Object.entries(MEMBERS)) member(model, name, kind, 'model', null);
    for (const name of ['continuing_subword_prefix', 'end_of_word_suffix']) {
      if (model[name]) wrong(`model.${name} is ${shown(model[name])}, and pieces of cpbpe have none`);
    }
    const dropout = model.dropout?.['']?.[0] ?? model.dropout ?? 0; // (`parsed` says how it reads fractions)
    if (dropout !== 0) unknown(`model.dropout is ${shown(dropout)}: it skips merges at random`);
    // 2. The tokens.
    const vocab = new Map(Object.entries(member(model, 'vocab', 'object', 'model')));
    const taken = new Set();
    for (const [token, id] of vocab) {
      const isRight = token && Number.isSafeInteger(id) && id >= 0 && !taken.has(id);
      if (!isRight) wrong(`the token ${shown(token)} is empty, or ${shown(id)} is no id of its own`);
      taken.add(id);
      valid(token);
    }
    if (!vocab.size) wrong('model.vocab is empty');
    // 3. What is around.
    const steps = {};
    for (const [place, inner] of Object.entries(PLACES)) steps[place] = stepsOf(content[place], inner, place);
    if ((content.truncation ?? null) !== null) unknown('it cuts long texts (truncation)');
    const padding = content.padding ?? null;
    const multiple = padding?.pad_to_multiple_of ?? null;
    if (padding && (padding.strategy !== 'BatchLongest' || ![null, 0, 1].includes(multiple))) {
      unknown('it fills texts up to a length of its own (padding)');
    }
    const isByteLevel = Object.values(steps).flat().some((step) => step.type === 'ByteLevel');
    return isByteLevel ? readByteLevel(content, vocab, steps) : readCharacters(content, vocab, steps);
  };

  // The added tokens: their ids are those in the vocabulary, or come after all others.
  const addedTokens = (given, vocab) => {
    const ids = new Map();
    const tokens = typed(given ?? [], 'list', 'added_tokens').map((token, place) => {
      const where = `added_tokens[${place}]`;
      const text = member(typed(token, 'object', where), 'content', 'text', where);
      const id = member(token, 'id', 'integer', where);
      if (!text) wrong(`${where} is empty`);
      valid(text);
      if (!vocab.has(text) && !ids.has(text)) ids.set(text, vocab.size + ids.size);
      const expected = vocab.get(text) ?? ids.get(text);
      if (id !== expected) wrong(`${where}, ${shown(text)}, has the id ${id}, and must have ${expected}`);
      return { where, token, text, id };
    });
    if (new Set(tokens.map(({ text }) => text)).size < tokens.length) unknown('it lists an added token twice');
    return tokens;
  };
  const flagsOf = (token, normalizes, where) => {
    const has = (name) => member(token, name, 'flag', where, false);
    const flags = has('special') ? [] : ['plain'];
    flags.push(...['lstrip', 'rstrip', 'single_word'].filter(has));
    if (has('normalized')) flags.push(normalizes ? 'normalized' : 'late');
    return flags;
  };

  const BOS = ['<s>', '<bos>', '<|begin_of_text|>', '<｜begin▁of▁sentence｜>'];
  const EOS = ['</s>', '<eos>', '<|end_of_text|>', '<|endoftext|>', '<｜end▁of▁sentence｜>'];
  const PAD = ['<pad>', '<PAD>', '[PAD]'];
  // The names of unk, bos, eos and pad, from the tokens around texts and the usual names.
  const namesFrom = (unk, control, [first, last]) => {
    const guessed = (names) => names.find((name) => control.has(name)) ?? names[0];
    return [unk, first || guessed(BOS), last || guessed(EOS), guessed(PAD)];
  };

  // The tokens that a post-processor puts before and after a text, '' for none.
  const endsOf = (steps, ids) => {
    if (!steps.length) return ['', ''];
    const cannot = () => unknown(`its post-processor, ${namesOf(steps)}, does more than to put a token at each end`);
    const { type, single, special_tokens: known } = steps[0];
    if (steps.length > 1 || type !== 'TemplateProcessing' || !Array.isArray(single) || !isObject(known)) cannot();
    const ends = [[], []];
    let place = 0;
    for (const part of single) {
      if (!isObject(part)) cannot();
      if (Object.hasOwn(part, 'Sequence')) {
        place += 1;
        continue;
      }
      const name = part.SpecialToken?.id;
      const { ids: own, tokens } = (typeof name === 'string' && Object.hasOwn(known, name) && known[name]) || {};
      const isRight = JSON.stringify([tokens, own]) === JSON.stringify([[name], [ids.get(name)]]);
      if (place > 1 || !ids.has(name) || !isRight) cannot();
      ends[place].push(name);
    }
    if (place !== 1 || ends.some((end) => end.length > 1)) cannot();
    return ends.map(([name]) => name ?? '');
  };
  // The options of encoding that put these tokens there.
  const endOptions = ([first, last]) => [...(first ? [['add_bos', true]] : []), ...(last ? [['add_eos', true]] : [])];

  const SPECIAL_NOTE = 'Its added tokens are special tokens here: texts yield them only where this is switched on.';

  // --- Byte-level models --------------------------------------------------------------------------------------------

  // A post-processor of RoBERTa or BERT, which puts a token at each end, as a template.
  const templateOf = (step) => {
    const ends = ['cls', 'sep'].map((key) => member(step, key, 'list', 'post_processor'));
    if (ends.some((end) => end.length !== 2 || typeof end[0] !== 'string')) wrong('its post-processor is broken');
    const [front, end] = ends.map(([id]) => ({ SpecialToken: { id } }));
    const known = ends.map(([name, id]) => [name, { ids: [id], tokens: [name] }]);
    const single = [front, { Sequence: {} }, end];
    return { type: 'TemplateProcessing', single, special_tokens: Object.fromEntries(known) };
  };

  const readByteLevel = ({ model, added_tokens: given, padding }, vocab, steps) => {
    // 1. How texts are rewritten and cut.
    const [cutting, last] = [steps.pre_tokenizer.slice(0, -1), steps.pre_tokenizer.at(-1)];
    if (last?.type !== 'ByteLevel') wrong(`its pre-tokenizer must end with ByteLevel: ${namesOf(steps.pre_tokenizer)}`);
    const form = steps.normalizer.length ? namesOf(steps.normalizer) : '';
    if (steps.normalizer.length && !['NFC', 'NFD', 'NFKC', 'NFKD'].includes(form)) unknown(`its normalizer is ${form}`);
    const patterns = cutting.map((step) => {
      const isKnown = Object.hasOwn(STEPS, step.type);
      return isKnown ? STEPS[step.type](step) : unknown(`its pre-tokenizer has ${step.type}`);
    });
    if (member(last, 'use_regex', 'flag', 'pre_tokenizer', true)) patterns.push(cpbpe.PATTERNS.gpt2);
    const prefix = member(last, 'add_prefix_space', 'flag', 'pre_tokenizer', false) ? 'unless space' : '';
    if (prefix && cutting.length) wrong('its pre-tokenizer puts a space in front of each part (add_prefix_space)');
    // 2. The tokens. Some added ones have the text of a piece: texts are searched for them before it can be made.
    const pairs = checkedMerges(member(model, 'merges', 'list', 'model'), vocab, false);
    const used = new Set(pairs.list.flat());
    const special = new Map();
    const flags = new Map();
    for (const { where, token, text, id } of addedTokens(given, vocab)) {
      special.set(text, id);
      const own = flagsOf(token, steps.normalizer.length > 0, where);
      if (own.length) flags.set(text, own);
    }
    const texts = new Map([...vocab, ...special].map(([token, id]) => [id, token]));
    let size = 0;
    while (texts.has(size)) size += 1;
    for (const [text, id] of special) {
      const letters = toLetters(text);
      if (letters === text || !vocab.has(letters)) continue;
      if (!flags.has(text)) flags.set(text, []);
      size = Math.min(size, id);
    }
    for (const [token, id] of vocab) {
      if (id >= size && !special.has(token)) wrong(`no piece has the id ${size}, and ${shown(token)} has ${id}`);
    }
    // 3. Which of them are ordinary pieces.
    const whole = member(model, 'ignore_merges', 'flag', 'model', false);
    const isAlsoMade = (token) =>
      (used.has(token) || isCharacter(token) || whole) &&
      vocab.has(token) &&
      flags.get(token)?.includes('plain') &&
      toLetters(token) === token;
    const pieces = [];
    const ordinary = new Map();
    let unspelled = '';
    for (let id = 0; id < size; id += 1) {
      const token = texts.get(id);
      if (special.has(token) && !isAlsoMade(token)) {
        if (isCharacter(token) && vocab.has(token) && fromLetters(token)) {
          wrong(`the added token ${shown(token)} has the id of a byte`);
        }
        pieces.push([token, CONTROL]);
        continue;
      }
      const bytes = fromLetters(token);
      pieces.push(bytes ? [bytes, NORMAL] : [token, CONTROL]);
      if (bytes) ordinary.set(token, id);
      else unspelled ||= token;
    }
    const isAlone = (token) => flags.get(token)?.includes('single_word') && !isAlsoMade(token);
    const alone = [...special.keys()].find((token) => vocab.has(token) && isAlone(token));
    if (whole && alone !== undefined) unknown(`a chunk may be ${shown(alone)} within a word (ignore_merges)`);
    const notMerged = [...used].find((token) => !ordinary.has(token));
    if (notMerged !== undefined) unknown(`merges make or use ${shown(notMerged)}, which is an added token`);
    // 4. The model.
    const scores = scoresOf(ordinary, pairs);
    const processors = steps.post_processor.filter(({ type }) => type !== 'ByteLevel');
    const ids = new Map([...texts].map(([id, token]) => [token, id]));
    const hasEnds = ({ type }) => type === 'RobertaProcessing' || type === 'BertProcessing';
    const ends = endsOf(processors.map((step) => (hasEnds(step) ? templateOf(step) : step)), ids);
    const other = ends.find((end) => end && !special.has(end));
    if (other) wrong(`its post-processor puts ${shown(other)} around texts, which is no special token`);
    const decoder = namesOf(steps.decoder);
    const above = [...texts].filter(([id]) => id >= size).sort(([one], [another]) => one - another);
    const file = written({
      pieces: pieces.map(([text, type], id) => [text, type === NORMAL ? scores.get(texts.get(id)) : 0, type]),
      names: namesFrom('<unk>', special, ends),
      added: above.map(([id, token]) => [token, id]),
      options: endOptions(ends),
      tokens: flags,
      prefix,
      patterns,
      whole,
      form,
    });
    return {
      file,
      notes: [
        ...(special.size ? [SPECIAL_NOTE] : []),
        ...(unspelled ? [`The token ${shown(unspelled)} stands for no bytes, so no text becomes it.`] : []),
        ...(padding ? ['It fills up shorter texts (padding), and the page does not.'] : []),
        ...(decoder === 'ByteLevel' ? [] : [`Decoding differs: its decoder is ${decoder}.`]),
      ],
    };
  };

  // --- Models of characters -----------------------------------------------------------------------------------------

  // A value as text, with the members of objects in one order.
  const same = (value) =>
    JSON.stringify(value, (_, one) => (isObject(one) ? Object.fromEntries(Object.entries(one).sort()) : one));
  const ESCAPING = { type: 'Replace', pattern: { String: ' ' }, content: SPACE };
  const PREPEND = { type: 'Prepend', prepend: SPACE };
  // What each known normalizer does: whether spaces are escaped, and the dummy prefix.
  const NORMALIZERS = new Map([
    [same([]), [false, '']],
    [same([ESCAPING]), [true, '']],
    [same([PREPEND, ESCAPING]), [true, 'always']],
    [same([ESCAPING, PREPEND]), [true, 'always']], // the order does not matter
  ]);
  // Metaspace puts a prefix in front of a text that does not begin with a space; this, before it, of one that does.
  const DOUBLING = { type: 'Replace', pattern: { Regex: `\\A${SPACE}` }, content: SPACE + SPACE };

  const readSteps = (normalizer, cutting) => {
    const cannot = (what, steps) => unknown(`its ${what} is ${namesOf(steps)}, which is not known in this form`);
    const [step, ...more] = cutting;
    const isMetaspace = step?.type === 'Metaspace';
    const doubles = isMetaspace && same(normalizer.slice(-1)) === same([DOUBLING]);
    const before = doubles ? normalizer.slice(0, -1) : normalizer;
    const known = NORMALIZERS.get(same(isMetaspace && !before.length ? [ESCAPING] : before));
    const [escapes, prefix] = known ?? cannot('normalizer', normalizer);
    if (!isMetaspace) {
      // There are no spaces any more if they are escaped, so it does not matter how texts are cut at them.
      const isAtSpaces = (one) => one.type === 'Split' && same(one.pattern) === '{"String":" "}' && !one.invert;
      if (cutting.length && !(escapes && cutting.every(isAtSpaces))) cannot('pre-tokenizer', cutting);
      return { escapes, prefix };
    }
    const scheme = step.prepend_scheme ?? (step.add_prefix_space ?? true ? 'always' : 'never');
    const isKnown = !more.length && step.replacement === SPACE && ['always', 'first', 'never'].includes(scheme);
    if (!isKnown || !escapes) cannot('pre-tokenizer', cutting);
    const splits = step.split !== false;
    if (doubles && (prefix || scheme !== 'always')) cannot('normalizer', normalizer);
    if (doubles) return { escapes, prefix: 'always', splits, doubles };
    if (prefix || scheme === 'never') return { escapes, prefix, splits, doubles: prefix && scheme === 'always' };
    return { escapes, prefix: 'unless space', splits, isFirst: scheme === 'first' };
  };

  const BYTES = new Map(between(0, 255).map((byte) => [cpbpe.byteName(byte), byte])); // by their names

  // Whether one of `others` can lie within one of `texts`, or begin within it.
  const mayOverlap = (texts, others) => {
    const begins = new Set([...others].flatMap((one) => Array.from(one, (_, at) => one.slice(0, at + 1))));
    return [...texts].some((text) => {
      for (let at = 0; at < text.length; at += 1) {
        if (at && begins.has(text.slice(at))) return true;
        for (let end = at + 1; end <= text.length; end += 1) if (others.has(text.slice(at, end))) return true;
      }
      return false;
    });
  };
  // Whether tokens with flags and those without can take text from each other.
  const overlap = (given) => {
    const [flagged, plain] = [new Set(), new Set()];
    let strips = false;
    for (const { token, text } of given) {
      const hasFlags = token.special || token.single_word || token.lstrip || token.rstrip;
      strips ||= token.lstrip || token.rstrip;
      (hasFlags ? flagged : plain).add(text);
    }
    const takesSpaces = strips && [...plain].some((text) => /[\s\x1c-\x1f\x85]/.test(text));
    return takesSpaces || mayOverlap(plain, flagged) || mayOverlap(flagged, plain);
  };

  // The added tokens, and which tokens become pieces (`read_added` in `cpbpe/model/formats/tokenizer_json/added.py`).
  const readAdded = (given, vocab, { prefix, normalizes }, unk, made) => {
    const [control, userDefined, special, flags, ids] = [new Set(), new Set(), new Set(), new Map(), new Map()];
    const tokens = addedTokens(given, vocab);
    const mayBeUserDefined = !prefix && !overlap(tokens);
    let areNormalized = null; // whether the USER_DEFINED ones are looked for in normalized text
    for (const { where, token, text, id } of tokens) {
      ids.set(text, id);
      if (member(token, 'special', 'flag', where, false)) special.add(text);
      const own = flagsOf(token, normalizes, where);
      const isPlain = own[0] === 'plain' && own.every((flag) => ['plain', 'late', 'normalized'].includes(flag));
      if (isPlain && mayBeUserDefined && !/[ ▁]/.test(text)) {
        const normalized = member(token, 'normalized', 'flag', where, false);
        areNormalized ??= normalized;
        if (normalized === areNormalized) {
          userDefined.add(text);
          continue;
        }
      }
      const isMade = made.has(text) || (isCharacter(text) && vocab.has(text));
      if (!isMade) control.add(text);
      if (own.length || isMade) flags.set(text, own);
    }
    if (areNormalized === false && [...flags.values()].flat().some((flag) => ['late', 'normalized'].includes(flag))) {
      for (const text of userDefined) flags.set(text, ['plain']);
    }
    control.delete(unk);
    // All tokens are pieces up to the last one that must be. If the ids have no gap, the whole vocabulary is.
    const byId = new Map([...vocab, ...ids].map(([text, id]) => [id, text]));
    let size = 0;
    while (byId.has(size)) size += 1;
    let needed = 0;
    for (const [text, id] of vocab) if (!ids.has(text)) needed = Math.max(needed, id + 1);
    for (const text of userDefined) needed = Math.max(needed, ids.get(text) + 1);
    if (needed > size) wrong(`no token has the id ${size}, and ids of pieces have no gaps`);
    size = size < byId.size ? needed : Math.max(needed, vocab.size);
    if (size > byId.size) wrong('two of its tokens have one id');
    const above = [...byId.keys()].filter((id) => id >= size).sort((one, other) => one - other);
    flags.delete(unk);
    const pieces = Array.from({ length: size }, (_, id) => byId.get(id));
    return { control, userDefined, special, flags, pieces, beyond: above.map((id) => [byId.get(id), id]) };
  };

  // The text that the unknown token is decoded to.
  const surfaceOf = (decoders, unk, isSpecial, fallback) => {
    const pattern = same({ Regex: `\\A${escaped(unk ?? '')}\\z` });
    const step = decoders.find((one) => one.type === 'Replace' && same(one.pattern ?? null) === pattern);
    if (step) {
      const last = decoders.at(-1);
      const placeholder = last.type === 'Replace' && last.content === SPACE ? last.pattern?.String : undefined;
      if (typeof step.content !== 'string' || placeholder === '') unknown('its decoder is not known here in this form');
      return placeholder === undefined ? step.content : step.content.replaceAll(placeholder, SPACE);
    }
    if (fallback || unk === null) return ' ⁇ ';
    return isSpecial ? '' : unk;
  };

  const readCharacters = ({ model, added_tokens: given, padding }, vocab, steps) => {
    // 1. The settings.
    const cutting = readSteps(steps.normalizer, steps.pre_tokenizer);
    const { escapes, prefix, splits = false, isFirst = false, doubles = false } = cutting;
    const fallback = member(model, 'byte_fallback', 'flag', 'model', false);
    let unk = member(model, 'unk_token', 'text', 'model', '') || null;
    if (unk === null && fallback && vocab.has('<unk>')) unk = '<unk>';
    const pairs = checkedMerges(member(model, 'merges', 'list', 'model'), vocab, splits);
    const made = new Set(pairs.list.map(([, , joined]) => joined));
    const added = readAdded(given, vocab, { prefix, normalizes: steps.normalizer.length > 0 }, unk, made);
    const normalized = doubles && [...added.flags].find(([, own]) => own.includes('normalized'));
    if (normalized) unknown(`text after ${shown(normalized[0])} gets another prefix than a text (normalized)`);
    if (unk !== null && !vocab.has(unk)) wrong(`model.unk_token is ${shown(unk)}, which is no token`);
    if (unk === null && !fallback) unknown('model.unk_token is missing, so unknown characters are left out');
    if (unk !== null && isCharacter(unk)) unknown('its unknown token is a character, which texts may hold');
    // 2. The pieces: texts and types. (One-character tokens stand for the BYTE pieces that a vocabulary lacks.)
    const missing = [...BYTES].filter(([token, byte]) => byte < 0x80 && !vocab.has(token));
    const isNamed = missing.every(([, byte]) => vocab.has(String.fromCharCode(byte)));
    const bytes = new Map(isNamed ? missing.map(([token, byte]) => [String.fromCharCode(byte), token]) : []);
    const textOf = (token) => (token.length > 1 && token[0] === HIDDEN ? token.slice(1) : token);
    const rows = added.pieces.map((token) => {
      const text = textOf(token);
      if (text.includes('\0')) wrong(`the token ${shown(token)} contains a NUL character, and no piece can`);
      if (token === unk) return [text, UNKNOWN];
      if (added.control.has(token)) return [text, CONTROL];
      if (added.userDefined.has(token)) return [text, USER_DEFINED];
      if (fallback && (BYTES.has(token) || bytes.has(token))) return [bytes.get(token) ?? text, BYTE];
      return [text, token[0] === HIDDEN ? UNUSED : NORMAL];
    });
    if (!fallback) {
      if (!member(model, 'fuse_unk', 'flag', 'model', false)) unknown('several unknown characters are several tokens');
      if (splits && rows.every(([text]) => text !== SPACE)) unknown('unknown characters are cut at spaces');
    }
    // 3. What only merges by pairs do, or leave out.
    const ranks = new Map();
    for (const [text] of rows) {
      if (isCharacter(text)) continue;
      const { symbols, last } = merged(text, pairs.rank);
      if (symbols.length === 1) ranks.set(text, last);
    }
    const unmergeable = new Set(rows.flatMap(([text, type]) => (type === UNKNOWN || type === BYTE ? [text] : [])));
    const isWrong = [...unmergeable].find((text) => ranks.has(text));
    if (isWrong) unknown(`merges make ${shown(isWrong)}, and SentencePiece never does`);
    for (const [left, right] of pairs.list) {
      if (unmergeable.has(left) || unmergeable.has(right)) unknown(`merges use ${shown([left, right])}`);
    }
    if (member(model, 'ignore_merges', 'flag', 'model', false)) {
      const isTaken = ([text, type]) =>
        !isCharacter(text) && ![CONTROL, USER_DEFINED].includes(type) && (!ranks.has(text) || unmergeable.has(text));
      const taken = rows.find(isTaken);
      if (taken) unknown(`a text that is a token, such as ${shown(taken[0])}, is not merged (ignore_merges)`);
    }
    // 4. Scores. A token that no pair makes, but that scores would make, becomes UNUSED, with one of the lowest scores.
    const normal = new Set(rows.flatMap(([text, type]) => (type === NORMAL ? [text] : [])));
    const order = [...ranks].filter(([text]) => normal.has(text)).sort(([, one], [, other]) => one - other);
    const places = new Map(order.map(([text], place) => [text, place]));
    const rest = [...normal].filter((text) => !places.has(text) && !isCharacter(text));
    const all = new Map([...places, ...rest.map((text) => [text, order.length])]);
    const byText = (left, right) => all.get(left + right);
    const unused = new Set(rest.filter((text) => merged(text, byText).symbols.length === 1));
    let last = order.length;
    const pieces = rows.map(([text, type]) => {
      if (type === NORMAL && places.has(text)) return [text, -places.get(text), type];
      const score = type === NORMAL || type === UNUSED ? -last++ : -0;
      return [text, score, type === NORMAL && unused.has(text) ? UNUSED : type];
    });
    // 5. The model.
    const ids = new Map([...added.pieces.map((token, id) => [token, id]), ...added.beyond]);
    const ends = endsOf(steps.post_processor, ids);
    const control = new Set(rows.flatMap(([text, type]) => (type === CONTROL ? [text] : [])));
    const other = ends.find((end) => end && !control.has(textOf(end)));
    if (other) wrong(`its post-processor puts ${shown(other)} around texts, which is no CONTROL piece`);
    const file = written({
      pieces,
      names: namesFrom(textOf(unk ?? '<unk>'), control, ends.map(textOf)),
      added: added.beyond,
      options: [
        ...endOptions(ends),
        ...(isFirst ? [['prefix_after_special', false]] : []),
        ...(prefix ? [['keep_space_after_special', true]] : []),
      ],
      tokens: added.flags,
      prefix,
      escapes,
      fallback,
      surface: surfaceOf(steps.decoder, unk, added.special.has(unk), fallback),
    });
    return {
      file,
      notes: [
        ...(added.special.size ? [SPECIAL_NOTE] : []),
        ...(isFirst ? ['Text after a special token gets no dummy prefix there.'] : []),
        ...(padding ? ['It fills up shorter texts (padding), and the page does not.'] : []),
      ],
    };
  };
}
