"""What is passed to `encode` and `encode_batch`: texts, pairs of texts, and the same in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from cpbpe.compat.tokenizers import arguments


class Input(NamedTuple):
    """A text, or its words."""

    texts: list[str]
    are_words: bool


Inputs = list[Input]
"""One text, or a pair."""


def read_input(sequence: Any, pair: Any, are_words: bool) -> Inputs:
    """The arguments of `encode`."""
    given = [_input(sequence, "sequence", are_words)]
    return given if pair is None else [*given, _input(pair, "pair", are_words)]


def read_batch(batch: Any, are_words: bool) -> list[Inputs]:
    """The first argument of `encode_batch`."""
    given = arguments.sequence(batch, "input", "texts or pairs of texts")
    if not are_words and type(given) is list and set(map(type, given)) == {str}:  # as usual
        return [[Input([arguments.text(text, "input")], False)] for text in given]
    return [_item(item, f"input[{place}]", are_words) for place, item in enumerate(given)]


def _item(item: Any, name: str, are_words: bool) -> Inputs:
    """One text or pair of a batch."""
    if not isinstance(item, (list, tuple)):
        return [_input(item, name, are_words)]
    if are_words and (len(item) != 2 or any(isinstance(word, str) for word in item)):
        return [_input(item, name, True)]
    if len(item) != 2:
        raise TypeError(f"{name} must be a text or a pair of texts, and has {len(item)} parts")
    return [_input(part, f"{name}[{at}]", are_words) for at, part in enumerate(item)]


def _input(given: Any, name: str, are_words: bool) -> Input:
    if are_words:
        return Input(arguments.words(given, name), True)
    if isinstance(given, (list, tuple)):
        raise TypeError(
            f"{name} must be a str, not {type(given).__name__}; for words, pass is_pretokenized=True"
        )
    return Input([arguments.text(given, name)], False)
