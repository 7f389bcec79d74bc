"""Conversations as ids: `Tokenizer.apply_chat_template`, and the `ChatEncoding` that it returns.

The text is what the chat template makes of the messages, as in transformers. But which special tokens are in
it depends on who has written them: **a token that is not the template's own, from its first character to its
last, is text.** So nobody can end a turn by saying `<|im_end|>`. This takes four steps:

1. The template renders the conversation with texts that remember where they came from (`marked_text`), and
   once more with ordinary ones. If the results are not the same, the call is refused.
2. The whole text is searched for special tokens. Of each that the template did not write, one character that
   somebody has said is covered, and the text is searched again, until all that are found are the template's.
   (A token that overlaps one of them, and was hidden by it, is found then.) Where it is not known who has
   written a token, the call is refused.
3. Between these tokens the text is encoded as one, whoever wrote it. A line break of the template and the
   message after it may be other ids together than apart, and a network has seen them together.
4. No other id may be that of a special token. If a model makes one of plain text, the call is refused.

**What the assistant said** follows from {% generation %}, if the template has it. Otherwise, in each message
of the assistant, it goes from the first character of its content to the special token after the last one,
which ends the turn. Where that is doubtful, asking for it is an error that says why.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpbpe.errors import ChatTemplateError
from cpbpe.foreign import closest
from cpbpe.text.utf8 import character_positions
from cpbpe.tokenizer.chat_templates import ChatTemplate, chat_template
from cpbpe.tokenizer.encoding import Special
from cpbpe.tokenizer.facts import ModelFacts, token_variables
from cpbpe.tokenizer.marked_text import WRITTEN, Origin, marked, runs_of
from cpbpe.tokenizer.options import EncodeOptions
from cpbpe.tokenizer.plans import EncodePlan
from cpbpe.tokenizer.special_text import SpecialEncoder
from cpbpe.tokenizer.special_tokens import FoundToken, Row, is_of_word

Span = tuple[int, int]

_ROLE = re.compile(r"[\w.-]+")
"""Templates write roles as parts of special tokens (`<|user|>`), so a role is a name and nothing else."""
_ALWAYS = ("messages", "add_generation_prompt")
"""The variables that every call gives."""
_ASSISTANT = "assistant"
_REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning. As in transformers, templates know it by the first two of them."""
_COVERS = (range(0xE000, 0xF900), range(0x4E00, 0x9FFF))
"""What can cover a character that is not of a word, and one that is. (Some tokens ask what is beside.)"""


@dataclass(frozen=True)
class ChatEncoding:
    r"""A conversation as ids. `Tokenizer.apply_chat_template` makes one.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> template = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    >>> chat = tok.apply_chat_template([{"role": "assistant", "content": "Hi</s>!"}], template=template)
    >>> chat.text, chat.parts
    ('assistant: Hi</s>!</s>', ['assistant: Hi</s>!', Special(text='</s>')])
    >>> chat.ids == tok.encode_parts(chat.parts), chat.ids.count(2)
    (True, 1)
    >>> [tok.id_to_piece(id) for id, own in zip(chat.ids, chat.assistant) if own]
    ['▁Hi', '</', 's', '>', '!', '</s>']
    """

    text: str
    """What the template makes of the messages."""
    ids: list[int]
    """The ids of the text, in which only what the template wrote is a special token."""
    parts: list[str | Special]
    """The same as parts, for `Tokenizer.encode_parts`."""
    messages: list[int | None]
    """For each id the number of the message that said its text; None if the template wrote it."""
    _assistant: list[bool] | str
    """The mask, or why there is none."""

    @property
    def assistant(self) -> list[bool]:
        """For each id, whether the assistant says it, so that a network is to learn it: see docs/chat.md.

        A ValueError if that is doubtful.
        """
        if isinstance(self._assistant, str):
            raise ValueError(self._assistant)
        return self._assistant

    def spans(self, message: int) -> list[Span]:
        """Where the ids of a message are: the first one, and the one after the last, of each stretch."""
        found: list[Span] = []
        for at, number in enumerate(self.messages):
            if number == message:
                begin = found.pop()[0] if found and found[-1][1] == at else at
                found.append((begin, at + 1))
        return found

    def __len__(self) -> int:
        return len(self.ids)


