"""Chat templates as tables, with which the page renders conversations without running a template.

A chat template is a program in the language of Jinja. Nearly all of them do something simple: they put texts
before, between and after the messages, which depend on the roles and on how far it is to the beginning and to
the end. So a table of these texts, made from conversations of many shapes, renders all others. It is then
compared with the template on conversations that it was not made from. Where a table would be wrong, there is
none, but the reason.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from cpbpe.errors import ChatTemplateError
from cpbpe.lazy import importing
from cpbpe.tokenizer.facts import token_variables
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jinja2.nodes import Template

ROLES = ("user", "assistant", "system", "tool")
"""The roles that are tried. If no table holds all, those at the end are left out first."""
_FEATURES = (
    *((0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 2, 0)),
    *((1, 1, 2, 0), (0, 1, 2, 2), (1, 1, 2, 2), (1, 1, 3, 3)),
)
"""What a text may depend on besides the roles of the messages around it, the simplest first: whether there is
a user's message before it; whether there is a system's; how many messages are before it, up to this many; and
how many after it."""
_TRIMS: dict[str, Callable[[str], str]] = {
    "": str,
    "both": str.strip,
    "left": str.lstrip,
    "right": str.rstrip,
}
"""How a template may trim the messages of a role."""
_CONTENTS = (
    *("a", "0", "None", "True", "Ünï 🦙 日本\u200b", "a\n\nb  c\td", "x" * 5000),
    *("<b>&amp;</b> {{ x }} {% y %}", '{"name": "f", "arguments": {}}', "```py\nx = 'y'\n```"),
    "[INST] x [/INST] <|im_end|></s>",
)
"""Messages that a template must write as they are, or there is no table."""
_WORDS = {"", *ROLES, "role", "content"}
"""What templates compare with other things than messages."""
_MOST_PAIRED = 8
"""If a template looks for several texts, messages with two of the first of them are tried, too."""
_PLACES = 6
"""How a message is trimmed is tried in this many conversations."""
_WAY_OUT = "tok.apply_chat_template() renders it in Python"

Shape = tuple[tuple[str, ...], bool]
"""The roles of a conversation, and whether the beginning of an answer follows (the generation prompt)."""
Texts = list[str]
"""What is before, between and after the messages of a conversation."""


class _NoTableError(Exception):
    """Why there is no table."""


class _RefusedError(Exception):
    """Why a template does not render a conversation."""


def chats_of(tok: Tokenizer) -> dict[str, Any]:
    """The tables of a model's chat templates by their names, as `chat.js` reads them."""
    tokens = token_variables(tok.facts)
    return {name: chat_table(source, tokens) for name, source in tok.chat_templates.items()}


def chat_table(source: str, tokens: Mapping[str, str] | None = None) -> dict[str, Any]:
    r"""The table of a template, or `{"problem": why}`; `tokens` are its variables, such as `bos_token`.

    >>> table = chat_table("{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}\n{% endfor %}")
    >>> table["texts"]["user assistant 0 0 0 0"], table["trims"]["user assistant 0 0 0 0"]
    ('\n<assistant>', 'both')
    >>> chat_table("{{ messages | length }}")["problem"].partition(";")[0]
    'The chat template of this model leaves messages out, moves them or repeats them'
    """
    try:
        return _table(_Template(source, tokens or {}))
    except _NoTableError as error:
        return {"problem": f"The chat template of this model {error}; {_WAY_OUT}."}


def key(shape: Shape, at: int, features: Sequence[int]) -> str:
    """The key of the text before the message `at`, or after the last one. (`chat.js` makes the same.)"""
    roles, prompt = shape
    one = roles[at - 1] if at else "start"
    other = roles[at] if at < len(roles) else "prompt" if prompt else "end"
    sees_user, sees_system, most_before, most_after = features
    seen = int(sees_user and "user" in roles[:at]), int(sees_system and "system" in roles[:at])
    distances = min(at, most_before), min(len(roles) - at, most_after)
    return " ".join((one, other, *map(str, (*seen, *distances))))


# --- The template ---------------------------------------------------------------------------------


