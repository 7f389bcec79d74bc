'use strict';
// Model files of other formats, read into the bytes of a .model: ranks (.tiktoken), tekken.json, tokenizer.json.
//
// `cpbpe/model/formats/` reads more, because it tries out whether an unusual setting changes the ids of any text. Here
// only settings are accepted that are known not to. All others are refused by name, so that what is read is exact.

{
  const NORMAL = 1, CONTROL = 3;

  // Refuse a file.
  const wrong = (problem) => {
    throw new Error(problem);
  };
  // Refuse what Python may be able to read.
  const unknown = (problem) => wrong(`${problem}. In Python, cpbpe view FILE reads all that can be read exactly`);

  // --- The file that is made ----------------------------------------------------------------------------------------
  // The .model file of a model, as `cpbpe/model/formats/sentencepiece.py` writes it. Each piece has text, score and
  // type; `prefix` is 'always', 'unless space' or ''; byte-level models have `patterns`. The numbers, and the names at
  // the end of each line, are those of the fields in `proto/cpbpe_model.proto`.
  const NAMES = ['<unk>', '<s>', '</s>', '<pad>'];
  const UNK_SURFACE = ' ⁇ ';
  const written = ({ pieces, names = NAMES, added = [], options = [], tokens = [], ...model }) => {
    const { prefix = '', escapes = false, fallback = false, surface = UNK_SURFACE } = model;
    const { patterns = null, whole = false, form = '' } = model;
    // A field, unless its value is the usual one.
    const unless = (usual, number, value) => (value === usual ? [] : [[number, value]]);
    const trainer = [
      [3, 2], // model_type: BPE
      ...unless(false, 35, fallback), // byte_fallback
      ...unless(UNK_SURFACE, 44, surface), // unk_surface
      ...names.flatMap((name, place) => unless(NAMES[place], 45 + place, name)), // unk_piece, bos_piece, ...
    ];
    const normalizer = [
      [1, 'identity'], // name
      ...unless(true, 3, prefix !== ''), // add_dummy_prefix
      [4, false], // remove_extra_whitespaces
      ...unless(true, 5, escapes), // escape_whitespaces
    ];
    const [first = '', ...then] = patterns ?? [];
    const name = Object.keys(cpbpe.PATTERNS).find((one) => cpbpe.PATTERNS[one] === first) ?? '';
    const byteLevel = [
      ...unless('', 1, first), // pattern
      ...unless('', 2, name), // name
      ...unless(false, 3, whole), // whole
      ...then.map((pattern) => [4, pattern]), // then
    ];
    return cpbpe.message([
      ...pieces.map(([text, score, type]) => [1, [[1, text], [2, Float32Array.of(score)], ...unless(NORMAL, 3, type)]]),
      [2, trainer],
      [3, normalizer],
      ...added.map(([text, id]) => [41700, [[1, text], [2, id]]]), // added_tokens
      ...(patterns ? [[41703, byteLevel]] : []), // byte_level
      ...unless('', 41701, carried({ options, tokens })), // carried
      ...unless('', 41702, prefix === 'unless space' ? false : ''), // prefix_before_space
      ...unless('', 41704, form), // unicode_form
    ]);
  };

  // What a file says beside the model: options that it asks for, and the flags of added tokens, by their names.
  const carried = (parts) => {
    const inner = Object.entries(parts).flatMap(([part, values]) => {
      const members = [...values].sort(([one], [other]) => byCharacters(one, other));
      const text = members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',');
      return members.length ? [`"${part}":{${text}}`] : [];
    });
    return inner.length ? `{${inner.join(',')}}` : '';
  };
  // The order in which Python sorts texts: that of code points. (JavaScript's is that of UTF-16.)
  const byCharacters = (one, other) => {
    const [left, right] = [one, other].map((text) => Array.from(text, (character) => character.codePointAt(0)));
    const at = left.findIndex((code, place) => code !== right[place]);
    return at < 0 || at >= right.length ? left.length - right.length : left[at] - right[at];
  };

  // --- JSON ---------------------------------------------------------------------------------------------------------

  const KINDS = { object: 'an object', list: 'a list', text: 'a text', flag: 'true or false', integer: 'an integer' };
  const kindOf = (value) => {
    if (Array.isArray(value)) return 'list';
    if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number';
    return value === null ? 'null' : { string: 'text', boolean: 'flag' }[typeof value] ?? typeof value;
  };
  const shown = (value) => {
    const text = JSON.stringify(value) ?? 'missing';
    return text.length <= 60 ? text : `${text.slice(0, 60)}...`;
  };
  const typed = (value, kind, where) =>
    kindOf(value) === kind ? value : wrong(`${where} must be ${KINDS[kind]}, and is ${shown(value)}`);
  // A member of an object. If it is missing or null, it is `usual`, or an error.
  const member = (holder, key, kind, where, usual) => {
    const value = holder[key] ?? null;
    return value === null && usual !== undefined ? usual : typed(value, kind, where ? `${where}.${key}` : key);
  };
  // A text, which must not hold half of a surrogate pair.
  const valid = (text) => (/\p{Cs}/u.test(text) ? wrong(`${shown(text)} holds half of a surrogate pair`) : text);

  const STRING = '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"';
  const MOST_NESTED = 100;

  // The object in a text of JSON. JavaScript keeps only the last of several members of one name, and does not tell 1.0
  // from 1. So members are counted, and 1.0 is read as `{"": [1.0]}`, which nothing accepts as a number.
  const parsed = (text) => {
    let content;
    try {
      content = JSON.parse(text);
    } catch (error) {
      wrong(`it is not valid JSON (${error.message}); if it was cut off, copy or download it again`);
    }
    typed(content, 'object', 'a file of JSON');
    let members = 0;
    let hasFractions = false;
    const marks = new RegExp(`${STRING}|:|\\d[.eE]|\\d{300}`, 'g');
    for (let found = marks.exec(text); found; found = marks.exec(text)) {
      if (found[0] === ':') members += 1;
      else if (found[0].length === 300 && found[0][0] !== '"') wrong('it holds a number of hundreds of digits');
      else if (found[0][0] !== '"') hasFractions = true;
    }
    let level = [content];
    for (let depth = 0; level.length; depth += 1) {
      if (depth > MOST_NESTED) wrong('it is nested too deeply');
      const inner = [];
      for (const holder of level) {
        const isList = Array.isArray(holder);
        const values = isList ? holder : Object.values(holder);
        if (!isList) members -= values.length;
        for (const value of values) if (typeof value === 'object' && value !== null) inner.push(value);
      }
      level = inner;
    }
    if (members) wrong('an object in it has two members of one name');
    if (!hasFractions) return content;
    const fraction = new RegExp(`(${STRING})|-?\\d+[.eE][-+.\\deE]*`, 'g');
    return JSON.parse(text.replace(fraction, (found, string) => string ?? `{"":[${found}]}`));
  };

  // --- Patterns -----------------------------------------------------------------------------------------------------

  const ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const NO_LETTER = '[^\\r\\n\\p{L}\\p{N}]?';
  const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
  const byCase = (endings, numbers) => {
    const [upper, lower] = ['[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'];
    const words = [`${NO_LETTER}${upper}*${lower}+${endings}`, `${NO_LETTER}${upper}+${lower}*${endings}`];
    return [...words, numbers, ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*', SPACES].join('|');
  };
  const likeLlama3 = (numbers) =>
    [ENDINGS, `${NO_LETTER}\\p{L}+`, numbers, ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*', SPACES].join('|');
  // The published patterns by their names (`cpbpe/text/split_patterns.py`).
  cpbpe.PATTERNS = {
    gpt2: "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
    cl100k:
      `'(?i:[sdmt]|ll|ve|re)|${NO_LETTER}+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+` +
      '|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s',
    o200k: byCase(`${ENDINGS}?`, '\\p{N}{1,3}'),
    llama3: likeLlama3('\\p{N}{1,3}'),
    qwen2: likeLlama3('\\p{N}'),
    tekken: byCase('', '\\p{N}'),
  };

  // --- Ranks (`cpbpe/model/formats/tiktoken.py`) --------------------------------------------------------------------

  const between = (first, last) => Array.from({ length: last - first + 1 }, (_, place) => first + place);
  // The names that are meant by their short form, in which `<a_{2-4}>` stands for three.
  const expanded = (short) =>
    short.split(' ').flatMap((name) => {
      const [, before, first, last, after] = /^(.*)\{(\d+)-(\d+)\}(.*)$/.exec(name) ?? [];
      return before === undefined ? [name] : between(Number(first), Number(last)).map((one) => before + one + after);
    });
  const numbered = (first, short) => new Map(expanded(short).map((name, place) => [name, first + place]));
  const FILL = '<|fim_prefix|> <|fim_middle|> <|fim_suffix|>';
  const GPT = '<|endoftext|>';
  const LLAMA = '<|begin_of_text|> <|end_of_text|>';
  const LLAMA3 =
    `${LLAMA} <|reserved_special_token_{0-1}|> <|finetune_right_pad_id|> <|step_id|> <|start_header_id|> ` +
    '<|end_header_id|> <|eom_id|> <|eot_id|> <|python_tag|> <|image|> <|reserved_special_token_{2-245}|>';
  const LLAMA4 =
    `${LLAMA} ${FILL} <|header_start|> <|header_end|> <|eom|> <|eot|> <|step|> ` +
    '<|text_post_train_reserved_special_token_{0-5}|> <|python_start|> <|python_end|> <|finetune_right_pad|> ' +
    '<|text_post_train_reserved_special_token_{8-68}|> <|image_start|> <|image_end|> ' +
    '<|vision_reserved_special_token_{0-1}|> <|tile_x_separator|> <|tile_y_separator|> ' +
    '<|vision_reserved_special_token_{2-5}|> <|image|> <|vision_reserved_special_token_6|> <|patch|> ' +
    '<|vision_reserved_special_token_{7-1047}|> <|reasoning_reserved_special_token_{0-7}|> ' +
    '<|reasoning_thinking_start|> <|reasoning_thinking_end|> <|reserved_special_token_{0-903}|>';
  // Files that are recognized by their SHA-256: the pattern, special tokens, and the tokens that begin and end a text.
  const KNOWN = {
    '306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930': ['gpt2', numbered(50256, GPT)],
    '94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069': ['gpt2', numbered(50256, GPT)],
    '223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7': [
      'cl100k',
      new Map([...numbered(100257, `${GPT} ${FILL}`), ['<|endofprompt|>', 100276]]),
    ],
    '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d': [
      'o200k',
      new Map([[GPT, 199999], ['<|endofprompt|>', 200018]]),
    ],
    '82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55': [
      ...['llama3', numbered(128000, LLAMA3), LLAMA.split(' ')],
    ],
    d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed: [
      ...['o200k', numbered(200000, LLAMA4), LLAMA.split(' ')],
    ],
    b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186: [
      ...['qwen2', numbered(151643, `${GPT} <|im_start|> <|im_end|> <|extra_{0-204}|>`)],
    ],
  };

  const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  const fromBase64 = (text) => {
    const isRight = typeof text === 'string' && text && BASE64.test(text);
    return isRight ? Uint8Array.from(atob(text), (one) => one.charCodeAt(0)) : null;
  };

  const readRanks = (bytes, pattern) => {
    // 1. How texts are cut.
    const [usual = null, special = new Map(), [first, last] = ['<s>', GPT]] = KNOWN[cpbpe.sha256(bytes)] ?? [];
    const chosen = pattern ?? usual;
    if (chosen === null) {
      const error = new Error('a file of ranks (.tiktoken) does not say how texts are cut; choose a pattern');
      throw Object.assign(error, { patterns: Object.keys(cpbpe.PATTERNS) });
    }
    if (/^[\w-]+$/.test(chosen) && !Object.hasOwn(cpbpe.PATTERNS, chosen)) {
      wrong(`there is no published pattern ${shown(chosen)}`);
    }
    // 2. The ranks.
    const ranks = new Map();
    const lines = new TextDecoder('latin1').decode(bytes).replace(/^\xef\xbb\xbf/, '').split('\n');
    lines.forEach((full, number) => {
      const line = full.replace(/\r+$/, '');
      if (!line) return;
      const [, token, rank] = /^[ \t]*([^ \t]+)[ \t]+([0-9]{1,9})[ \t]*$/.exec(line) ?? [];
      const piece = fromBase64(token);
      if (!piece) wrong(`line ${number + 1} must be a piece in base64, a space and a rank, and is ${shown(line)}`);
      if (ranks.has(Number(rank))) wrong(`the rank ${rank} of line ${number + 1} is that of another line, too`);
      ranks.set(Number(rank), piece);
    });
    // 3. The ids below the first unused one are pieces (`assembled` in `cpbpe/model/byte_level.py`).
    const byId = new Map([...special].map(([token, id]) => [id, token]));
    let size = 0;
    while (ranks.has(size) || byId.has(size)) size += 1;
    const above = [...ranks.keys()].find((id) => id >= size);
    if (above !== undefined) unknown(`no piece has the rank ${size}, and others have higher ones`);
    const file = written({
      pieces: between(0, size - 1).map((id) =>
        ranks.has(id) ? [ranks.get(id), 0 - id, NORMAL] : [byId.get(id), 0, CONTROL],
      ),
      names: ['<unk>', first, last, '<pad>'],
      added: [...special].filter(([, id]) => id >= size),
      patterns: chosen ? [cpbpe.PATTERNS[chosen] ?? chosen] : [],
      whole: true,
    });
    return { file, notes: [] };
  };

  // SHA-256, because pages that are opened from some addresses may not use the browser's own.
  cpbpe.sha256 = (bytes) => {
    const primes = between(2, 311).filter((one, _, all) => all.every((other) => other >= one || one % other));
    const fraction = (number) => Math.floor((number % 1) * 2 ** 32);
    const state = primes.slice(0, 8).map((prime) => fraction(prime ** 0.5));
    const constants = primes.map((prime) => fraction(Math.cbrt(prime)));
    const padded = new DataView(new ArrayBuffer((Math.floor((bytes.length + 8) / 64) + 1) * 64));
    new Uint8Array(padded.buffer).set(bytes);
    padded.setUint8(bytes.length, 0x80);
    padded.setBigUint64(padded.byteLength - 8, BigInt(bytes.length) * 8n);
    const rotated = (word, count) => (word >>> count) | (word << (32 - count));
    const words = new Int32Array(64);
    for (let block = 0; block < padded.byteLength; block += 64) {
      let [a, b, c, d, e, f, g, h] = state;
      for (let at = 0; at < 64; at += 1) {
        if (at < 16) {
          words[at] = padded.getInt32(block + 4 * at);
        } else {
          const [early, late] = [words[at - 15], words[at - 2]];
          words[at] = words[at - 16] + (rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3));
          words[at] += words[at - 7] + (rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10));
        }
        const turnedE = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
        const turnedA = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
        const one = h + turnedE + ((e & f) ^ (~e & g)) + constants[at] + words[at];
        const two = turnedA + ((a & b) ^ (a & c) ^ (b & c));
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((word, place) => (state[place] = (state[place] + word) | 0));
    }
    return state.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  };

  // --- tekken.json (`cpbpe/model/formats/tekken.py`) ----------------------------------------------------------------

  const WITHOUT_LIST = ['v1', 'v2', 'v3', 'v7'];
  const VERSIONS = [...WITHOUT_LIST, 'v11', 'v13', 'v15'];
  const USUAL =
    '<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] ' +
    '[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]';
  const OF_FILE = 'config vocab special_tokens image audio multimodal version type model_settings_builder'.split(' ');
  const OF_CONFIG = 'pattern num_vocab_tokens default_vocab_size default_num_special_tokens version'.split(' ');
  const MOST = 2 ** 24;
  const MOST_SPECIAL = 2 ** 16;

  // Whether a value is an object of exactly a `rank`, which is its place, and these members.
  const isRow = (row, place, ...names) => {
    if (kindOf(row) !== 'object' || row.rank !== place) return false;
    return Object.keys(row).sort().join() === ['rank', ...names].sort().join();
  };


  const readTekken = (text) => {
    const content = parsed(text);
    const config = member(content, 'config', 'object', '');
    // 1. The members, and the version.
    for (const [names, known] of [[content, OF_FILE], [config, OF_CONFIG]]) {
      const other = Object.keys(names).find((name) => !known.includes(name));
      if (other !== undefined) wrong(`it has ${shown(other)}, which no known version has`);
    }
    const { version, pattern } = config;
    if (!VERSIONS.includes(version)) wrong(`its version is ${shown(version)}; known are ${VERSIONS.join(', ')}`);
    const size = member(config, 'default_vocab_size', 'integer', 'config');
    const count = member(config, 'default_num_special_tokens', 'integer', 'config');
    if (size >= MOST || count < 0 || count > Math.min(size, MOST_SPECIAL)) wrong(`of ${size} ids ${count} are special`);
    // 2. The special tokens, which come first.
    const usual = USUAL.split(' ').map((token_str, rank) => ({ rank, token_str, is_control: true }));
    const given = content.special_tokens ?? (WITHOUT_LIST.includes(version) ? usual : null);
    if (!Array.isArray(given) || given.length > count) wrong(`its special_tokens must be a list of up to ${count}`);
    const special = given.map((row, place) => {
      const where = `special_tokens[${place}]`;
      const isRight = isRow(row, place, 'token_str', 'is_control') && typeof row.is_control === 'boolean';
      if (!isRight || !row.token_str) wrong(`${where} must have its rank, token_str and is_control, and nothing else`);
      return valid(typed(row.token_str, 'text', where));
    });
    for (let id = special.length; id < count; id += 1) special.push(`<SPECIAL_${id}>`);
    if (new Set(special).size < count) wrong('a special token occurs twice');
    // 3. The pieces.
    const vocab = member(content, 'vocab', 'list', '');
    if (vocab.length < size - count) wrong(`its vocab must have ${size - count} entries, and has ${vocab.length}`);
    const ranks = vocab.slice(0, size - count).map((row, rank) => {
      const piece = isRow(row, rank, 'token_bytes', 'token_str') && fromBase64(row.token_bytes);
      if (!piece) wrong(`vocab[${rank}] must have its rank, token_bytes and token_str, and is ${shown(row)}`);
      if (rank < 256 && (piece.length > 1 || piece[0] !== rank)) wrong(`vocab[${rank}] must be the byte ${rank}`);
      if (row.token_str !== null && row.token_str !== cpbpe.strictText(piece)) {
        wrong(`the token_str of vocab[${rank}], ${shown(row.token_str)}, is not what its bytes say`);
      }
      return piece;
    });
    if (!typed(pattern, 'text', 'config.pattern')) wrong('config.pattern is empty');
    const file = written({
      pieces: [
        ...special.map((token) => [token, 0, CONTROL]),
        ...ranks.map((piece, rank) => [piece, 0 - rank, NORMAL]),
      ],
      patterns: [pattern],
      whole: true,
    });
    const notes = [`The file's version, ${version}, which decides how conversations are written, is not kept.`];
    return { file, notes };
  };

  // --- All formats --------------------------------------------------------------------------------------------------

  const OTHERS = [
    [/^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?[0-9]+\s*,\s*"/, 'half of a model of two files (vocab.json and merges.txt)'],
    [/^#version/, 'half of a model of two files (vocab.json and merges.txt)'],
    [/^GGUF/, 'a GGUF file'],
    [/^minbpe v/, 'a model of minbpe'],
  ];

  // Read a model file of any format. In the result, `file` are the bytes of a .model, and `notes` are sentences that
  // say what the library of that format does differently. `pattern` is for files that do not say how texts are cut: the
  // name of a published one, a regular expression, or '' for not at all. Without it, the error for such a file has the
  // names as its `patterns`.
  cpbpe.read = (name, bytes, { pattern = null } = {}) => {
    try {
      return { name, ...readerOf(headOf(bytes))(bytes, pattern) };
    } catch (error) {
      error.message = `${error.message}.`;
      throw error;
    }
  };

  const headOf = (bytes) => new TextDecoder('latin1').decode(bytes.subarray(0, 4096)).replace(/^\xef\xbb\xbf/, '');
  const readerOf = (head) => {
    const other = OTHERS.find(([begins]) => begins.test(head))?.[1];
    if (other) return () => unknown(`it is ${other}`);
    if (/^\s*\{/.test(head)) return readJson;
    return /^[ \t]*[A-Za-z0-9+/]+={0,2}[ \t]+[0-9]+[ \t]*\r?\n/.test(head) ? readRanks : readModel;
  };
  // Whether a file begins like a model of a format other than .model. (Anything might be a .model.)
  cpbpe.isModelFile = (bytes) => {
    const head = headOf(bytes);
    const reader = readerOf(head);
    return reader === readJson ? /"(added_tokens|pre_tokenizer|vocab|config)"\s*:/.test(head) : reader !== readModel;
  };
  const readJson = (bytes) => {
    const text = cpbpe.strictText(bytes)?.replace(/^\ufeff/, '') ?? wrong('it is not UTF-8');
    if (text.includes('"config"') && text.includes('"token_bytes"')) return readTekken(text);
    if (/"added_tokens"|"pre_tokenizer"/.test(text)) return cpbpe.formats.readTokenizerJson(text);
    return wrong('it is JSON, but neither a tokenizer.json nor a tekken.json');
  };

  // A .model as it is, if it holds pieces (field 1), and its trainer_spec (2) has BPE as its model_type (3).
  const readModel = (bytes) => {
    const fields = cpbpe.fields(bytes) ?? [];
    if (!fields.some(({ number }) => number === 1)) wrong('it is no model file that is known here, or it is damaged');
    const trainer = fields.flatMap(({ number, value }) => (number === 2 ? cpbpe.fields(value) ?? [] : []));
    const type = trainer.findLast(({ number }) => number === 3)?.value ?? 1;
    const kind = ['', 'Unigram', 'BPE', 'Word', 'Char'][type] ?? `of type ${type}`;
    if (type !== 2) wrong(`its model is ${kind}, and cpbpe reads BPE models only (trained with --model_type=bpe)`);
    return { file: bytes, notes: [] };
  };

  cpbpe.formats = { between, kindOf, member, parsed, shown, typed, unknown, valid, written, wrong };
}