def options_of(facts: ModelFacts, bound: Mapping[str, Any]) -> EncodeOptions:
    """How the text of a conversation is encoded, besides the options that are bound."""
    options: EncodeOptions = {"add_bos": False, "add_eos": False, "allowed_special": "all"}
    options["disallowed_special"] = ()
    asked = facts.carried.options.get("prefix_after_special")
    if asked is not None and "prefix_after_special" not in bound:
        options["prefix_after_special"] = asked  # the template is the file's, and written for this
    return options


def apply_chat_template(
    facts: ModelFacts,
    plan: EncodePlan,
    messages: object,
    template: str | None,
    add_generation_prompt: bool,
    tools: object,
    variables: Mapping[str, Any],
) -> ChatEncoding:
    """A conversation as ids. See `Tokenizer.apply_chat_template`."""
    # 1. The template, and what it is given.
    own = chat_template(_source(facts.carried.chat_templates, template, tools is not None))
    names = token_variables(facts)
    checked = _checked_messages(messages)
    _check_names(own, [*variables, *(("tools",) if tools is not None else ())], names)
    rest = {"tools": _plain(tools, "tools"), "documents": None}
    rest |= {name: _plain(value, name) for name, value in variables.items()}
    given = {"messages": checked, "add_generation_prompt": bool(add_generation_prompt), **names, **rest}
    # 2. The text, and where its characters came from.
    moment = datetime.now()
    text = own.render(given, now=lambda: moment)
    given["messages"] = [
        {
            marked(key, Origin("said", number)): marked(
                value, WRITTEN if key == "role" else Origin("said", number, key)
            )
            for key, value in message.items()
        }
        for number, message in enumerate(checked)
    ]
    given.update((name, marked(value, Origin("said"))) for name, value in rest.items())
    given.update((name, marked(given[name], WRITTEN)) for name in names)
    origins = own.render(given, marks=True, now=lambda: moment)
    if origins != text:
        raise ChatTemplateError(
            "writes another text if it is asked who has written what, so that nobody can tell which special "
            "tokens are its own; if no message can hold one, use cpbpe.compat.transformers"
        )
    # 3. Its tokens.
    encoder = plan.encoder
    if not isinstance(encoder, SpecialEncoder):
        encoder = SpecialEncoder(encoder, plan.later(encoder), None)
    special = frozenset(facts.special.ids.values())
    row = _row(encoder, text, origins, special)
    ids, _, places = encoder.align_row(row, False, None)
    _check_ids(facts, row, ids, special)
    # 4. What each id came from.
    tokens = list(_tokens(encoder, row, special))
    spaceless = {token.taken: token.own for token in tokens}
    at = character_positions(text.encode())
    # (An empty span, that of a dummy prefix or of the first bytes of a character, counts as one character. A
    # token that takes the spaces beside it stands for itself only.)
    spans = np.array(
        [spaceless.get((at[b], at[e]), (at[b], max(at[e], at[b] + 1))) for b, e in places], np.int64
    ).reshape(-1, 2)
    said = [stretch for stretch in _stretches(origins) if stretch[2].message is not None]
    numbers = [*(origin.message for _, _, origin in said), None]
    first = _within(spans, [(begin, end) for begin, end, _ in said]).tolist()
    roles = [message["role"] for message in checked]
    answers = _answers(own, roles, origins, tokens, bool(add_generation_prompt))
    if not isinstance(answers, str):
        answers = (_within(spans, answers) >= 0).tolist()
    return ChatEncoding(text, ids, _parts(encoder, row, special), [numbers[one] for one in first], answers)


# --- What is given --------------------------------------------------------------------------------


