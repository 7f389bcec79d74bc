"""The options of encoding and decoding, in two tables from which every method takes its signature and help.

Methods take them as `**options` and pass them on unchanged. With keyword-only parameters, Python would look
up the default of each in every call, which took a third of the time of a short text. `described` shows
`help()` and editors the options that `**options` hides.
"""

# (The annotations of these classes are compiled if they are not evaluated, and the first compilation takes a
# tenth of the time of loading a model.)

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, Literal, NamedTuple, SupportsFloat, SupportsIndex, TypedDict, TypeVar

from cpbpe.foreign import OPTIONS, advice
from cpbpe.lazy import importing

AllowedSpecial = Collection[str] | Literal["all"]
KeptSpace = Literal["after_special"]
DisallowedSpecial = Collection[str] | Literal["raise"]
F = TypeVar("F", bound=Callable[..., Any])


class FileOptions(TypedDict, total=False):
    """The options of encoding that a file can ask for."""

    add_bos: bool
    add_eos: bool
    prefix_after_special: bool


class EncodeOptions(FileOptions, total=False):
    """What every way of encoding takes. ENCODE says what each means."""

    reverse: bool
    prefix_space: bool | None
    allowed_special: AllowedSpecial
    disallowed_special: DisallowedSpecial
    alpha: float
    seed: int | None


class DecodeOptions(TypedDict, total=False):
    """What every way of decoding takes. DECODE says what each means."""

    skip_special_tokens: bool | None
    keep_prefix_space: bool | KeptSpace | None
    prefix_after_special: bool


_FLAG = (True, False)
_FLAG_OR_NONE = (True, False, None)
_ANY = ()
"""Values that are checked where they are used: tokens by the tokenizer, alpha together with its seed."""


class Option(NamedTuple):
    """One option."""

    default: object
    """Its value if it is not given."""
    choices: tuple[bool | str | None, ...]
    """The values that it can have."""
    annotation: str
    """Its type, for people."""
    meaning: str
    """What it does."""


ENCODE = {
    "add_bos": Option(False, _FLAG, "bool", "put the bos id in front"),
    "add_eos": Option(False, _FLAG, "bool", "put the eos id at the end"),
    "reverse": Option(False, _FLAG, "bool", "reverse the ids, before bos and eos are added"),
    "prefix_space": Option(
        None,
        _FLAG_OR_NONE,
        "bool | None",
        "whether a dummy prefix is put in front of the text; None: as the model says",
    ),
    "allowed_special": Option(
        (),
        _ANY,
        "Collection[str] | Literal['all']",
        "special tokens that become ids where the text spells them out, or 'all'. Without it a text never "
        "yields one. The longest wins; the text between two is encoded like a text of its own",
    ),
    "disallowed_special": Option(
        (),
        _ANY,
        "Collection[str] | Literal['raise']",
        "special tokens that the text must not contain (ValueError), or 'raise': any that is not allowed",
    ),
    "prefix_after_special": Option(True, _FLAG, "bool", "False: no dummy prefix after a special token"),
    "alpha": Option(
        0.0,
        _ANY,
        "float",
        "the chance that a merge is skipped (BPE-dropout). The texts of a batch are sampled with "
        "`seed`, the number after it, and so on",
    ),
    "seed": Option(
        None, _ANY, "int | None", "with alpha: equal seeds give equal ids; None: new ones every time"
    ),
}
"""The options of encoding."""

DECODE = {
    "skip_special_tokens": Option(
        None,
        _FLAG_OR_NONE,
        "bool | None",
        "None: CONTROL pieces decode to nothing, as in sentencepiece, and added tokens to their text; True: "
        "both to nothing; False: both to their text. Tokens that are not special are always text",
    ),
    "keep_prefix_space": Option(
        None,
        (*_FLAG_OR_NONE, "after_special"),
        "bool | Literal['after_special'] | None",
        "whether to keep a space at the beginning that a dummy prefix may have put there; by default as the "
        "format of the file has it. In Python also 'after_special': after special tokens that are shown, as "
        "tokenizers does",
    ),
    "prefix_after_special": Option(
        True,
        _FLAG,
        "bool",
        "False if the ids were encoded that way: a space after a special token that is shown is kept",
    ),
}
"""The options of decoding."""

