"""Patterns that are refused, by both engines with the same words; and those that must not be."""

from dataclasses import replace

import pytest

import cpbpe
from cpbpe.model.formats.gguf import pre_names
from cpbpe.model.spec import SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.split_syntax import check_syntax
from tests.bytes.models import model
from tests.split.patterns import PATTERNS as SPELLINGS
from tests.support.time_limit import time_limit

REFUSED = {
    "[" * 5000 + "a" + "]" * 5000: "a class of characters in another one",
    "(?:" * 5000 + "a" + ")" * 5000: "groups are nested more than 32 deep",
    "(?:.{1000}){100}": "it repeats too much",
    "(?=.{1000}){1000}a": "it repeats too much",
    "(?:(?:a{100}){100}b){3}": "it repeats too much",
    "a{30}" * 1000: "more than 20,000 parts",
    "(a)(?1)": "a group of a kind",
    r"\X": "an escape that not every engine knows",
    r"\Ka": "an escape that not every engine knows",
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


def test_published_patterns_pass() -> None:
    for pattern in [*PATTERNS.values(), *filter(None, SPELLINGS.values())]:
        check_syntax(pattern)
        check_syntax(f"(?:{pattern})|\\z")  # which has no name
    for pre in pre_names.KNOWN.values():
        for pattern in (pre.splitter.pattern, *pre.splitter.then) if pre.splitter else ():
            check_syntax(f"(?:{pattern})")
