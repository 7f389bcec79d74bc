'use strict';
// The tokens of a text with one model. A long text has tens of thousands, so they are divided into blocks, and only
// the blocks near the visible part have elements.

const BLOCK = 100; // tokens, after which a block ends at the next line break
const MOST = 200; // tokens, after which it ends even without one
const LINE = 30; // pixels; the guessed height of a line
const AROUND = '200px'; // blocks that are this near the visible part have elements

// The first of `count` numbers that is past a place. (All after it are past it, too.)
const firstPast = (count, isPast) => {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isPast(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
};

view.Panel = class {
  constructor(parent, events) {
    this.events = events;
    this.select = view.element('select', 'model', { 'aria-label': 'Model of this column' });
    this.remove = view.element('button', '', { type: 'button', 'aria-label': 'Remove this column' }, '×');
    this.select.addEventListener('change', () => events.choose(this, this.models[Number(this.select.value)]));
    this.remove.addEventListener('click', () => events.remove(this));
    this.menu = view.menu(this);
    this.counts = view.element('p', 'counts');
    this.bar = view.element('div', 'bar', { 'aria-hidden': 'true' }, view.element('span'));
    this.problem = view.element('p', 'problem', { role: 'alert' });
    this.list = view.element('div', 'tokens', { role: 'group' });
    const about = view.element('summary', 'quiet', null, 'About this file');
    this.notes = view.element('details', 'notes', null, about, view.element('p', 'quiet'));
    const head = view.element('div', 'row', null, this.select, this.menu, this.remove);
    const parts = [head, this.counts, this.bar, this.notes, this.problem, this.list];
    this.section = view.element('section', 'panel', null, ...parts);
    parent.append(this.section);
    this.blocks = [];
    // (Sizes are kept, and updated when they change: asking for them makes the browser lay out the page, which takes a
    // while with a long text.)
    Object.assign(this, { width: this.list.clientWidth || 600, height: this.list.clientHeight || 600, top: 0 });
    new ResizeObserver(([{ contentRect }]) => {
      this.width = contentRect.width;
      this.height = Math.max(contentRect.height, 100);
    }).observe(this.list);
    this.current = 0; // the token that Tab leads to
    this.followed = -1; // where the list was scrolled to because another one was
    this.observer = new IntersectionObserver((entries) => this.see(entries), {
      root: this.list,
      rootMargin: AROUND,
    });
    this.list.addEventListener('pointerover', (event) => this.point(event));
    this.list.addEventListener('focusin', (event) => this.point(event));
    this.list.addEventListener('click', (event) => {
      const at = this.at(event);
      if (at === null) return;
      this.point(event);
      if (event.pointerType !== 'touch') this.events.open(this, at); // on a touch screen, a button opens the tree
    });
    this.list.addEventListener('keydown', (event) => this.key(event));
    this.list.addEventListener('copy', (event) => this.copy(event));
    this.list.addEventListener('scroll', () => this.scrolled(), { passive: true });
  }

  // --- What is shown -----------------------------------------------------------------------------------------------

  show(model, answer, { text, places, differing, mode, most }) {
    Object.assign(this, { model, answer, text, places, differing, mode });
    this.select.value = String(this.models.indexOf(model));
    this.select.title = `${model.name}: ${view.summary(model)}`;
    this.list.setAttribute('aria-label', `Tokens of ${model.name}`);
    this.list.className = `tokens ${mode}`;
    this.problem.textContent = answer.error || '';
    this.notes.hidden = !model.notes.length;
    this.notes.lastChild.textContent = model.notes.join(' ');
    this.section.classList.toggle('failed', Boolean(answer.error));
    this.observer.disconnect();
    this.blocks = [];
    this.counts.replaceChildren();
    if (answer.error) {
      this.list.replaceChildren();
      return;
    }
    const { tokens, characters } = answer.counts;
    this.counts.append(view.element('strong', '', null, view.number(tokens)), tokens === 1 ? ' token' : ' tokens');
    if (tokens) this.counts.append(` · ${(characters / tokens).toFixed(2)} characters each`);
    this.bar.firstChild.style.width = `${most ? (100 * tokens) / most : 0}%`;
    this.current = Math.min(this.current, Math.max(0, answer.ids.length - 1));
    this.divide();
    this.list.replaceChildren(...this.blocks.map((block) => block.element));
    // Fill visible blocks immediately, so that nothing flickers while somebody types.
    let height = 0;
    for (const block of this.blocks) {
      if (height > this.top + this.height) break;
      height += block.height;
      if (height >= this.top) this.fill(block);
    }
    for (const block of this.blocks) this.observer.observe(block.element);
  }

  // Offer these models to choose from, and to remove the column if it is one of several.
  offer(models, isOneOfSeveral) {
    const names = models.map((model, at) => view.element('option', '', { value: at }, model.name));
    this.select.replaceChildren(...names);
    this.remove.hidden = !isOneOfSeveral;
    this.models = models;
  }

  // Where a token begins and ends in the text.
  span(at) {
    return [this.answer.begins[at], this.answer.ends[at]];
  }

  slice(begin, end) {
    const places = this.places;
    return places ? this.text.slice(places[begin], places[end]) : this.text.slice(begin, end);
  }

  // Divide the tokens into blocks, whose heights are guessed.
  divide() {
    const { ids, begins, ends } = this.answer;
    const columns = Math.max(20, this.width / 10); // of characters
    const isText = this.mode === 'text';
    let first = 0;
    for (let at = 0; at < ids.length; at += 1) {
      const size = at + 1 - first;
      const isLast = at + 1 === ids.length;
      if (!isLast && (this.answer.joined.has(at + 1) || size < BLOCK)) continue;
      if (!isLast && size < MOST && !(isText && this.slice(begins[at], ends[at]).endsWith('\n'))) continue;
      const height = LINE * Math.ceil(isText ? this.lines(begins[first], ends[at], columns) : (size * 6) / columns);
      const element = view.element('div', 'block', { dir: 'auto' });
      element.style.height = `${height}px`;
      const block = { first, end: at + 1, element, height, filled: false };
      element.block = block;
      this.blocks.push(block);
      first = at + 1;
    }
  }

  // How many lines a part of the text has, roughly.
  lines(begin, end, columns) {
    const text = this.slice(begin, end);
    let lines = 0;
    let at = 0;
    while (at <= text.length) {
      const next = text.indexOf('\n', at);
      const length = (next < 0 ? text.length : next) - at;
      lines += Math.max(1, Math.ceil(length / columns));
      at += length + 1;
    }
    return lines;
  }

  // Blocks have come near the visible part, or gone away from it.
  see(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.fill(target.block);
      else this.empty(target.block);
    }
  }

  empty(block) {
    if (!block.filled || block.element.contains(document.activeElement)) return;
    block.element.style.height = `${block.element.offsetHeight}px`;
    block.element.replaceChildren();
    block.filled = false;
  }

  fill(block) {
    if (block.filled) return;
    block.filled = true;
    const nodes = [];
    let at = block.first;
    while (at < block.end) {
      let end = at + 1;
      while (end < block.end && this.answer.joined.has(end)) end += 1;
      nodes.push(...(end - at === 1 || this.mode !== 'text' ? this.tokens(at, end) : [this.group(at, end)]));
      const { begins, ends } = this.answer;
      const isBreak = this.mode === 'text' && this.slice(begins[at], ends[end - 1]).endsWith('\n');
      // (Groups and chips have no line breaks in them.)
      if (isBreak && !nodes[nodes.length - 1].querySelector('br')) nodes.push(document.createElement('br'));
      at = end;
    }
    block.element.replaceChildren(...nodes);
    block.element.style.height = '';
  }

  // Tokens that share a character: show the characters once, then the tokens.
  group(first, end) {
    const { begins, ends } = this.answer;
    const text = view.element('span', 'whole');
    view.append(text, this.slice(begins[first], ends[end - 1]), false);
    const group = view.element('span', 'group', null, text);
    for (let at = first; at < end; at += 1) group.append(this.token(at, true)); // (their pieces: the text stands there)
    return group;
  }

  tokens(first, end) {
    const nodes = [];
    for (let at = first; at < end; at += 1) nodes.push(this.token(at, false));
    return nodes;
  }

  token(at, isInGroup) {
    const { ids, begins, ends, special } = this.answer;
    const id = ids[at];
    const piece = this.model.textOf(id);
    const text = this.slice(begins[at], ends[at]);
    const differs = this.differs(begins[at], ends[at]);
    const classes = `token c${at % 6}${differs ? ' differs' : ''}${special.has(id) ? ' special' : ''}`;
    const made = view.element('span', classes, {
      role: 'button',
      tabindex: at === this.current ? '0' : '-1',
      'data-at': at,
      'aria-label': `${view.spokenPiece(this.model, id)}, id ${id}${differs ? ', cut differently' : ''}`,
    });
    const isPiece = isInGroup || this.mode === 'pieces'; // not the text that it stands for
    const isBytes = isPiece ? view.isBytes(this.model, id) : this.model.typeOf(id) === 'BYTE';
    if (this.mode === 'ids') made.append(String(id));
    else if (isBytes) {
      made.classList.add('bytes');
      made.append(view.hex(this.model.outputOf(id)));
    } else if (isPiece || !text) {
      if (!text || isInGroup) made.classList.add('chip');
      made.append(view.piece(piece));
    } else view.append(made, text, true, 'some');
    return made;
  }

  // Whether a part of the text is in a span that models cut differently.
  differs(begin, end) {
    const spans = this.differing;
    const at = firstPast(spans.length, (one) => spans[one][1] > begin);
    return at < spans.length && spans[at][0] < Math.max(end, begin + 1);
  }

  // --- The token under the pointer ---------------------------------------------------------------------------------

  // The token that an event is about; null if there is none.
  at(event) {
    const token = event.target.closest('.token');
    return token && this.list.contains(token) ? Number(token.dataset.at) : null;
  }

  point(event) {
    const at = this.at(event);
    if (at === null) return;
    if (event.type === 'focusin') this.stand(at);
    this.events.point(this, at);
  }

  // Ids are copied as a list: `1, 2, 3`. (Blocks that are not shown have no elements, but their ids are copied, too.)
  copy(event) {
    if (this.mode !== 'ids') return;
    const selection = getSelection();
    const chosen = [...this.list.querySelectorAll('.token')].filter((one) => selection.containsNode(one, true));
    if (!chosen.length || selection.isCollapsed) return;
    const [first, last] = [chosen[0], chosen[chosen.length - 1]].map((one) => Number(one.dataset.at));
    event.clipboardData.setData('text/plain', this.answer.ids.slice(first, last + 1).join(', '));
    event.preventDefault();
  }

  // --- Scrolling together ------------------------------------------------------------------------------------------

  // The list was scrolled. Say to which place of the text, unless the list only followed another one.
  scrolled() {
    const top = this.list.scrollTop;
    this.top = top;
    if (Math.abs(top - this.followed) < 2) return;
    this.followed = -1;
    const block = this.blocks.find((one) => one.element.offsetTop + one.element.offsetHeight > top);
    if (!block) return;
    const { begins, ends } = this.answer;
    const [begin, end] = [begins[block.first], ends[block.end - 1]];
    const part = Math.max(0, (top - block.element.offsetTop) / block.element.offsetHeight);
    this.events.scrolled(this, begin + part * (end - begin));
  }

  follow(place) {
    const { begins, ends } = this.answer;
    const block = this.blocks.find((one) => ends[one.end - 1] > place);
    if (!block) return;
    const [begin, end] = [begins[block.first], ends[block.end - 1]];
    const part = Math.max(0, (place - begin) / (end - begin));
    this.list.scrollTop = block.element.offsetTop + part * block.element.offsetHeight;
    this.followed = this.list.scrollTop;
  }

  // Let Tab lead to a token, instead of the current one.
  stand(at) {
    this.element(this.current)?.setAttribute('tabindex', '-1');
    this.current = at;
    this.element(at)?.setAttribute('tabindex', '0');
  }

  element(at) {
    return this.list.querySelector(`[data-at="${at}"]`);
  }

  key(event) {
    const at = this.at(event);
    if (at === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const rightToLeft = getComputedStyle(event.target.closest('.block')).direction === 'rtl';
    const last = this.answer.ids.length - 1;
    const goal = {
      ArrowRight: at + (rightToLeft ? -1 : 1),
      ArrowLeft: at + (rightToLeft ? 1 : -1),
      ArrowDown: at + 10, // (about a line)
      ArrowUp: at - 10,
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.events.open(this, at);
    } else if (goal !== undefined) {
      event.preventDefault();
      this.go(Math.max(0, Math.min(last, goal)));
    }
  }

  go(at) {
    const block = this.blocks.find((one) => at < one.end);
    if (!block) return;
    this.fill(block);
    this.stand(at);
    this.element(at)?.focus();
  }

  // Mark the tokens of a span, at whose place the pointer is on a token of another model.
  mark(begin, end) {
    for (const marked of this.list.querySelectorAll('.linked')) marked.classList.remove('linked');
    if (begin === end || !this.answer || this.answer.error) return;
    const { begins, ends } = this.answer;
    const first = firstPast(begins.length, (one) => ends[one] > begin);
    for (let at = first; at < begins.length && begins[at] < end && at < first + 100; at += 1) {
      this.element(at)?.classList.add('linked');
    }
  }
};