class _Template:
    """A template, and the conversations that it takes."""

    def __init__(self, source: str, tokens: Mapping[str, str]):
        try:
            with importing:
                from cpbpe.tokenizer.chat_templates import ChatTemplate
            self._template = ChatTemplate(source)
        except ImportError:
            raise _NoTableError(
                "needs the package jinja2, in version 3.1.6 or newer, where the page is made"
            ) from None
        except ChatTemplateError as error:
            raise _NoTableError(error.reason) from None
        self.is_dated = False
        """Whether it has asked for the date."""
        self.literals = _literals(self._template.tree)
        self._tokens = tokens

    def render(self, shape: Shape, contents: Iterable[str]) -> str:
        """The text of a conversation. A `_RefusedError` if the template does not take it."""
        roles, prompt = shape
        messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
        given = {"messages": messages, "add_generation_prompt": prompt, "tools": None, "documents": None}
        try:
            return self._template.render({**given, **self._tokens}, now=self._now)
        except ChatTemplateError as error:
            raise _RefusedError(error.reason) from None

    def texts(self, shape: Shape) -> Texts:
        """What is around the messages. A `_RefusedError` if they are not all there, one after the other."""
        contents = [f"Qx{number}xQ" for number in range(len(shape[0]))]
        text = self.render(shape, contents)
        found, at = [], 0
        for content in contents:
            begin = text.find(content)
            if begin < at or text.count(content) > 1:
                raise _RefusedError("leaves messages out, moves them or repeats them")
            found.append(text[at:begin])
            at = begin + len(content)
        return [*found, text[at:]]

    def _now(self) -> datetime:
        self.is_dated = True
        return datetime.now()


def _literals(tree: Template) -> list[str]:
    """The texts that a template may look for in messages: in comparisons, calls of methods, and filters."""
    with importing:
        from jinja2 import nodes
    found = (
        text.value
        for node in tree.find_all((nodes.Compare, nodes.Call, nodes.Filter))
        if not isinstance(node, nodes.Call) or isinstance(node.node, nodes.Getattr)
        for text in node.find_all(nodes.Const)
    )
    return list(dict.fromkeys(text for text in found if isinstance(text, str) and text not in _WORDS))


# --- The table ------------------------------------------------------------------------------------


def _table(template: _Template) -> dict[str, Any]:
    # 1. Render conversations of many shapes. Those of the second list are only compared with the table.
    known, others = (_rendered(template, shapes) for shapes in _shapes())
    if all(isinstance(result, str) for result in known.values()):
        raise _NoTableError(next(iter(known.values())))
    # 2. Find the simplest table that agrees with all of them.
    table = _simplest(known, others)
    roles = dict.fromkeys(
        role for (own, _), result in known.items() if not isinstance(result, str) for role in own
    )
    table["omits"] = [role for role in roles if role not in table["roles"]]
    table["roles"] = [role for role in roles if role in table["roles"]]
    # 3. Find how messages are trimmed, and what they must not hold.
    shapes = [
        shape
        for shape, result in {**known, **others}.items()
        if not isinstance(result, str) and {*shape[0]} <= {*table["roles"]}
    ]
    check = _Check(template, table, shapes)
    check.trims()
    table["unless"] = check.unless()
    table["is_dated"] = template.is_dated
    return table


def _shapes() -> Iterator[list[Shape]]:
    """The conversations that a table is made from, the shortest first, and others."""
    chance = random.Random(0)

    def usual(most: int) -> tuple[str, ...]:
        """A user and an assistant by turns, with other messages here and there."""
        roles = [*(("user", "assistant") * most)[: chance.randrange(3, most)]]
        for role in chance.choices(ROLES, (1, 1, 4, 1), k=chance.randrange(3)):
            roles.insert(chance.choice((0, chance.randrange(len(roles) + 1))), role)
        return tuple(roles)

    def any_roles(most: int) -> tuple[str, ...]:
        return tuple(chance.choices(ROLES, (4, 4, 2, 1), k=chance.randrange(4, most + 1)))

    short = [roles for length in range(1, 5) for roles in product(ROLES, repeat=length)]
    short += product(ROLES[:3], repeat=5)
    for first, most in ((short, 7), ([], 12)):
        rows = [*first, *(usual(most) for _ in range(160)), *(any_roles(most) for _ in range(80))]
        yield [(roles, prompt) for roles in dict.fromkeys(rows) for prompt in (False, True)]


def _rendered(template: _Template, shapes: Iterable[Shape]) -> dict[Shape, Texts | str]:
    """The texts around the messages of conversations, or why the template does not take them."""
    rendered: dict[Shape, Texts | str] = {}
    for shape in shapes:
        try:
            rendered[shape] = template.texts(shape)
        except _RefusedError as error:
            rendered[shape] = str(error)
    return rendered


