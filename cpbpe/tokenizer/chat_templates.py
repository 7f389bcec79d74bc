"""Chat templates, rendered: programs in the language of Jinja, as transformers runs them, within limits.

A template often comes with a model from a stranger. The sandbox of jinja2 lets it see nothing but what it is
given. It does not keep it from running forever, or from filling the memory. So the code that jinja2 makes of
a template is changed here in two ways:

- Every body of a loop, of a condition and of a macro asks what time it is.
- What makes long texts of short ones (`+`, `~`, `*`, `**`, `%`, `format`, `join`, `replace`, `tojson`,
  `indent`) first asks how long the result will be. So does what turns a list into text: if each of a few
  lists holds the one before it twice, that text can have any length. Methods and filters that make texts of
  any width are not there.

For *marks*, a template is compiled once more, so that its texts know where each of their characters came from
(`marked_text`). The constants in its code are made such texts, too.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from contextvars import ContextVar
from datetime import datetime
from string import Formatter
from typing import Any

from cpbpe.errors import ChatTemplateError, missing
from cpbpe.lazy import Kept, kept
from cpbpe.tokenizer.marked_text import Marked, derived, generated, joined, marked_json, runs_of, written

_NEED = "chat templates need the package jinja2, 3.1.6 or newer"
_PACKAGE = "'jinja2>=3.1.6'"
_OLDEST = (3, 1, 6)
"""Older versions have known ways out of their sandbox."""
try:
    import jinja2
    from jinja2 import nodes
    from jinja2.compiler import CodeGenerator
    from jinja2.ext import Extension, loopcontrols
    from jinja2.filters import FILTERS, make_attrgetter
    from jinja2.meta import find_undeclared_variables
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace, pass_environment
except ImportError as error:
    raise missing(_NEED, _PACKAGE) from error

SECONDS = 10.0
"""A template may take this long."""
MOST = 1 << 20
"""A template may write this many characters, plus `TIMES` times the number that it is given."""
TIMES = 16
"""See `MOST`."""
ALL_TIMES = 64
"""All texts that it makes on the way may together have this many times as many characters."""

_FILTERS = (
    "abs attr count d default dictsort first float groupby int items last length list map max min reject",
    "rejectattr reverse select selectattr sort unique",
)
"""The filters of jinja2 that are there. Others make texts or lists of any length, or are random."""
_TEXT_FILTERS = "capitalize e escape forceescape lower safe string trim upper wordcount"
"""Those that first turn their value into a text. Here this is done before, within the limits."""
_WIDE = frozenset(
    ["center", "encode", "escape", "expandtabs", "ljust", "rjust", "to_bytes", "translate", "zfill"]
)
"""Methods of strings and numbers that are not there, for the same reason."""
_GROUPS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)
"""What shows all that it holds when it is written. (Dictionaries do, too.)"""
_WIDTH = 1000
"""Widths in formats are below this, and so is the length of any number that is written without a width."""
_WIDE_PERCENT = re.compile(r"%(?:\([^()]*\))?[#0\- +_^]*(?:[0-9]*\.)?(?:\*|[0-9]{4})|%\([^()]*\(")
"""A width of four digits, or one that is given beside the format, or a name that could hide it."""
_WIDE_BRACES = re.compile(r"\d{4}|\{")
"""The same in what is after a colon in braces. (Digits of all scripts are numbers there.)"""


class ChatTemplate:
    """A template.

    >>> template = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content | trim }};{% endfor %}")
    >>> template.render({"messages": [{"role": "user", "content": " Hi "}]})
    'user: Hi;'
    >>> template.variables
    frozenset({'messages'})
    """

    def __init__(self, source: str):
        version = tuple(map(int, re.findall("[0-9]+", jinja2.__version__)[:3]))  # (it may end with "rc1")
        if version < _OLDEST:
            raise missing(f"{_NEED}, and this is {jinja2.__version__}", _PACKAGE)
        try:
            environment = _Environment()
            self.tree = environment.parse(source)
            self._plain = environment.from_string(source)
            variables = find_undeclared_variables(self.tree)
        except jinja2.TemplateSyntaxError as error:
            raise ChatTemplateError(f"has a mistake in line {error.lineno} ({error.message})") from None
        except Exception as error:  # whatever is too deep for the parsers of jinja2 and Python
            raise ChatTemplateError(f"has a mistake ({type(error).__name__}: {error})") from None
        if self.tree.find(nodes.EvalContextModifier):
            raise ChatTemplateError("has {% autoescape %}, which is for HTML; take it out")
        self.variables = frozenset(variables - environment.globals.keys())
        """The names of the variables that it looks at."""
        self.has_generation = any(
            isinstance(call.node, nodes.ExtensionAttribute) for call in self.tree.find_all(nodes.Call)
        )
        """Whether it says what the model generates, by {% generation %}."""
        self._source = source

    @kept
    def _marking(self) -> jinja2.Template:
        """The template that writes marks."""
        return _MarkingEnvironment().from_string(self._source)

    def render(
        self,
        variables: Mapping[str, Any],
        *,
        marks: bool = False,
        now: Callable[[], datetime] = datetime.now,
    ) -> str:
        """The text that it makes of variables, which hold nothing but text, numbers, lists and dicts.

        With `marks` the text is `Marked`. A `ChatTemplateError` if the template fails, or refuses to.
        """
        token = _RENDERING.set(_Rendering(now))
        try:
            rendering = _RENDERING.get()
            rendering.most += TIMES * sum(map(len, _texts_in(dict(variables), math.inf)[0]))
            template = self._marking if marks else self._plain
            chunks = rendering.collected(template.generate(variables))
            return joined(chunks) if marks else "".join(chunks)
        except (ChatTemplateError, MemoryError):
            raise
        except Exception as error:  # whatever a program may do wrong
            raise ChatTemplateError(f"fails: {error}") from None
        finally:
            _RENDERING.reset(token)


def chat_template(source: str) -> ChatTemplate:
    """A template, which is kept for later calls."""
    made = _TEMPLATES.get(source)
    if made is None:
        made = ChatTemplate(source)
        _TEMPLATES.keep(source, made)
    return made


_TEMPLATES: Kept[str, ChatTemplate] = Kept()


# --- Limits ---------------------------------------------------------------------------------------


class _Rendering:
    """One call of `render`."""

    def __init__(self, now: Callable[[], datetime]):
        self.now = now
        self.most = MOST
        self._made = 0
        self._until = time.monotonic() + SECONDS

    def tick(self) -> None:
        """Refuse to go on if the time is over."""
        if time.monotonic() > self._until:
            raise ChatTemplateError(f"takes more than {SECONDS:.0f} seconds, and was stopped")

    def check(self, size: int) -> None:
        """Refuse texts and lists of this size if they are too long, or too long together with all before."""
        self.tick()
        self._made += size
        for made, most, what in (
            (size, self.most, "a text or a list"),
            (self._made, ALL_TIMES * self.most, "texts and lists"),
        ):
            if made > most:
                raise ChatTemplateError(
                    f"makes {what} with more than {most:,} parts, and was stopped; "
                    f"docs/chat.md has the limits"
                )

    def collected(self, parts: Iterable[str]) -> list[str]:
        """The parts of a text, unless it is too long."""
        listed, size = list[str](), 0
        for part in parts:
            listed.append(part)
            size += len(part)
            self.check(len(part) if size <= self.most else size)
        return listed

    def texts_in(self, value: Any) -> list[str]:
        """The texts in a value, unless it is too long as a text."""
        texts, size = _texts_in(value, self.most)
        self.check(size)
        return texts

    def check_format(self, form: str, sign: str, values: Any = ()) -> None:
        """Refuse to put values into a text if the result could be too long."""
        self.check(form.count(sign) * (_WIDTH + _texts_in(values, self.most)[1]))


def _texts_in(value: Any, most: float) -> tuple[list[str], int]:
    """The texts in a value, and about how long it is as a text. It is not looked at any longer than `most`.

    (One list may be in others many times, so that few lists make a long text.)
    """
    texts: list[str] = []
    rest, size = [value], 0
    while rest and size <= most:
        one = rest.pop()
        size += 1 + _size(one) + _bits(one) // 3
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, Mapping):
            rest += (*one, *one.values())
        elif isinstance(one, _GROUPS):
            rest += one
        elif one is not None and not isinstance(one, (bool, int, float)):
            texts.append("?")  # (what it writes is not known: some text of unknown origin)
            size += 99
    return texts, size


_RENDERING: ContextVar[_Rendering] = ContextVar("_RENDERING")


# --- What templates can use -----------------------------------------------------------------------


class _Generation(Extension):
    """{% generation %}: around what the model is to generate."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> nodes.Node:
        """Make a call of the tag's body, which therefore has variables of its own, as in transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("write"), [], [], body).set_lineno(line)

    def write(self, caller: Callable[[], str]) -> str:
        """The text of the body."""
        text = caller()
        return generated(text) if isinstance(self.environment, _MarkingEnvironment) else text


class _Namespace(Namespace):
    """What `namespace()` makes. It holds no names that Python uses itself."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        values = dict(*args[1:], **kwargs)
        Namespace.__init__(args[0])
        for name, value in values.items():
            args[0][name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or name.startswith("_"):
            raise ChatTemplateError("gives a namespace a name that does not begin with a letter")
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        raise ChatTemplateError("writes a namespace, which is no text")


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    """What `dict` is in templates: not the class, which has methods."""
    return dict(*args, **kwargs)


@pass_environment
def _raise_exception(environment: _Environment, message: object) -> None:
    raise ChatTemplateError(f"says: {environment.text_of(message)}")


@pass_environment
def _strftime_now(environment: _Environment, form: str) -> str:
    if _WIDE_PERCENT.search(form):
        raise ChatTemplateError(f"writes the date with a width, {form!r}")
    _RENDERING.get().check_format(form, "%")
    return environment.made(_RENDERING.get().now().strftime(form), [form])


@pass_environment
def _tojson(
    environment: _Environment,
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """A value as JSON. (The filter of jinja2 is for HTML.)"""
    rendering = _RENDERING.get()
    texts = rendering.texts_in(value)
    spaces = [part for part in (indent, *(separators or ())) if isinstance(part, str)]
    if max([0, *map(len, spaces), indent if isinstance(indent, int) else 0]) > 16:
        raise ChatTemplateError("writes JSON with more than 16 spaces")
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    # (With spaces for each list around it, a value can be longer than its texts by far.)
    text = (
        encoder.encode(value) if indent is None else "".join(rendering.collected(encoder.iterencode(value)))
    )
    if spaces and not all(map(environment.is_between_strings, spaces)):
        return environment.made(text, [*texts, *spaces])
    return environment.json(text, value, sort_keys)


def _text_filter(name: str) -> Callable[..., Any]:
    """A filter of jinja2 that is given a text, whatever it is given here."""

    @pass_environment
    def filtered(environment: _Environment, value: object, *args: Any, **kwargs: Any) -> Any:
        text = value if isinstance(value, str) else environment.text_of(value)
        made = FILTERS[name](text, *args, **kwargs)
        _RENDERING.get().check(_size(made))
        return made

    return filtered


@pass_environment
def _title(environment: _Environment, value: object) -> str:
    text = environment.text_of(value)
    return environment.made(FILTERS["title"](text), [text])


@pass_environment
def _join(environment: _Environment, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return environment.spread(environment.text_of(d), map(environment.text_of, value))


@pass_environment
def _replace(environment: _Environment, s: object, old: object, new: object, count: int | None = None) -> str:
    text, given = environment.text_of(s), (environment.text_of(old), environment.text_of(new))
    environment.check_replacing(text, *given)
    return text.replace(*given, -1 if count is None else count)


@pass_environment
def _indent(environment: _Environment, s: str, width: int | str = 4, *rest: bool, **more: bool) -> str:
    if not isinstance(s, str):  # (jinja2 would change a list)
        raise TypeError(f"indent takes a text, not {type(s).__name__}")
    size = width if isinstance(width, int) else len(width)
    _RENDERING.get().check(len(s) + size * (s.count("\n") + 1))
    made: str = FILTERS["indent"](s, width, *rest, **more)
    return environment.made(made, [s, width] if isinstance(width, str) else [s])


# --- The sandbox ----------------------------------------------------------------------------------


class _Generator(CodeGenerator):
    """Makes Python of a template."""

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Any) -> None:
        """The statements of a body."""
        self.writeline("environment.tick()")
        super().blockvisit(nodes, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:  # noqa: N802
        """The operator `~`."""
        self.write("environment.tilde((")
        for arg in node.nodes:
            self.visit(arg, frame)
            self.write(", ")
        self.write("))")

    def _output_child_to_const(self, node: nodes.Expr, frame: Any, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):  # nothing is computed before there are limits
            raise nodes.Impossible()
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with what transformers adds to it, and with limits."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            optimized=False,
            finalize=self.finalized,
        )
        self.filters = {name: FILTERS[name] for names in _FILTERS for name in names.split()}
        self.filters |= {name: _text_filter(name) for name in _TEXT_FILTERS.split()}
        self.filters |= {"indent": _indent, "join": _join, "replace": _replace, "title": _title}
        self.filters["tojson"] = _tojson
        self.globals = {
            **{name: self.globals[name] for name in ("range", "cycler", "joiner")},
            "dict": _dict,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    # --- What marks change ------------------------------------------------------------------------

    def made(self, text: str, sources: Iterable[str]) -> str:
        """A text that was made from others."""
        return text

    def json(self, text: str, value: object, sort_keys: bool) -> str:
        """A text that is a value as JSON."""
        return text

    def is_between_strings(self, text: str) -> bool:
        """Whether `marked_json` can tell this indent or separator from the strings of a value."""
        return True

    # --- Limits -----------------------------------------------------------------------------------

    def tick(self) -> None:
        """Refuse to go on if the time is over."""
        _RENDERING.get().tick()

    def call_filter(self, *args: Any, **kwargs: Any) -> Any:
        """Apply a filter to one of many values, as `map` does."""
        self.tick()
        return super().call_filter(*args, **kwargs)

    def call_test(self, *args: Any, **kwargs: Any) -> Any:
        """Apply a test to one of many values, as `select` does."""
        self.tick()
        return super().call_test(*args, **kwargs)

    def finalized(self, value: Any) -> Any:
        """A value that is about to be written."""
        if isinstance(value, (Mapping, *_GROUPS)):
            texts = _RENDERING.get().texts_in(value)  # (first of all, because it may refuse)
            return self.made(str(value), texts)
        return value

    def text_of(self, value: object) -> str:
        """Any value as a text."""
        return str(self.finalized(value))

    def tilde(self, values: Iterable[object]) -> str:
        """What `~` makes of values."""
        return self.spread("", map(self.text_of, values))

    def spread(self, separator: str, parts: Iterable[str]) -> str:
        """Texts with a separator between them."""
        rendering, listed = _RENDERING.get(), list[str]()
        for part in parts:
            listed += (separator, part)
            rendering.check(len(separator) + len(part))
        rendering.check(sum(map(len, listed)))
        return str(self.concat(listed[1:]))

    def check_replacing(self, text: str, old: str, new: str) -> None:
        """Refuse to replace a text if the result were too long."""
        _RENDERING.get().check(len(text) + text.count(old) * len(new))

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call something."""
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, str) and name == "replace" and len(args) > 1:
            self.check_replacing(owner, *args[:2])
        elif isinstance(owner, str) and name == "join" and len(args) == 1:
            args = ([*args[0]],)
            _RENDERING.get().check(sum(map(len, args[0])) + len(owner) * len(args[0]))
        elif name == "index":
            _RENDERING.get().texts_in(args)  # (an error of `list.index` shows what was looked for)
        return super().call(context, obj, *args, **kwargs)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item."""
        if not isinstance(argument, (str, int)):
            _RENDERING.get().texts_in(argument)  # (as for `index`: a KeyError shows the key)
        return super().getitem(obj, argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator."""
        rendering = _RENDERING.get()
        if operator == "+":
            rendering.check(_size(left) + _size(right))
        elif operator == "*":
            both = hasattr(left, "__len__") or hasattr(right, "__len__")
            rendering.check(_times(left, right) if both else _bits(left) + _bits(right))
        elif operator == "**":
            rendering.check(_bits(left) * abs(right) if isinstance(right, int) else 0)
        elif isinstance(left, str):
            if _WIDE_PERCENT.search(left):
                raise ChatTemplateError(f"formats with a width, {left!r}")
            rendering.check_format(left, "%", right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The method `format` of a text, as the sandbox has it."""
        method = super().wrap_str_format(value)
        if method is None:
            return None

        def limited(*args: Any, **kwargs: Any) -> str:
            form = value.__self__
            if any(_WIDE_BRACES.search(spec or "") for _, _, spec, _ in Formatter().parse(form)):
                raise ChatTemplateError(f"formats with a width, {form!r}")
            _RENDERING.get().check_format(form, "{", (args, kwargs))
            return method(*args, **kwargs)

        return limited

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have an attribute."""
        return attr not in _WIDE and super().is_safe_attribute(obj, attr, value)


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _times(left: Any, right: Any) -> int:
    """The length of a text or a list that is repeated."""
    if isinstance(left, int):
        return left * _size(right)
    return right * _size(left) if isinstance(right, int) else 0


# --- Marks ----------------------------------------------------------------------------------------


class _MarkingGenerator(_Generator):
    """Makes Python of a template, in which the template's own texts are marked."""

    def visit_Const(self, node: nodes.Const, frame: Any) -> None:  # noqa: N802
        """A constant."""
        if isinstance(node.value, str):
            self.write(f"environment.written({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def _output_const_repr(self, group: Iterable[Any]) -> str:
        return f"environment.written({super()._output_const_repr(group)})"


class _MarkingEnvironment(_Environment):
    """The sandbox in which texts are `Marked`."""

    code_generator_class = _MarkingGenerator
    concat = staticmethod(joined)

    written = staticmethod(written)

    def __init__(self) -> None:
        super().__init__()
        # (`safe` keeps a text from being escaped. Nothing is escaped here, so it only has to make a text.)
        self.filters["safe"] = self.filters["string"]

    def made(self, text: str, sources: Iterable[str]) -> str:
        """A text that was made from others."""
        return derived(text, sources)

    def json(self, text: str, value: object, sort_keys: bool) -> str:
        """A text that is a value as JSON."""
        return marked_json(text, value, sort_keys)

    def is_between_strings(self, text: str) -> bool:
        """Whether `marked_json` can tell this indent or separator from the strings of a value."""
        return '"' not in text and all(run.origin.kind == "written" for run in runs_of(text))

    def finalized(self, value: Any) -> Any:
        """A value that is about to be written. Numbers are the template's."""
        if value is None or isinstance(value, (bool, int, float)):
            return written(str(value))
        return super().finalized(value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have an attribute. (Marked texts have those of `str`.)"""
        return (not isinstance(obj, Marked) or hasattr(str, attr)) and super().is_safe_attribute(
            obj, attr, value
        )
