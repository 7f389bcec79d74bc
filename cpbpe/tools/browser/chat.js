'use strict';
// Conversations: the text that a chat template makes of one, and its tokens. A template is a program, which is not run
// here: `cpbpe/tools/chat.py` has made a table of it, and says what the table holds.

{
  const WAY_OUT = 'tok.apply_chat_template() renders it in Python';
  const SPACES = '[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+'; // as in Python
  const TRIMS = {
    left: new RegExp(`^${SPACES}`),
    right: new RegExp(`${SPACES}$`),
    both: new RegExp(`^${SPACES}|${SPACES}$`, 'g'),
  };

  // A conversation as parts: `{ text, message }`, where `message` is the number of the message that says it, or null for
  // what the template writes. `prompt`: whether the beginning of an answer follows. An error says why there are none.
  cpbpe.chat = (table, messages, prompt) => {
    if (table.problem) throw new Error(table.problem);
    messages.forEach(({ content }, at) => {
      const odd = table.unless.find((text) => (text ? content.includes(text) : !content.replace(TRIMS.both, '')));
      if (odd === undefined) return;
      const what = odd ? `holds ${JSON.stringify(odd)}` : 'is empty';
      throw new Error(`Message ${at + 1} ${what}, which this chat template treats in a way of its own; ${WAY_OUT}.`);
    });
    const roles = messages.map((message) => message.role);
    const [seesUser, seesSystem, mostBefore, mostAfter] = table.features;
    const key = (at) => {
      const one = at ? roles[at - 1] : 'start';
      const other = at < roles.length ? roles[at] : prompt ? 'prompt' : 'end';
      const seen = (sees, role) => Number(sees && roles.slice(0, at).includes(role));
      const distances = [Math.min(at, mostBefore), Math.min(roles.length - at, mostAfter)];
      return [one, other, seen(seesUser, 'user'), seen(seesSystem, 'system'), ...distances].join(' ');
    };
    const parts = [];
    for (let at = 0; at <= roles.length; at += 1) {
      const place = key(at);
      if (!Object.hasOwn(table.texts, place)) {
        // (The template may never have been tried with these roles: the reason is one for another conversation.)
        const why = Object.hasOwn(table.refused, place) ? ` It ${table.refused[place]}`.replace(/\.?$/, '.') : '';
        throw new Error(`As far as is known, the chat template takes no messages in this order.${why}`);
      }
      if (table.texts[place]) parts.push({ text: table.texts[place], message: null });
      if (at === roles.length) break;
      const { content } = messages[at];
      const trim = TRIMS[table.trims[place]];
      const text = trim ? content.replace(trim, '') : content;
      if (text) parts.push({ text, message: at });
    }
    return parts;
  };

  // The ids of each part. All is encoded as one text, in which only the template writes special tokens; in messages they
  // are text. (`cpbpe/tokenizer/chats.py` does the same, and says why.) `whole` are the ids if they were tokens there, too.
  cpbpe.chatTokens = (model, parts) => {
    const text = parts.map((part) => part.text).join('');
    const said = parts.flatMap((part) => Array(part.text.length).fill(part.message !== null));
    const made = model.encode(text, { row: rowOf(model, text, said) });
    // An id belongs to the first message of which it has a character, or else to the template.
    const ids = parts.map(() => []);
    const ends = [];
    for (const part of parts) ends.push((ends[ends.length - 1] ?? 0) + cpbpe.length(part.text));
    made.ids.forEach((id, token) => {
      const [begin, end] = [made.begins[token], Math.max(made.ends[token], made.begins[token] + 1)];
      const first = ends.findIndex((one) => one > begin);
      let at = first;
      while (!model.texts.has(id) && parts[at].message === null && ends[at] < end) at += 1;
      ids[parts[at].message === null ? first : at].push(id);
    });
    return { ids, whole: model.encode(text, { special: true }).ids };
  };

  // The parts of a text, of which special tokens are those that the template wrote: what messages say is covered.
  const rowOf = (model, text, said) => {
    const used = [...model.special.keys()].join('');
    const cover = (unit) => {
      let code = /[\p{L}\p{N}]/u.test(unit) ? 0x4e00 : 0xe000;
      while (used.includes(String.fromCharCode(code))) code += 1;
      return String.fromCharCode(code);
    };
    let covered = text;
    for (;;) {
      const row = model.split(covered, { special: true });
      const hidden = [];
      let at = 0;
      for (const part of row) {
        const taken = part.text ?? part;
        const token = model.texts.get(part.id);
        if (token !== undefined) {
          const begin = at + Math.max(0, taken.indexOf(token));
          const place = said.indexOf(true, begin);
          if (place >= 0 && place < begin + token.length) hidden.push(place);
        }
        at += taken.length;
      }
      if (!hidden.length) {
        at = 0;
        return row.map((part) => {
          const own = text.slice(at, (at += (part.text ?? part).length));
          return typeof part === 'object' ? { ...part, text: own } : own;
        });
      }
      const units = Array.from({ length: covered.length }, (_, unit) => covered[unit]);
      for (const place of hidden) units[place] = cover(units[place]);
      covered = units.join('');
    }
  };
}

