"""Compiled normalization rules: sentencepiece's own, byte for byte."""

import hashlib
import random
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpbpe.text import charsmap, charsmap_build
from cpbpe.text.charsmap import RULE_NAMES, Charsmap, rule_charsmap
from cpbpe.text.charsmap_build import charsmap_from_rules, charsmap_from_tsv, named_rules
from cpbpe.training.settings import charsmap_of_file
from tests.support import budget, tiers

DIGESTS = {
    "nfkc": "7e46d9e08af4b6a37991b04fb8388644c1595a0abcd0f26d6a5d575e2a3663ea",
    "nmt_nfkc": "1e2c7b43d3ee9755ceaa2ac335e253d8703604e0249ee1e81156c92b46423844",
    "nfkc_cf": "d8dfef3d6db0eef0742f8b55a73aee7fce6c1e21d26a09b8d3d4b52c42a791cb",
    "nmt_nfkc_cf": "2c03512e62f9ed965ec90d85314211b63b5b8aa0395311ea2147eec9ff738907",
}


def their_charsmap(**arguments: Any) -> bytes:
    from sentencepiece import SentencePieceNormalizer

    from cpbpe.model.formats import model_pb2

    spec = SentencePieceNormalizer(**arguments).serialized_normalizer_spec()
    charsmap: bytes = model_pb2.NormalizerSpec.FromString(spec).precompiled_charsmap
    return charsmap


@pytest.mark.parametrize("name", tiers.some(DIGESTS, ["nmt_nfkc"]))
def test_named_rules(name: str) -> None:
    assert rule_charsmap(name) == their_charsmap(rule_name=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", DIGESTS if budget.MUCH else ["nmt_nfkc_cf"])
def test_the_charsmaps_in_the_package_are_those_that_the_rules_give(name: str) -> None:
    """After a change of the rules: `python -m cpbpe.text.charsmap_build`."""
    assert rule_charsmap(name) == charsmap_from_rules(named_rules(name).items())


def test_every_named_rule_set_has_a_charsmap() -> None:
    assert set(DIGESTS) == set(RULE_NAMES) - {"identity"}
    assert rule_charsmap("identity") == b""
    with pytest.raises(ValueError, match="no rules named 'nfd'"):
        rule_charsmap("nfd")


def test_a_charsmap_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charsmap, "RULE_NAMES", (*RULE_NAMES, "lost"))
    with pytest.raises(ImportError, match=r"installation of cpbpe is incomplete: .*lost\.zlib.*; install it"):
        rule_charsmap("lost")


@pytest.mark.parametrize("name", tiers.some(DIGESTS, ["nmt_nfkc"]))
def test_named_rules_do_not_depend_on_the_python(name: str) -> None:
    """The same on every version of Python, also where sentencepiece is not there to compare with."""
    assert hashlib.sha256(rule_charsmap(name)).hexdigest() == DIGESTS[name]


@tiers.slow
def test_rules_are_those_that_sentencepiece_lists() -> None:
    from sentencepiece import SentencePieceNormalizer

    assert named_rules("nmt_nfkc_cf") == dict(SentencePieceNormalizer(rule_name="nmt_nfkc_cf").decompile())


def test_other_versions_of_unicode_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unicodedata2", SimpleNamespace(unidata_version="18.0.0"))
    with pytest.raises(ImportError, match=r"unicodedata2==17"):
        charsmap_build._unicode_data.__wrapped__()


@cache
def folded() -> dict[str, str]:
    return dict(named_rules("nfkc_cf"))