_SAMPLED_AGAIN = "the result is text, and encoding it would sample again; leave it out"
_NOT_YET = "a stream returns ids before the text has ended; encode the whole text with encode()"

ENCODE_DEFAULTS = {name: option.default for name, option in ENCODE.items()}

REFUSED: dict[str, dict[str, str]] = {
    "truncate": {
        "reverse": "a text is cut at its end; leave it out",
        "alpha": _SAMPLED_AGAIN,
        "seed": _SAMPLED_AGAIN,
    },
    "split": {
        "reverse": "a text is cut from its beginning; leave it out",
        "alpha": _SAMPLED_AGAIN,
        "seed": _SAMPLED_AGAIN,
    },
    "completions": {
        "add_eos": "a prompt goes on; leave it out",
        "reverse": "a prompt goes on at its end; leave it out",
        "alpha": "sampled ids are others each time; leave it out",
        "seed": "without alpha it has no meaning; leave it out",
    },
    "stream_encoder": {
        "reverse": f"reversed ids begin with the last one, and {_NOT_YET}",
        "alpha": f"sampling depends on the place in the whole text, and {_NOT_YET}",
        "seed": "without alpha it has no meaning; leave it out",
    },
}
REFUSED["document"] = REFUSED["stream_encoder"]
REFUSED["apply_chat_template"] = {
    "reverse": "a network reads conversations from the beginning; leave it out",
    "alpha": "a network is asked with the ids of the best segmentation; leave it out",
    "seed": "without alpha it has no meaning; leave it out",
}
REFUSED["is_canonical"] = REFUSED["first_divergence"] = {
    "reverse": "the text of reversed ids is another one; reverse them before",
    "alpha": "sampled ids are others each time; leave it out",
    "seed": "without alpha it has no meaning; leave it out",
}
REFUSED["canonical_next"] = REFUSED["canonical_stream"] = {
    **REFUSED["is_canonical"],
    "allowed_special": "special ids stand for themselves, and other ids may spell their texts; leave it out",
    "disallowed_special": "other ids may spell the texts of special tokens; leave it out",
}
"""The options that a call refuses, each with the reason as the second half of a sentence."""


def described(table: Mapping[str, Option]) -> Callable[[F], F]:
    """A decorator that gives a call with `**options` a signature that names them, and a help text."""

    def describe(function: F) -> F:
        refused = REFUSED.get(function.__name__, {})
        options = {name: option for name, option in table.items() if name not in refused}
        function.__wrapped__ = _with_parameters(function, options)  # type: ignore[attr-defined]
        lines = [f"- `{name}`: {option.meaning}." for name, option in options.items()]
        lines += [f"- `{name}` is refused: {reason}." for name, reason in refused.items()]
        if function.__doc__ is not None:  # it is None under python -OO
            # (`textwrap` would indent them, and takes as long to import as two modules of cpbpe.)
            function.__doc__ += "\n        Options:\n\n" + "".join(f"        {line}\n" for line in lines)
        return function

    return describe