if (typeof document !== 'undefined') {
  // --- The panel ---------------------------------------------------------------------------------------------------

  const DRAWN = 3000; // tokens
  const EXAMPLE = [
    ['user', 'Why is the sky blue?'],
    ['assistant', 'Because air scatters blue light most.'],
    ['user', 'And at night?'],
  ];
  const rows = []; // for each message its elements, and its role (`wanted`), which the template may not have
  const list = view.by('messages');
  let latest = null; // what the panel was last drawn for

  const addRow = (role, content) => {
    const button = (name, label, act) => {
      const made = view.element('button', '', { type: 'button', 'aria-label': label, title: label }, name);
      made.addEventListener('click', act);
      return made;
    };
    const row = {
      role: view.element('select', '', { 'aria-label': 'Role' }),
      box: view.element('textarea', '', { rows: 1, dir: 'auto', spellcheck: 'false', 'aria-label': 'Message' }),
      count: view.element('output', 'quiet'),
    };
    const move = (by) => (event) => {
      const at = rows.indexOf(row);
      if (!rows[at + by]) return;
      rows.splice(at, 1);
      rows.splice(at + by, 0, row);
      show();
      event.target.focus();
    };
    const remove = () => {
      const at = rows.indexOf(row);
      rows.splice(at, 1);
      show();
      (rows[at] ?? rows[at - 1])?.box.focus();
      if (!rows.length) view.by('chat-add').focus();
    };
    const buttons = [button('↑', 'Move up', move(-1)), button('↓', 'Move down', move(1)), button('×', 'Remove', remove)];
    row.item = view.element('li', '', null, row.role, row.box, view.element('span', 'row', null, row.count, ...buttons));
    row.wanted = role;
    row.role.addEventListener('change', () => {
      row.wanted = row.role.value;
      draw(latest);
    });
    row.box.value = content;
    row.box.addEventListener('input', () => draw(latest));
    rows.push(row);
    return row;
  };
  const show = () => {
    list.replaceChildren(...rows.map((row) => row.item));
    draw(latest);
  };

  const chip = (model, id, className) => {
    const isSpecial = id >= model.size || model.typeOf(id) === 'CONTROL';
    const classes = `symbol ${isSpecial ? 'special' : className}`;
    const made = view.isBytes(model, id)
      ? view.element('bdi', `${classes} bytes`, null, view.hex(model.outputOf(id)))
      : view.piece(model.textOf(id), classes);
    made.title = `id ${id}`;
    return made;
  };

  // Why a model has no tables; empty if it has.
  const problemOf = ({ chats, carried }) => {
    if (chats) return '';
    if (!Object.keys(carried.templates).length) return 'This model has no chat template.';
    return 'The chat template of this model is a program, which is not run here. A page made by cpbpe view with this ' +
      'model knows what it writes.';
  };

  // Draw the tokens, in groups that each end with a message, and return what is to be said of them.
  const drawParts = (model, parts, { ids, whole }) => {
    const groups = [[]];
    let [drawn, count] = [0, 0];
    parts.forEach(({ message }, at) => {
      const isMessage = message !== null;
      for (const id of ids[at].slice(0, DRAWN - drawn)) {
        drawn += 1;
        groups[groups.length - 1].push(chip(model, id, isMessage ? 'said' : 'wall'));
      }
      count += ids[at].length;
      if (!isMessage) return;
      rows[message].count.textContent = view.count(ids[at].length, 'token');
      groups.push([]);
    });
    const notes = [`${view.count(count, 'token')}, of which the template writes ` +
      `${view.number(ids.filter((_, at) => parts[at].message === null).flat().length)}.`];
    if (drawn >= DRAWN) notes.push(`The first ${view.number(DRAWN)} are shown.`);
    // (Both are taken to end with -1, so that they differ if one is longer.)
    const other = ids.flat().concat(-1).findIndex((id, at) => id !== (whole[at] ?? -1));
    if (other >= 0) {
      notes.push(`As one text, in which users can write special tokens, it would have ` +
        `${view.count(whole.length, 'token')}, which differ from token ${view.number(other + 1)} on.`);
    }
    view.by('chat-tokens').replaceChildren(
      ...groups.filter((some) => some.length).map((some) => view.element('div', 'symbols', null, ...some)),
    );
    return notes;
  };

  const draw = (given) => {
    latest = given;
    const { model } = given;
    const problem = problemOf(model);
    view.by('chat-problem').textContent = problem;
    view.by('chat-form').hidden = Boolean(problem);
    if (problem) return;
    // 1. The templates of the model, and their roles.
    const names = Object.keys(model.chats);
    const select = view.by('chat-name');
    if ([...select.options].map((option) => option.value).join() !== names.join()) {
      select.replaceChildren(...names.map((name) => view.element('option', '', { value: name }, name)));
      if (names.includes('default')) select.value = 'default';
    }
    view.by('chat-name-label').hidden = names.length < 2;
    const table = model.chats[select.value];
    const roles = table.roles ?? [];
    for (const { role, wanted } of rows) {
      const own = roles.includes(wanted) ? roles : [...roles, wanted];
      role.replaceChildren(...own.map((name) => view.element('option', '', { value: name }, name)));
      role.value = wanted;
    }
    // 2. The conversation.
    const messages = rows.map(({ role, box }) => ({ role: role.value, content: box.value }));
    for (const { count } of rows) count.textContent = '';
    view.by('chat-tokens').replaceChildren();
    let notes;
    try {
      const parts = messages.length ? cpbpe.chat(table, messages, view.by('chat-prompt').checked) : [];
      notes = messages.length ? drawParts(model, parts, cpbpe.chatTokens(model, parts)) : ['There is no message.'];
    } catch (error) {
      notes = [error.message];
    }
    if (table.omits?.length) {
      notes.push(`What it does with messages of the role ${table.omits.join(' or ')} follows no simple rule.`);
    }
    if (table.is_dated) notes.push('It writes the date: that of the day when this page was made.');
    view.by('chat-counts').textContent = notes.join(' ');
  };

  view.by('chat-add').addEventListener('click', () => {
    const last = rows[rows.length - 1]?.role.value;
    const row = addRow(last === 'user' ? 'assistant' : 'user', '');
    show();
    row.box.focus();
  });
  for (const id of ['chat-prompt', 'chat-name']) view.by(id).addEventListener('change', () => draw(latest));
  EXAMPLE.forEach((message) => addRow(...message));
  list.replaceChildren(...rows.map((row) => row.item));
  view.tool('chat', draw);
}