@pytest.mark.parametrize(
    "letter", ["\u1c89", "\u2c2f", "\ua7cb", "\ua7dc", "\U00010570", "\U00010d50", "\U00016ea0"]
)
def test_letters_that_came_late(letter: str) -> None:
    """Capital letters of Unicode 14 to 17, which most versions of Python do not know."""
    import unicodedata2

    small = folded()[letter]
    assert unicodedata2.name(small) == unicodedata2.name(letter).replace("CAPITAL", "SMALL")
    assert unicodedata2.category(small) == "Ll"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.text(st.sampled_from("abcé日本\U0001f999\U0001f9b0"), min_size=1, max_size=5),
        st.text(st.sampled_from("abé日"), max_size=3),
        min_size=1,
        max_size=40,
    )
)
def test_random_rules(rules: dict[str, str]) -> None:
    rules = {source: target for source, target in rules.items() if source != target}
    if rules:
        compiled = charsmap_from_rules(rules.items())
        assert compiled == their_charsmap(norm_map=list(rules.items()))
        charsmap = Charsmap(compiled)
        for source, target in rules.items():
            assert charsmap.longest(source.encode(), 0) == (target.encode(), len(source.encode()))


@pytest.mark.parametrize("seed", tiers.some(range(3), [0]))
def test_many_rules(seed: int) -> None:
    """Enough for many blocks of units, of which only the last are open, and for distances beyond 21 bits."""
    chance = random.Random(seed)
    rules: dict[str, str] = {}
    for _ in range(20_000):
        source = "".join(
            chr(chance.choice((0x20, 0x400, 0x4E00, 0x1F300)) + chance.randrange(300)) for _ in "123"
        )
        rules[source] = chr(chance.randrange(0x4E00, 0x9FFF))
    assert charsmap_from_rules(rules.items()) == their_charsmap(norm_map=list(rules.items()))


def test_so_many_may_begin_one_another() -> None:
    rules = [("a" * length, "b") for length in range(1, 32)]
    assert charsmap_from_rules(rules) == their_charsmap(norm_map=rules)
    rules.append(("a" * 32, "b"))
    with pytest.raises(RuntimeError, match="shared prefix"):
        their_charsmap(norm_map=rules)
    with pytest.raises(ValueError, match="31 other rules are beginnings"):
        charsmap_from_rules(rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([], "no rules"),
        ([("", "a")], "for nothing"),
        ([("a", "a")], "changes nothing"),
        ([("a\0", "b")], r"U\+0000"),
        ([("a", "\0")], r"U\+0000"),
    ],
)
def test_bad_rules(rules: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        charsmap_from_rules(rules)


ODD_FILES = {
    "NUL on the right": "61\t0\n62\t\n63\t0 78\n64\t78 0\n65\t78\n66\t62 0 63\n",
    "NUL on the left": "61 0 62\t63\n",
    "equal once they end": "61 0 62\t79\n61 0 63\t78\n61 62\t7A\n61\t78\n",
    "to itself": "61 0\t61\n",
    "too large": "110000\t61\n62\t110000 63\n63\tFFFFFFFF\n",
    "too large and equal": "FFFD\t62\n110001\t63\n110000\t61\n",
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_files_are_what_sentencepiece_makes_of_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.tsv"
    path.write_text(ODD_FILES[name])
    compiled = charsmap_from_tsv(ODD_FILES[name])
    assert compiled == their_charsmap(rule_tsv=str(path))
    # In a comment, anything may stand.
    path.write_bytes(ODD_FILES[name].encode().replace(b"\n", b"\t# \xe9\n"))
    assert (
        compiled
        == charsmap_of_file("normalization_rule_tsv", str(path))
        == their_charsmap(rule_tsv=str(path))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rules"),
        ("61\t62\n\n63\t64", "line 2: '' has no code points"),
        ("\t61", "line 1: .* has no code points"),
        ("61\tb!", "line 1: 'b!' is no hexadecimal"),
        ("61\t\r\n", "line 1: .* is no hexadecimal"),
        ("-61\t62", "line 1: '-61' is no hexadecimal"),
        ("61\tD800", "line 1: '61\\\\tD800' has a surrogate"),
        ("61\tDFFF", "line 1: '61\\\\tDFFF' has a surrogate"),
        ("100000000\t61", "line 1: '100000000' is no character"),
        ("62\t61\n0\t61", r"line 2: .* begins with U\+0000"),
        ("0 62\t61", r"line 1: .* begins with U\+0000"),
        ("61\t61", "line 1: .* changes nothing"),
    ],
)
def test_bad_files(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        charsmap_from_tsv(text)
