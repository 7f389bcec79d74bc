"""The tables of options: none is forgotten, and what is said of them in help and in errors."""

import pydoc
import re
from collections.abc import Callable
from functools import partial
from inspect import CO_VARKEYWORDS, signature
from typing import Any

import numpy as np
import pytest

from cpbpe import Tokenizer
from cpbpe.tokenizer.options import DECODE, ENCODE, REFUSED, DecodeOptions, EncodeOptions
from tests.conftest import ENGINES
from tests.encode.test_option_matrix import ARGUMENTS, ENCODE_CHECKS, VALUES, refusal, tokenizer
from tests.encode.test_option_matrix_decoding import DECODE_CHECKS, DECODE_VALUES

EVERY = [*((name, ENCODE) for name in ENCODE_CHECKS), *((name, DECODE) for name in DECODE_CHECKS)]


# --- What has to be checked -----------------------------------------------------------------------


def calls(options: str) -> set[str]:
    """The public calls that take `**options` of a kind."""
    functions = {name: call for name, call in vars(Tokenizer).items() if hasattr(call, "__code__")}
    return {
        name
        for name, call in functions.items()
        if call.__code__.co_flags & CO_VARKEYWORDS and call.__annotations__.get("options") == options
    }


def test_nothing_is_forgotten() -> None:
    """Whoever adds a call, or an option, has to add it here."""
    assert calls("Unpack[EncodeOptions]") == ENCODE_CHECKS.keys()
    assert calls("Unpack[DecodeOptions]") == DECODE_CHECKS.keys()
    every = {
        name
        for name, call in vars(Tokenizer).items()
        if hasattr(call, "__code__") and call.__code__.co_flags & CO_VARKEYWORDS
    }
    refusing = {"__init__", "__call__"}  # they take anything, to say what to do instead
    chats = {"apply_chat_template"}  # it takes variables, and options that are bound: see test_chats.py
    assert every == ENCODE_CHECKS.keys() | DECODE_CHECKS.keys() | {"using"} | refusing | chats
    assert VALUES.keys() == ENCODE.keys() == EncodeOptions.__annotations__.keys()
    assert DECODE_VALUES.keys() == DECODE.keys() == DecodeOptions.__annotations__.keys()
    assert REFUSED.keys() <= ENCODE_CHECKS.keys() | DECODE_CHECKS.keys() | chats


@pytest.mark.parametrize("name", ["encode", "truncate", "decode", "stream_decoder"])
def test_a_forgotten_call_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tokenizer, "new_call", getattr(Tokenizer, name), raising=False)
    with pytest.raises(AssertionError, match="new_call"):
        test_nothing_is_forgotten()


def test_every_call_is_described() -> None:
    """Each shows the options that it has, with their defaults. (That `using` reaches each: `ways`.)"""
    for checks, table in ((ENCODE_CHECKS, ENCODE), (DECODE_CHECKS, DECODE)):
        for name in checks:
            call = getattr(Tokenizer, name)
            shown = signature(call).parameters
            refused = REFUSED.get(call.__name__, {})
            assert {n: shown[n].default for n in table if n in shown} == {
                n: option.default for n, option in table.items() if n not in refused
            }
            for n, option in table.items():
                expected = f"`{n}` is refused: {refused[n]}" if n in refused else f"`{n}`: {option.meaning}"
                assert f"- {expected}." in call.__doc__


# --- What is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "table"), EVERY)
def test_help_shows_every_option(call: str, table: dict[str, Any]) -> None:
    """With its default in the signature, and its meaning; and what is refused, with the reason."""
    shown = pydoc.plain(pydoc.render_doc(getattr(Tokenizer, call)))
    text = " ".join(shown.split())
    refused = REFUSED.get(getattr(Tokenizer, call).__name__, {})
    for name, option in table.items():
        if name in refused:
            assert f"- `{name}` is refused: {refused[name]}." in text
        else:
            # (Before 3.14, Python shows the annotations of our functions as the strings that they are.)
            written = f"({re.escape(repr(option.annotation))}|{re.escape(option.annotation)})"
            assert re.search(f" {name}: {written} = {re.escape(repr(option.default))}", text)
            assert f"- `{name}`: {option.meaning}." in text
    assert "**options" not in shown
    assert set(table) - set(refused) <= signature(getattr(Tokenizer, call)).parameters.keys()
    bound = Tokenizer.from_bytes(tokenizer("llama", ENGINES[0]).to_bytes()).using(add_eos=True)
    assert getattr(bound, call).__doc__ == getattr(Tokenizer, call).__doc__
    assert signature(getattr(bound, call)) == signature(getattr(tokenizer("llama", ENGINES[0]), call))


def test_refusals_are_sentences() -> None:
    """They say why, and what to do instead."""
    for call, reasons in REFUSED.items():
        for option, reason in reasons.items():
            assert option in ENCODE
            assert re.fullmatch(r"[a-z][^.]{10,}; [a-z][^.]{8,}", reason), reason
            tok = tokenizer("llama", ENGINES[0])
            for ask in asked(tok, call, option, VALUES[option][-1]):
                with pytest.raises(TypeError, match=re.escape(refusal(call, option))):
                    ask()