def _source(templates: Mapping[str, str], given: str | None, has_tools: bool) -> str:
    """The source of the template that is meant."""
    name = given
    if name is None:
        name = "tool_use" if has_tools and "tool_use" in templates else "default"
    if name in templates:
        return templates[name]
    if isinstance(given, str) and ("{{" in given or "{%" in given):
        return given
    there = f"it has {', '.join(map(repr, templates))}" if templates else "it has none"
    raise ValueError(
        f"this model has no chat template {name!r}; {there}. Give the name of another, or the text of one: "
        f"template=pathlib.Path('chat_template.jinja').read_text()"
    )


def _checked_messages(messages: object) -> list[dict[str, Any]]:
    """The messages, made of Python's own types. As in transformers, a field that is None is not there."""
    if isinstance(messages, Mapping) or not isinstance(messages, (list, tuple)):
        hint = "; put it into a list" if isinstance(messages, Mapping) else ""
        raise TypeError(
            f"apply_chat_template() takes a list of messages, not {type(messages).__name__}{hint}"
        )
    if not messages:
        raise ValueError("there is no message; a conversation has at least one")
    checked = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if isinstance(message, (list, tuple)):
            raise TypeError(f"{where} is a list; give one conversation after the other")
        if not isinstance(message, Mapping):
            hint = "; give message.model_dump()" if hasattr(message, "model_dump") else ""
            raise TypeError(
                f"{where} must be a dict such as {{'role': 'user', 'content': 'Hi'}}, not "
                f"{type(message).__name__}{hint}"
            )
        plain = _plain({key: value for key, value in message.items() if value is not None}, where)
        role = plain.get("role")
        if not isinstance(role, str) or not _ROLE.fullmatch(role):
            raise ValueError(
                f"{where} must have a 'role' such as 'user', not {role!r}; templates write roles as parts of "
                f"special tokens, so they consist of letters, digits, '_', '-' and '.'"
            )
        if not isinstance(plain.get("content", ""), (str, list)):
            name = type(plain["content"]).__name__
            raise TypeError(f"{where}['content'] must be text, a list of parts or None, not {name}")
        if plain.keys() <= {"role"} and "content" not in message:
            raise ValueError(f"{where} says nothing; give it a 'content', which may be ''")
        reasoning = next((plain[name] for name in _REASONING if name in plain), None)
        if reasoning is not None:
            plain = {"thinking": reasoning, **plain, "reasoning_content": reasoning}
        checked.append(plain)
    return checked


