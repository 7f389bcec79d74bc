'use strict';
// What the page asks about models and texts. Nothing here knows the page.

{
  // What divides a text into characters as readers see them (grapheme clusters).
  cpbpe.segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

  // The places inside these characters, in code points. (They are kept for the next model that has the same text.)
  let latest = { text: '', inside: new Set() };
  const insideCharacters = (text) => {
    if (latest.text === text) return latest.inside;
    const inside = new Set();
    latest = { text, inside };
    if (/^[\x00-\x0c\x0e-\x7f]*$/.test(text)) return inside; // ASCII, in which only "\r\n" is one character of two
    let at = 0;
    for (const { segment } of cpbpe.segmenter.segment(text)) {
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
    const size = cpbpe.length(text);
    const continues = new Map(); // whether an id's first byte continues a character
    const found = new Set();
    for (let at = 1; at < ids.length; at += 1) {
      const [id, before] = [ids[at], ids[at - 1]];
      if (special.has(id) || special.has(before)) continue;
      if (!continues.has(id)) {
        const first = model.outputOf(id)[0];
        continues.set(id, first >= 0x80 && first < 0xc0);
      }
      const isPart = continues.get(id) || inside.has(begins[at]);
      // (A normalizer may make several tokens of one character. Then all but the last are empty.)
      const followsEmpty = begins[at - 1] === ends[at - 1] && ends[at - 1] === begins[at] && begins[at] < size;
      if (isPart || (followsEmpty && !['▁', ''].includes(model.textOf(before)))) found.add(at);
    }
    return found;
  };

  // The tokens of a text: what `Model.encode` gives, which ids are `special`, which tokens are `joined`, and `counts`.
  cpbpe.tokens = (model, text, options) => {
    const made = model.encode(text, options);
    const special = new Set(made.ids.filter((id) => ['CONTROL', 'ADDED'].includes(model.typeOf(id))));
    const counts = { tokens: made.ids.length, characters: cpbpe.length(text), bytes: cpbpe.utf8(text).length };
    return { ...made, special, joined: joined(model, made, text, special), counts };
  };

  // The spans of a text that models cut differently. All models cut at both ends of such a span. Tokens around the text
  // (bos, eos) and a dummy prefix are no difference.
  cpbpe.differing = (models, answers, text) => {
    const size = cpbpe.length(text);
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
      if (place > begin && (place === size || cuts.every((own) => own[place]))) { // all cut: the span ends
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

  // The ids of the pieces that contain a text, ignoring case, the shortest first. If the text is an id, it comes first.
  cpbpe.search = (model, wanted) => {
    if (!wanted) return [];
    const id = /^#?([0-9]{1,9})$/.exec(wanted.trim())?.[1];
    const found = id !== undefined && (Number(id) < model.size || model.added.has(Number(id))) ? [Number(id)] : [];
    if (wanted.startsWith('#')) return found;
    // (Kept for the next search: making these texts takes longer than searching them.)
    model.lowered ??= Array.from({ length: model.size }, (_, one) => model.textOf(one).toLowerCase());
    const keys = [wanted.toLowerCase()];
    if (!model.isByteLevel) keys.push(keys[0].replaceAll(' ', '▁'));
    const holds = (text) => keys.some((key) => text.includes(key));
    const ids = model.lowered.flatMap((text, one) => (holds(text) ? [one] : []));
    for (const [one, text] of model.added) if (holds(text.toLowerCase())) ids.push(one);
    ids.sort((one, other) => model.textOf(one).length - model.textOf(other).length || one - other);
    return [...found, ...ids.filter((one) => one !== found[0])];
  };
}