def _simplest(known: Mapping[Shape, Texts | str], others: Mapping[Shape, Texts | str]) -> dict[str, Any]:
    """The simplest table that agrees with what the template has rendered, for as many roles as possible."""
    for roles in (ROLES, ROLES[:3], ROLES[:2]):
        own, more = (
            {shape: result for shape, result in some.items() if {*shape[0]} <= {*roles}}
            for some in (known, others)
        )
        for features in _FEATURES:
            table = _table_with(features, own)
            if table is not None and all(
                _texts(table, shape) == (None if isinstance(result, str) else result)
                for shape, result in more.items()
            ):
                return {**table, "roles": list(roles), "trims": {}}
    raise _NoTableError("follows no simple rule in what it writes between messages")


def _table_with(features: Sequence[int], known: Mapping[Shape, Texts | str]) -> dict[str, Any] | None:
    """The table in which texts depend on these features only; None if they depend on more."""
    texts: dict[str, str] = {}
    refused: dict[str, str] = {}
    for shape, result in known.items():
        for at, text in enumerate([] if isinstance(result, str) else result):
            if texts.setdefault(key(shape, at, features), text) != text:
                return None
    # A conversation that the template does not take must have a place that no other has.
    for shape, result in known.items():
        if isinstance(result, str):
            keys = (key(shape, at, features) for at in range(len(shape[0]) + 1))
            missing = next((one for one in keys if one not in texts), None)
            if missing is None:
                return None
            refused.setdefault(missing, result)
    return {"features": features, "texts": texts, "refused": refused}


def _texts(table: Mapping[str, Any], shape: Shape) -> Texts | None:
    """What the table has around the messages of a conversation; None if it does not take it."""
    texts = [table["texts"].get(key(shape, at, table["features"])) for at in range(len(shape[0]) + 1)]
    return None if None in texts else texts


class _Check:
    """What a template does with the messages themselves."""

    def __init__(self, template: _Template, table: dict[str, Any], shapes: Sequence[Shape]):
        self._template = template
        self._table = table
        self._places: dict[str, list[tuple[Shape, int]]] = {}
        """Some messages after each text: the conversation, and which one it is."""
        for shape in shapes:
            for at in range(len(shape[0])):
                places = self._places.setdefault(key(shape, at, table["features"]), [])
                if len(places) < _PLACES:
                    places.append((shape, at))

    def trims(self) -> None:
        """Find how the message after each text is trimmed."""
        trims = self._table["trims"]
        for before, places in self._places.items():
            for mode in _TRIMS:
                trims[before] = mode  # `_differs` uses it
                if not any(self._differs("\n\t x \u2003 y \n\x1f ", shape, {at}) for shape, at in places):
                    break
            else:
                raise _NoTableError("changes what messages say")
        self._table["trims"] = {before: mode for before, mode in trims.items() if mode}

    def unless(self) -> list[str]:
        """The texts that change how the template treats a message; "" stands for a message without text."""
        if any(map(self._matters, _CONTENTS)):
            raise _NoTableError("changes what messages say")
        literals = self._template.literals
        found = [one for one in literals if any(map(self._matters, (one, f"x{one}", f"{one}x", f"x{one}x")))]
        rest = [one for one in literals if one not in found and not one.isalpha()][:_MOST_PAIRED]
        found += dict.fromkeys(one for one, other in product(rest, rest) if self._matters(f"{one}x{other}"))
        return [*found, *([""] if self._matters("") or self._matters("  ") else [])]

    def _matters(self, content: str) -> bool:
        """Whether the table is wrong for messages that say this."""
        return any(
            self._differs(content, shape, {one for one, role in enumerate(shape[0]) if role == shape[0][at]})
            for places in self._places.values()
            for shape, at in places[-1:]
        )

    def _differs(self, content: str, shape: Shape, places: Container[int]) -> bool:
        """Whether the table is wrong when the messages at these places say this."""
        contents = [content if at in places else f"Qx{at}xQ" for at in range(len(shape[0]))]
        texts = _texts(self._table, shape)
        assert texts is not None  # the template takes all these shapes
        for at, own in enumerate(contents):
            mode = self._table["trims"].get(key(shape, at, self._table["features"]), "")
            texts[at] += _TRIMS[mode](own)
        try:
            return self._template.render(shape, contents) != "".join(texts)
        except _RefusedError:
            return True