def _plain(value: Any, where: str) -> Any:
    """The same value, made of Python's own types: a template must not meet objects with methods."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, (str, int, float)):
        kind: Any = next(kind for kind in (str, int, float) if isinstance(value, kind))
        return kind.__str__(value) if kind is str else kind(value)
    if isinstance(value, Mapping):
        return {_plain(key, where): _plain(own, f"{where}[{key!r}]") for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_plain(own, f"{where}[{number}]") for number, own in enumerate(value)]
        return made if isinstance(value, list) else tuple(made)
    hint = "give its text"
    if isinstance(value, (bytes, bytearray)):
        hint = "decode it"
    elif callable(value):
        hint = "give its JSON schema, which transformers.utils.get_json_schema() makes"
    elif hasattr(value, "model_dump"):
        hint = "give its model_dump()"
    elif hasattr(value, "size"):
        hint = "leave it out: a part such as {'type': 'image'} is all that a template needs"
    raise TypeError(
        f"{where} is a {type(value).__name__}, and templates take text, numbers, lists and dicts; {hint}"
    )


_OF_TRANSFORMERS = {
    "tokenize": "leave it out: the result has the text, .text, and the ids, .ids",
    "return_dict": "leave it out: the result has .ids, .text and .assistant",
    "return_tensors": "leave it out; torch.tensor([result.ids]) makes a tensor",
    "return_assistant_tokens_mask": "leave it out: the result has .assistant, a mask",
}
"""What to do instead of options that `apply_chat_template` has in transformers."""


def _check_names(template: ChatTemplate, names: Sequence[str], tokens: Mapping[str, str]) -> None:
    """Refuse variables that the template does not look at: they would do nothing."""
    for name in names:
        if name not in template.variables and name not in tokens:
            there = sorted(template.variables - tokens.keys() - {*_ALWAYS})
            close = closest(name, there)
            others = f"its own are {', '.join(there)}" if there else "it has none of its own"
            hint = f"is it {close}?" if close else f"leave it out ({others})"
            hint = _OF_TRANSFORMERS.get(name, hint)
            raise ValueError(
                f"the chat template looks at no variable {name!r}, so it would do nothing; {hint}"
            )


# --- Tokens ---------------------------------------------------------------------------------------


def _stretches(text: str) -> Iterator[tuple[int, int, Origin]]:
    """Where the characters of each origin begin and end."""
    at = 0
    for size, origin in runs_of(text):
        yield at, at + size, origin
        at += size


class _Token(NamedTuple):
    """A special token in a text."""

    taken: Span
    """The part of the text that it stands for, with the spaces that it takes."""
    own: Span
    """The same without these."""
    text: str
    """Its text."""


def _tokens(encoder: SpecialEncoder, row: Row, special: frozenset[int]) -> Iterator[_Token]:
    """The special tokens of a row, in order."""
    at = 0
    for part in row:
        taken = part.taken if isinstance(part, FoundToken) else part
        end = at + len(taken)
        if isinstance(part, FoundToken) and part.id in special:
            assert encoder.finder is not None
            token = encoder.finder.texts[part.id]
            begin = at + str(taken).find(token)
            is_spelled = begin >= at  # (it is not if it was found in normalized text)
            yield _Token((at, end), (begin, begin + len(token)) if is_spelled else (at, end), token)
        at = end


def _row(encoder: SpecialEncoder, text: str, origins: str, special: frozenset[int]) -> Row:
    """The text in segments, and between them the special tokens that the template wrote."""
    # For each character the first letter of its kind: "w" (written), "s" (said) or "u" (unknown).
    kinds = "".join(origin.kind[0] * (end - begin) for begin, end, origin in _stretches(origins))
    covered = text
    while True:
        row = encoder.split(covered)
        said = [
            begin + kinds[begin:end].index("s")
            for _, (begin, end), _ in _tokens(encoder, row, special)
            if "s" in kinds[begin:end]
        ]
        if not said:
            break
        assert encoder.finder is not None
        used = {*"".join(encoder.finder.texts.values())}
        characters = list(covered)
        for at in said:
            covers = _COVERS[is_of_word(characters[at])]
            characters[at] = next(cover for cover in map(chr, covers) if cover not in used)
        covered = "".join(characters)
    for _, (begin, end), token in _tokens(encoder, row, special):
        if "u" in kinds[begin:end]:
            raise ChatTemplateError(
                f"may have written {token!r}, or a message has: it changes texts in a way that does not show "
                f"which; give messages that do not hold {token!r}, or a template that writes it by itself, "
                f"without filters, format() and %"
            )
    made: Row = []
    at = 0
    for part in row:
        end = at + len(part.taken if isinstance(part, FoundToken) else part)
        made.append(part._replace(taken=text[at:end]) if isinstance(part, FoundToken) else text[at:end])
        at = end
    return made


def _check_ids(facts: ModelFacts, row: Row, ids: Sequence[int], special: frozenset[int]) -> None:
    """Refuse ids of special tokens that were made of plain text."""
    watched = special - {facts.special_ids[0]}  # (unknown characters have an id, which controls nothing)
    written = sum(isinstance(part, FoundToken) and part.id in watched for part in row)
    found = [id for id in ids if id in watched]
    if len(found) != written:
        names = ", ".join(sorted({repr(facts.piece(id)) for id in found if id < facts.engine.size}))
        raise ValueError(
            f"a message spells a special token, and this model makes it of plain text, too (one of {names}); "
            f"take it out of the messages"
        )


def _parts(encoder: SpecialEncoder, row: Row, special: frozenset[int]) -> list[str | Special]:
    """A row as `encode_parts` takes it. Tokens that are not special are text."""
    parts: list[str | Special] = []
    for part in row:
        if isinstance(part, FoundToken) and part.id in special:
            assert encoder.finder is not None
            parts.append(Special(encoder.finder.texts[part.id]))
            continue
        text = str(part.taken if isinstance(part, FoundToken) else part)
        if parts and isinstance(parts[-1], str):
            parts[-1] += text
        elif text:
            parts.append(text)
    return parts


# --- Who says what --------------------------------------------------------------------------------


def _within(spans: NDArray[np.int64], stretches: Sequence[Span]) -> NDArray[np.int64]:
    """For each span the first stretch with characters of it; -1 if there is none. Both are in order."""
    begins, ends = np.array([*stretches, (1 << 62, 1 << 62)], np.int64).T
    first = np.searchsorted(ends, spans[:, 0], "right")
    return np.where(begins[first] < spans[:, 1], first, -1)


def _answers(
    template: ChatTemplate, roles: Sequence[str], text: str, tokens: Sequence[_Token], has_prompt: bool
) -> list[Span] | str:
    """Where the assistant speaks, or why nobody knows."""
    stretches = list(_stretches(text))
    doubt = "the chat template changes texts in a way that does not show who has said what"
    if template.has_generation:
        if any(origin.generated is None for _, _, origin in stretches):
            return (
                f"{doubt}; in the template, use ~ in place of format() and %, and change no text of which "
                f"{{% generation %}} has written a part"
            )
        return [(begin, end) for begin, end, origin in stretches if origin.generated]
    if _ASSISTANT not in roles:
        return []
    out = "a template with {% generation %} around what the assistant says tells it"
    if any(origin.kind == "unknown" and origin.message is None for _, _, origin in stretches):
        return f"{doubt}; {out}"
    if roles[-1] != _ASSISTANT or has_prompt:
        return (
            f"the assistant's message is not the last, so that nobody can tell how its turns end; leave out "
            f"what is after it, or {out}"
        )
    return _by_content(roles, stretches, tokens, out)


def _by_content(
    roles: Sequence[str],
    stretches: Sequence[tuple[int, int, Origin]],
    tokens: Sequence[_Token],
    out: str,
) -> list[Span] | str:
    """Where the assistant speaks, from the content of its messages to the ends of its turns."""
    said = [stretch for stretch in stretches if stretch[2].kind != "written"]
    by_message: dict[int | None, list[tuple[int, int, Origin]]] = {}
    for stretch in said:
        by_message.setdefault(stretch[2].message, []).append(stretch)
    begins, starts = [begin for begin, _, _ in said], [token.own[0] for token in tokens]
    answers: list[Span] = []
    last = None
    for number, role in enumerate(roles):
        if role != _ASSISTANT:
            continue
        own = by_message.get(number)
        if own is None:
            return f"the text has nothing of messages[{number}], so it does not show that turn; {out}"
        if odd := {origin.field for _, _, origin in own} - {"content"}:
            return (
                f"messages[{number}] says more than its content ({', '.join(sorted(odd))}), and nobody "
                f"can tell where that begins; {out}"
            )
        begin, end = own[0][0], own[-1][1]
        if bisect_left(starts, end) > bisect_left(starts, begin):
            return f"a special token is inside of what messages[{number}] says; {out}"
        if answers and begin < answers[-1][1]:
            return f"messages[{number}] comes before an earlier one in the text; {out}"
        place = bisect_left(starts, end)
        between = (
            bisect_left(begins, starts[place]) - bisect_left(begins, begin) if place < len(starts) else 0
        )
        if between != len(own):  # there is no token, or somebody else speaks before it
            return f"no special token ends the turn of messages[{number}]; {out}"
        token = tokens[place]
        if last not in (None, token.text):
            return f"the turn of messages[{number}] ends in another token than the one before; {out}"
        last = token.text
        answers.append((begin, token.own[1]))
    return answers