def asked(tok: Tokenizer, call: str, option: str, value: Any) -> list[Callable[[], Any]]:
    """A call with an option that is given, and with one that is bound."""
    given: Any = {option: value}
    bound = getattr(tok.using(**given), call)
    if call == "apply_chat_template":  # it takes no options but those that are bound
        return [partial(bound, [{"role": "user", "content": "a"}], template="{{ 1 }}")]
    arguments = ARGUMENTS.get(call, ())
    return [partial(getattr(tok, call), *arguments, **given), partial(bound, *arguments)]


def test_the_usual_value_undoes_what_is_bound() -> None:
    """Also in calls that refuse the option, and for every form of that value."""
    forms: dict[str, list[Any]] = {"alpha": [0, np.float32(0)], "reverse": [0]}
    tok = tokenizer("llama", ENGINES[0])
    for call, reasons in REFUSED.items():
        for option in reasons:
            for usual in [ENCODE[option].default, *forms.get(option, [])]:
                again: Any = tok.using(**{option: VALUES[option][-1]})
                if call != "apply_chat_template":
                    getattr(again, call)(*ARGUMENTS.get(call, ()), **{option: usual})
                for ask in asked(again, call, option, usual):
                    ask()
    assert tok.using(allowed_special="all").canonical_next((), allowed_special=set()).any()
    with pytest.raises(ValueError, match="allowed_special must be 'all' or a set"):
        tok.canonical_next((), allowed_special=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("call", "table"), EVERY)
def test_unknown_options(call: str, table: dict[str, Any], engine: str) -> None:
    """The error lists the options that there are, and not those that this call refuses."""
    tok = tokenizer("llama", engine)
    name = getattr(Tokenizer, call).__name__
    there = [option for option in table if option not in REFUSED.get(name, {})]
    hint = "; is it add_bos?" if "add_bos" in there else ""
    message = f"{name}() has no option 'add_bso'; it has {', '.join(there)}{hint}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        getattr(tok, call)(*ARGUMENTS[call], add_bso=True)
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):  # also with options that are known
        getattr(tok, call)(*ARGUMENTS[call], **{there[0]: table[there[0]].default}, add_bso=True)
    with pytest.raises(TypeError, match=re.escape("using() has no option 'add_bso'; it has add_bos, ")):
        tok.using(add_bso=True)  # type: ignore[call-arg]


WRONG: dict[str, list[tuple[Any, type[Exception], str]]] = {
    **{
        flag: [
            (wrong, TypeError, f"{flag} must be True or False, not {shown}")
            for wrong, shown in (("no", "'no'"), (None, "None"), (2, "2"), ([], r"\[\]"))
        ]
        for flag in ("add_bos", "add_eos", "reverse", "prefix_after_special")
    },
    **{
        flag: [
            (wrong, TypeError, f"{flag} must be True, False or None, not {shown}")
            for wrong, shown in (("no", "'no'"), (2, "2"), ({}, "{}"))
        ]
        for flag in ("prefix_space", "skip_special_tokens", "keep_prefix_space")
    },
    "allowed_special": [
        (wrong, ValueError, "allowed_special must be 'all' or a set of special tokens, not")
        for wrong in (None, "", "<s>", False, 0, b"")
    ],
    "disallowed_special": [
        (wrong, ValueError, "disallowed_special must be 'raise' or a set of special tokens, not")
        for wrong in (None, "", "all", False, 0)
    ],
    "alpha": [
        (1.5, ValueError, "from 0 to 1, not 1.5"),
        (-1, ValueError, "from 0 to 1, not -1"),
        (float("nan"), ValueError, "from 0 to 1, not nan"),
        (None, TypeError, "alpha must be a number from 0 to 1, not None"),
        ("", TypeError, "alpha must be a number from 0 to 1, not ''"),
        ([], TypeError, r"alpha must be a number from 0 to 1, not \[\]"),
    ],
    "seed": [("1", TypeError, "seed must be an integer or None, not str"), (1.0, TypeError, "not float")],
}


@pytest.mark.parametrize(("call", "table"), EVERY)
def test_wrong_values(call: str, table: dict[str, Any], engine: str) -> None:
    """What is no value of an option is an error in every call, and never taken for another value."""
    tok = tokenizer("llama", engine)
    assert WRONG.keys() == ENCODE.keys() | DECODE.keys()
    refused = REFUSED.get(getattr(Tokenizer, call).__name__, {})
    for option in table.keys() - refused:
        for wrong, error, message in WRONG[option]:
            with pytest.raises(error, match=message):
                getattr(tok, call)(*ARGUMENTS[call], **{option: wrong})
            with pytest.raises(error, match=message):
                tok.using(**{option: wrong})


def test_flags_of_other_types(engine: str) -> None:
    """What equals True or False is taken for it: numpy's bool, and 0 and 1."""
    tok = tokenizer("llama", engine)
    for yes, no in ((np.True_, np.False_), (1, 0)):
        flags: list[Any] = [yes, no]
        for flag in flags:
            assert tok.encode("a", add_bos=flag, prefix_space=flag) == tok.encode(
                "a", add_bos=bool(flag), prefix_space=bool(flag)
            )
            ids = [*tok.encode("a"), 1, 2]
            for call in (tok.decode, lambda ids, **o: tok.stream_decoder(ids[:0], **o).push(ids)):
                assert call(ids, skip_special_tokens=flag) == call(ids, skip_special_tokens=bool(flag))
