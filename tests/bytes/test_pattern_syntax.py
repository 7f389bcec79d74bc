"""Patterns that are refused, by both engines with the same words; and those that must not be."""

import random
from dataclasses import replace
from typing import Any

import pytest

import cpbpe
from cpbpe.model.formats.gguf import llamacpp
from cpbpe.model.spec import SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.split_syntax import check_syntax
from tests.bytes.models import model
from tests.split.patterns import PATTERNS as SPELLINGS
from tests.support.budget import SEED, examples
from tests.support.time_limit import time_limit

REFUSED = {
    "[" * 5000 + "a" + "]" * 5000: "a class of characters in another one",
    "(?:" * 5000 + "a" + ")" * 5000: "groups are nested more than 32 deep",
    "(?:.{1000}){100}": "it repeats too much",
    "(?:.{1000}){,100}": "it repeats too much",
    "(?=.{1000}){1000}a": "what may match nothing is repeated",
    "(?:(?:a{100}){100}b){3}": "it repeats too much",
    "a{30}" * 1000: "more than 20,000 parts",
    "(a)(?1)": "a group of a kind",
    r"\X": "an escape that not every engine knows",
    r"\Ka": "an escape that not every engine knows",
    r"\<a": "an escape that not every engine knows",
    r"\b{start}": "an escape that not every engine knows",
    r"[\w-z]": "a range has a class of characters at its end",
    r"[a-\p{L}]": "a range has a class of characters at its end",
    r"\p{Print}": "has other characters in other engines",
    "(?-u:.)": "a group of a kind",
    "(?|(a)|(b))": "a group of a kind",
    "[a-z&&[^b]]": "a class of characters in another one",
    "[[:alpha:]]": "a class of characters in another one",
    "a(?R)?b": "a group of a kind",
    "(a": "a group is not closed",
    "a)": "a group is closed that was not opened",
    "[a": "a class of characters is not closed",
    "[]a]": "begins with ']'",
    "*a": "nothing to repeat",
    "a{3,2}": "above the most",
    "(?=a)+b": "what may match nothing is repeated",
    r"(?:\w*?|\n){2,}\W": "what may match nothing is repeated",
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_refused_alike(pattern: str) -> None:
    spec = replace(model("cl100k"), splitter=SplitSpec(pattern))
    with time_limit(5), pytest.raises(cpbpe.ModelError) as caught:
        cpbpe.Tokenizer.from_spec(spec)
    assert f"at position {str(caught.value).partition('at position ')[2]}" in str(caught.value)
    assert REFUSED[pattern] in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.usefixtures("engine")
def test_in_a_file() -> None:
    data = cpbpe.Tokenizer.from_spec(replace(model("cl100k"), splitter=SplitSpec("ab|.|\n"))).to_bytes()
    assert data.count(b"ab|.|\n") == 1
    with pytest.raises(cpbpe.ModelError, match="an escape that not every engine knows"):
        cpbpe.Tokenizer.from_bytes(data.replace(b"ab|.|\n", rb"\X|.|" + b"\n"))


SINGLE = r"a b ab . 1 é \s \S \d \w \W \p{L} \p{Lu} \p{N} \P{L} \x41 \u00e9 \n \. $ ^ \b \B \A \z \Z"
LONGER = r"[ab] [^a] [^\s\p{L}] [a-z\d] [\p{Lu}\p{Lt}] [-a] (?=a) (?!b) (?!\S) (?<=a) (?i:A) (?s:.)"
ATOMS = [*SINGLE.split(), *LONGER.split(), " ", "(?<! )", r"\x{62}", r"\x{1f600}", r"\\", "x"]
OFTEN = "? * + {1,3} {2} {2,} *? +? ?? ++ *+ ?+ {1,2}+ {,2}"
REPEATS = ["", "", "", "", *OFTEN.split()]
TEXTS = [
    "aab\n",
    "ab 1\n\n",
    "ab aB1 é\n\nAB  b.a",
    "aaabbb 123\r\nÉé\u0301 -a\t",
    "a\nb\u2028c \u00a0x",
    "\n",
    " a",
    "ab" * 9,
    "ǅ ſ K İ ẞ",
    "x\\xxA b😀",
]


def a_pattern(rng: random.Random, depth: int = 2) -> str:
    parts = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.3:
            kind = rng.choice(["(?:{})", "({})", "(?>{})", "(?={})", "(?!{})", "(?i:{})", "(?<n>{})"])
            parts.append(kind.format(a_pattern(rng, depth - 1)) + rng.choice(REPEATS))
        else:
            parts.append(rng.choice(ATOMS) + rng.choice(REPEATS))
    return ("|" if rng.random() < 0.4 else "").join(parts)


def test_random_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either both engines refuse a pattern, with the same words, or both cut every text alike."""
    rng, taken = random.Random(SEED), 0
    for _ in range(examples(300)):
        found: list[Any] = []
        pattern = a_pattern(rng)
        spec = replace(model("cl100k"), splitter=SplitSpec(pattern))
        for engine in ("core", "reference"):
            monkeypatch.setenv("CPBPE_ENGINE", engine)
            try:
                tok = cpbpe.Tokenizer.from_spec(spec)
                found.append([tok.encode(text) for text in TEXTS])
            except cpbpe.ModelError as error:
                found.append(str(error))
        assert found[0] == found[1], pattern
        taken += isinstance(found[0], list)
    assert taken


def test_published_patterns_pass() -> None:
    for pattern in [*PATTERNS.values(), *filter(None, SPELLINGS.values())]:
        check_syntax(pattern)
        check_syntax(f"(?:{pattern})|\\z")  # which has no name
    for pre in llamacpp.KNOWN.values():
        for pattern in (pre.splitter.pattern, *pre.splitter.then) if pre.splitter else ():
            check_syntax(f"(?:{pattern})")
