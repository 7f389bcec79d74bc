'use strict';
// The tool that trains: its options, the growth of the vocabulary, merge by merge, and the resulting model. What
// is computed is in train.js. The training itself runs in a worker, so that the page can still be used, and it can be
// cancelled.

{
  const SAMPLE = 2000; // characters that are shown as tokens
  const LONG = 50000; // characters; a longer text that is pasted is not put into the box
  const LARGEST = 50000000; // bytes of a text to train on
  const RIVALS = 6; // pairs that are shown with the one that was merged
  const RECENT = 12; // merges that are listed
  const POINTS = 300; // of the curve

  const TIES = {
    pieces: 'Of equally frequent pairs, the shorter text comes first, then the one with the smaller bytes.',
    tokenizers: 'Of equally frequent pairs, the one with the smaller ids comes first.',
    minbpe: 'Of equally frequent pairs, the one that the text has first comes first.',
  };

  const by = (id) => view.by(`train-${id}`);
  // `corpus`: a file that was opened, or a long text that was pasted. `trained`: what was learned; `model` has all of
  // its merges. `text`: that of the page. `sample`: the name of the sample; `units`: what it consists of; `shown`: how
  // many tokens of it are drawn, or -1. `frame`: that of the animation, or 0.
  const state = {
    corpus: null, worker: null, trained: null, model: null, text: '', sample: '', units: [], shown: -1, frame: 0,
  };

  // --- The worker ----------------------------------------------------------------------------------------------------

  // This runs in the worker, after engine.js: it passes questions on to the core.
  const serve = () => {
    let started = null;
    self.onmessage = async ({ data: { core, name, given, values } }) => {
      try {
        started ??= cpbpe.start(core);
        await started;
        cpbpe.call(name, given, ...values);
        self.postMessage({ numbers: cpbpe.numbers(), bytes: cpbpe.bytes() });
      } catch (error) {
        self.postMessage({ error: error.message });
      }
    };
  };

  // A worker with a core of its own. `ask` gives the answers in the order of the questions.
  const startWorker = () => {
    const engine = [...document.scripts].find((script) => script.dataset.name === 'engine.js').textContent;
    const address = URL.createObjectURL(new Blob([`${engine}\n(${serve})();`], { type: 'text/javascript' }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    const waiting = [];
    worker.onmessage = ({ data }) => {
      const { done, failed } = waiting.shift();
      if (data.error) failed(new Error(data.error));
      else done(data);
    };
    worker.onerror = (event) => waiting.splice(0).forEach(({ failed }) => failed(new Error(event.message)));
    const ask = (question) => new Promise((done, failed) => {
      waiting.push({ done, failed });
      worker.postMessage(question);
    });
    return { ask, end: () => worker.terminate() };
  };

  // --- What to train on, and how -------------------------------------------------------------------------------------

  // The text to train on: what was typed, a file that was opened, or else the text of the page.
  const corpusNow = () => {
    if (by('text').value) return { name: 'this text', bytes: cpbpe.utf8(by('text').value) };
    return state.corpus ?? { name: 'the text of the page', bytes: cpbpe.utf8(view.state.text) };
  };

  const showCorpus = () => {
    const { name, bytes } = corpusNow();
    const size = `: ${view.count(bytes.length, 'byte')}`;
    by('corpus').replaceChildren('Trains on ', view.element('bdi', '', null, name), size);
  };

  const setCorpus = (name, bytes) => {
    state.corpus = { name, bytes };
    by('text').value = '';
    showCorpus();
  };

  const openFile = async (file) => {
    const bytes = file.size > LARGEST ? new Uint8Array() : new Uint8Array(await file.arrayBuffer());
    let problem = '';
    if (file.size > LARGEST) problem = `is too long: the page trains on at most ${view.number(LARGEST)} bytes.`;
    else if (bytes.subarray(0, 8192).includes(0)) problem = 'is not text, or it is UTF-16: convert it to UTF-8 first.';
    by('problem').textContent = problem && `${file.name} ${problem}`;
    if (!problem) setCorpus(file.name, bytes);
  };

  const optionsNow = () => {
    const options = {};
    for (const input of view.by('train').querySelectorAll('[data-option]')) {
      const property = { number: 'valueAsNumber', checkbox: 'checked' }[input.type] ?? 'value';
      options[input.dataset.option] = input[property];
    }
    return options;
  };

  const wantsByteLevel = () => by('kind').value === 'bytes';

  const showOptions = () => {
    by('pieces').hidden = wantsByteLevel();
    by('bytes').hidden = !wantsByteLevel();
  };

  // The first option that is out of its range, in words.
  const wrongOption = () => {
    for (const input of view.by('train').querySelectorAll('input[data-option]')) {
      if (input.closest('[hidden]') || input.checkValidity()) continue;
      const name = input.labels[0].textContent.trim();
      const kind = input.step === 'any' ? 'a number' : 'a whole number';
      return `${name}: ${kind} from ${input.min} to ${view.number(Number(input.max))}.`;
    }
    return '';
  };

  // --- Training ------------------------------------------------------------------------------------------------------

  const stop = () => {
    cancelAnimationFrame(state.frame);
    state.frame = 0;
    by('play').textContent = 'Play';
  };

  // End the training, and forget what was trained.
  const reset = (message) => {
    stop();
    state.worker?.end();
    state.worker = null;
    state.model?.close();
    Object.assign(state, { trained: null, model: null, shown: -1 });
    view.by('trained').hidden = true;
    by('warnings').replaceChildren();
    by('status').textContent = message;
    by('cancel').hidden = true;
    by('start').disabled = false;
  };

  const train = async () => {
    reset('');
    by('problem').textContent = wrongOption();
    if (by('problem').textContent) return;
    // 1. Ask.
    const [{ bytes }, options, begin] = [corpusNow(), optionsNow(), performance.now()];
    by('status').textContent = 'Training…';
    by('cancel').hidden = false;
    by('start').disabled = true;
    const worker = startWorker();
    state.worker = worker;
    try {
      const base = await view.unpacked(view.data.training[wantsByteLevel() ? options.pattern : 'sentencepiece']);
      const core = await view.unpacked(view.by('core').textContent);
      const answer = await worker.ask({ core, ...cpbpe.training(base, options, bytes) });
      if (state.worker !== worker) return; // it was cancelled
      // 2. Show what was learned.
      const trained = new cpbpe.Trained(base, options, answer);
      if (trained.problem) throw new Error(trained.problem);
      state.trained = trained;
      state.model = new cpbpe.Model(trained.file());
    } catch (error) {
      if (state.worker !== worker) return;
      reset('');
      by('problem').textContent = error.message;
      return;
    }
    const time = ((performance.now() - begin) / 1000).toFixed(1);
    by('status').textContent = `${view.number(state.trained.merges)} merges, learned in ${time} seconds`;
    by('cancel').hidden = true;
    by('start').disabled = false;
    by('warnings').replaceChildren(...state.trained.warnings.map((text) => {
      const row = view.element('li');
      view.append(row, text, false, 'none');
      return row;
    }));
    view.by('trained').hidden = false;
    by('step').max = state.trained.merges;
    takeSample();
    drawCurve();
    go(state.trained.merges);
    view.by('trained').scrollIntoView({ block: 'nearest' });
  };

  // --- The growth of the vocabulary ----------------------------------------------------------------------------------

  // How many merges are shown.
  const step = () => Number(by('step').value);

  const go = (merges) => {
    by('step').value = merges;
    draw();
  };

  const play = () => {
    if (state.frame) return stop();
    if (step() >= state.trained.merges) go(0);
    by('play').textContent = 'Pause';
    let [last, rest] = [performance.now(), 0];
    const next = (now) => {
      rest += ((now - last) / 1000) * Number(by('speed').value);
      last = now;
      const whole = Math.floor(rest);
      rest -= whole;
      if (whole) go(step() + whole);
      if (step() >= state.trained.merges) stop();
      else state.frame = requestAnimationFrame(next);
    };
    state.frame = requestAnimationFrame(next);
    return undefined;
  };

  // A symbol as a chip. Bytes that are no whole characters are written as numbers.
  const chip = (bytes) => {
    const text = cpbpe.strictText(bytes);
    return text === null ? view.element('span', 'bytes', null, view.hex(bytes)) : view.piece(text, 'symbol');
  };

  // A pair that could have been merged, with a bar: how often it occurred, beside the one that was.
  const pairRow = (left, right, count, most) => {
    const [one, other] = [left, right].map((symbol) => chip(state.trained.bytesOf(symbol)));
    return view.element('li', '', null, view.element('span', '', null, one, ' + ', other),
      view.element('span', 'quiet', null, view.count(count, 'time')),
      view.element('progress', '', { max: most, value: count, 'aria-hidden': 'true' }));
  };

  const draw = () => {
    const { trained } = state;
    const merges = step();
    // 1. How far it is, and how large this vocabulary is.
    const size = view.number(trained.size(merges));
    const rate = trained.rate(merges);
    by('place').textContent = `${view.number(merges)} of ${view.number(trained.merges)} merges`;
    by('step').setAttribute('aria-valuetext', `${merges} merges, ${size} pieces`);
    by('size').textContent =
      `${size} pieces · ${rate.toFixed(3)} tokens per byte, ${(1 / rate).toFixed(2)} bytes per token in the text`;
    by('download').textContent = `Download the model of ${size} pieces`;
    // 2. The last merge, and those before it.
    const [symbols, first] = [trained.pairs, trained.singles.length]; // (the first symbol that is a merge)
    by('merge').replaceChildren();
    if (merges) {
      const [left, right] = [symbols[2 * merges - 2], symbols[2 * merges - 1]];
      const [one, other, made] = [left, right, first + merges - 1].map((symbol) => chip(trained.bytesOf(symbol)));
      const times = view.count(trained.frequencies[merges - 1], 'time');
      by('merge').append(`Merge ${view.number(merges)}: `, one, ' + ', other, ' → ', made, `, ${times}`);
    } else by('merge').append(`No merges yet: only ${isByteLevelModel() ? 'bytes' : 'characters'}.`);
    const recent = [];
    for (let at = merges - 1; at >= Math.max(0, merges - RECENT); at -= 1) {
      recent.push(view.element('li', '', { value: at + 1 }, chip(trained.bytesOf(first + at)), ' ',
        view.element('span', 'quiet', null, view.count(trained.frequencies[at], 'time'))));
    }
    by('recent').replaceChildren(...recent);
    // 3. The sample, the curve, and what lost.
    drawSample(merges);
    const [x, y] = place(merges);
    by('curve').querySelector('circle').setAttribute('cx', x);
    by('curve').querySelector('circle').setAttribute('cy', y);
    askRivals(merges);
  };

  const isByteLevelModel = () => state.trained.base.isByteLevel;

  // Ask what the last merge was chosen from. While the worker is busy, only the last question is kept.
  let asked = null;
  const askRivals = async (merges) => {
    const isBusy = asked !== null;
    asked = merges;
    if (isBusy) return;
    const { worker } = state;
    try {
      let answered = null;
      while (asked !== answered && state.worker === worker) {
        answered = asked;
        const question = { name: 'rivals', given: new Uint8Array(), values: [Math.max(0, answered - 1), RIVALS + 1] };
        const { numbers } = await worker.ask(question);
        if (state.worker === worker) drawRivals(answered, numbers);
      }
    } finally {
      asked = null;
    }
  };

  const drawRivals = (merges, numbers) => {
    const rows = [];
    const count = (at) => numbers[at + 2] + numbers[at + 3] * 2 ** 32;
    for (let at = 4; merges && at < numbers.length; at += 4) {
      rows.push(pairRow(numbers[at], numbers[at + 1], count(at), count(0)));
    }
    by('rivals').replaceChildren(...rows);
    by('rivals-title').hidden = !rows.length;
    const rule = isByteLevelModel() ? state.trained.options.ties : 'pieces';
    by('tie').textContent = rows.length && count(4) === count(0) ? TIES[rule] : '';
    by('rivals').dataset.merges = merges; // for tests
  };

  // --- The sample ----------------------------------------------------------------------------------------------------

  // The sample is the text of the page, or the selected part of it; without one, how the corpus begins.
  const takeSample = () => {
    const text = state.text || cpbpe.text(corpusNow().bytes.subarray(0, 4 * SAMPLE));
    const characters = Array.from(text.slice(0, 2 * SAMPLE + 2)); // (some take two units)
    const part = characters.length > SAMPLE ? `the first ${view.number(SAMPLE)} characters of ` : '';
    state.sample = state.text ? `${part}the text above` : 'the beginning of the training text';
    state.units = state.trained.units(state.model, characters.slice(0, SAMPLE).join(''));
    state.shown = -1;
  };

  const drawSample = (merges) => {
    // 1. The tokens. Merges only join them, so if there are as many as before, they are the same.
    const tokens = [];
    for (const { bytes, until } of state.units) {
      if (until > merges) tokens.push([bytes]);
      else tokens[tokens.length - 1].push(bytes);
    }
    by('count').textContent = `${view.count(tokens.length, 'token')} in ${state.sample}`;
    if (tokens.length === state.shown) return;
    state.shown = tokens.length;
    // 2. The first unit of a token decides its colour, so that a merge changes only the colour of its right part.
    const nodes = [];
    let [at, before] = [0, -1];
    for (const parts of tokens) {
      let colour = at % 6;
      if (colour === before) colour = (colour + 1) % 6;
      const joined = cpbpe.join(parts);
      const text = cpbpe.strictText(joined);
      const node = view.element('span', `made c${colour}`);
      if (text === null) node.append(view.element('span', 'bytes', null, view.hex(joined)));
      else view.append(node, text, false, 'some');
      nodes.push(node);
      if (text?.endsWith('\n')) nodes.push(document.createElement('br'));
      at += parts.length;
      before = colour;
    }
    by('sample').replaceChildren(...nodes);
  };

  // --- The curve -----------------------------------------------------------------------------------------------------

  const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [480, 220, 44, 24, 12];
  // Where the curve is after this many merges.
  const place = (merges) => {
    const { trained } = state;
    const x = LEFT + ((WIDTH - LEFT - 8) * merges) / Math.max(1, trained.merges);
    const y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - trained.rate(merges) / trained.rate(0));
    return [x.toFixed(1), y.toFixed(1)];
  };

  const shape = (name, attributes, ...children) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const drawCurve = () => {
    const { trained } = state;
    const point = (number) => place(Math.round((trained.merges * number) / POINTS)).join();
    const points = Array.from({ length: POINTS + 1 }, (_, number) => point(number));
    const text = (x, y, anchor, words) => shape('text', { x, y, 'text-anchor': anchor }, words);
    by('curve').replaceChildren(
      shape('path', { class: 'axis', d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 8}` }),
      shape('polyline', { class: 'line', points: points.join(' ') }),
      shape('circle', { r: 5 }),
      text(LEFT - 5, TOP + 5, 'end', trained.rate(0).toFixed(2)),
      text(LEFT - 5, HEIGHT - BOTTOM, 'end', '0'),
      text(LEFT, HEIGHT - 6, 'start', '0 merges'),
      text(WIDTH - 8, HEIGHT - 6, 'end', view.number(trained.merges)),
      text(WIDTH - 8, TOP + 5, 'end', 'tokens per byte'),
    );
  };

  const goToPointer = (event) => {
    const { left, width } = by('curve').getBoundingClientRect();
    const share = (((event.clientX - left) / width) * WIDTH - LEFT) / (WIDTH - LEFT - 8);
    go(Math.round(Math.min(1, Math.max(0, share)) * state.trained.merges));
  };

  // --- The model -----------------------------------------------------------------------------------------------------

  const fileName = () => `trained-${state.trained.size(step())}.model`;

  const download = () => {
    view.save(new Blob([state.trained.file(step())], { type: 'application/octet-stream' }), fileName());
  };

  // --- Start ---------------------------------------------------------------------------------------------------------

  const on = (id, event, then) => by(id).addEventListener(event, then);
  view.tool('train', ({ text }) => {
    showCorpus();
    if (text === state.text) return;
    state.text = text;
    if (!state.trained) return;
    takeSample();
    drawSample(step());
  });
  on('text', 'input', () => {
    state.corpus = null;
    showCorpus();
  });
  // A long text is kept aside: in the box, half a megabyte would take Chromium two seconds, and more much longer.
  on('text', 'paste', (event) => {
    const text = event.clipboardData.getData('text/plain').replace(/\r\n?/g, '\n');
    if (text.length < LONG) return;
    event.preventDefault();
    setCorpus('the pasted text', cpbpe.utf8(text));
  });
  on('open', 'click', () => by('file').click());
  on('file', 'change', () => by('file').files.length && openFile(by('file').files[0]));
  // A file that is dropped here is a text to train on, even if the page would open it as a model.
  for (const [name, isOver] of [['dragover', true], ['dragleave', false], ['drop', false]]) {
    on('drop', name, (event) => {
      if (!event.dataTransfer.types.includes('Files')) return;
      event.preventDefault();
      if (name !== 'dragleave') event.stopPropagation();
      by('drop').classList.toggle('over', isOver);
      if (name === 'drop') openFile(event.dataTransfer.files[0]);
    });
  }
  on('kind', 'change', showOptions);
  on('start', 'click', train);
  on('cancel', 'click', () => reset('Cancelled.'));
  on('step', 'input', () => {
    stop();
    draw();
  });
  on('back', 'click', () => go(step() - 1));
  on('forward', 'click', () => go(step() + 1));
  on('play', 'click', play);
  on('curve', 'pointerdown', goToPointer);
  on('curve', 'pointermove', (event) => event.buttons && goToPointer(event));
  on('download', 'click', download);
  on('use', 'click', () => {
    view.addModel(fileName(), state.trained.file(step()));
    by('status').textContent = `${fileName()} is a column of the page.`;
    view.flash(by('status').textContent);
  });
  showOptions();
}