def _with_parameters(function: Any, options: Mapping[str, Option]) -> FunctionType:
    """A function that has the parameters of another, but with options instead of `**options`.

    It is never called. `inspect` looks at the function that another one wraps, and takes its parameters, its
    place in the file and its help from there. (`__signature__` would do as well, but importing `inspect` to
    make one takes a sixth of the time of loading a model.)
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] + tuple(options)
    shown = _nothing.__code__.replace(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount + len(options),
        co_nlocals=len(names),
        co_varnames=names,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
    )
    made = FunctionType(shown, function.__globals__, function.__name__, function.__defaults__)
    defaults = {name: option.default for name, option in options.items()}
    made.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **defaults}
    types = {name: option.annotation for name, option in options.items()}
    made.__annotations__ = {**function.__annotations__, **types}
    made.__annotations__.pop("options", None)
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__qualname__ = function.__qualname__
    return made


def _nothing() -> None:
    raise NotImplementedError("this shows the parameters of a call, and does nothing else")


def check_names(options: Mapping[str, object], method: str, table: Mapping[str, Option]) -> None:
    """Refuse unknown options, as Python does with parameters, and those that this call does not take."""
    refused = REFUSED.get(method, {})
    for name in options:
        if name not in table:
            there = [option for option in table if option not in refused]
            hint = advice(name, OPTIONS, there)
            raise TypeError(f"{method}() has no option {name!r}; it has {', '.join(there)}{hint}")
        if name in refused and _asks(options[name], ENCODE_DEFAULTS[name]):
            undone = f"if it is bound, {name}={ENCODE_DEFAULTS[name]!r} undoes it"
            raise TypeError(f"{method}() has no option {name!r}: {refused[name]} ({undone})")


def _asks(value: Any, usual: object) -> bool:
    """Whether an option asks for something. Its usual value does not: it only undoes one that is bound."""
    with suppress(TypeError, ValueError):  # arrays do not compare
        return bool(value if usual == () else value != usual)
    return True


def checked_options(
    options: Mapping[str, object], method: str, table: Mapping[str, Option]
) -> dict[str, Any]:
    """All options of a table, with the values given or their defaults."""
    check_names(options, method, table)
    return {
        name: _checked(name, options[name], option.choices) if name in options else option.default
        for name, option in table.items()
    }


def _checked(name: str, value: Any, choices: tuple[bool | str | None, ...]) -> Any:
    """The value of an option. Numbers that are equal to True or False are accepted, and so are numpy's bools.

    Other truthy values are refused: "no" and "false" would mean the opposite of what they say.
    """
    if not choices or ((value is None or isinstance(value, str)) and value in choices):
        return value
    with suppress(TypeError, ValueError):  # arrays do not compare
        if value in (True, False):
            return bool(value)
    raise TypeError(
        f"{name} must be {'True, False or None' if None in choices else 'True or False'}, not {value!r}"
    )


_numbers: Callable[[int], int] | None = None
"""What makes seeds; nothing before the first one, and in a new process."""


def new_seed() -> int:
    """A seed of 64 bits, another one each time. (Asking the system takes as long as a short text does.)"""
    global _numbers
    if _numbers is None:
        with importing:
            import random
        _numbers = random.Random().getrandbits
    return _numbers(64)


def _begin_anew() -> None:
    """Forget what makes seeds: a process that was forked would make the same ones."""
    global _numbers
    _numbers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def checked_alpha(alpha: SupportsFloat) -> float:
    """The probability that a merge is skipped."""
    chance = alpha if type(alpha) is float else _chance(alpha)
    if not 0 <= chance <= 1:
        shown = repr(alpha)
        shown = shown if len(shown) <= 40 else f"{shown[:40]}..."
        raise ValueError(f"alpha is the chance that a merge is skipped; it must be from 0 to 1, not {shown}")
    return chance


def checked_seed(seed: SupportsIndex) -> int:
    """A seed of 64 bits."""
    if not hasattr(seed, "__index__"):
        raise TypeError(f"seed must be an integer or None, not {type(seed).__name__}")
    return seed.__index__() % (1 << 64)


def _chance(alpha: SupportsFloat) -> float:
    """Any number as a float; -1 if it is none."""
    if isinstance(alpha, (str, bytes)) or not hasattr(alpha, "__float__"):
        raise TypeError(f"alpha must be a number from 0 to 1, not {alpha!r}")
    with suppress(ArithmeticError, TypeError, ValueError):  # too large a number, an array, a signaling NaN
        return float(alpha)
    return -1.0
