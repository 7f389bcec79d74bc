"""What a tokenizer.json says of its added tokens: how they are looked for, and what they are decoded to."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe import PieceType, Tokenizer
from cpbpe.model.formats.registry import FORMATS, GGUF
from cpbpe.model.formats.sentencepiece import carried_of
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.tokenizer_json.merging import Names
from cpbpe.model.formats.tokenizer_json.patterns import PatternError, from_theirs
from cpbpe.model.spec import PLAIN, Carried
from tests.bytes import models as byte_models
from tests.support import budget, json_files
from tests.support.json_files import Json, added, dumped, gemma, ids_of, llama, phi3, theirs
from tests.support.time_limit import time_limit


def metaspace_always() -> Json:
    """The form that transformers 5 writes for Llama."""
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    return {**llama(), "normalizer": None, "pre_tokenizer": step}


def metaspace_first() -> Json:
    content = metaspace_always()
    content["pre_tokenizer"]["prepend_scheme"] = "first"
    return content


def gpt2() -> Json:
    content: Json = json.loads(write(byte_models.made("gpt2")).data)
    return content


def after_special(tok: Tokenizer) -> bool:
    return tok.file_options.get("prefix_after_special", True)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("form", [llama, metaspace_first, metaspace_always, gemma, phi3])
def test_flags_of_added_tokens(form: Callable[[], Json], special: bool) -> None:
    """Every combination of flags, for a word and a mark, in texts made of these, of spaces and of letters."""
    chance = random.Random(budget.SEED)
    names = ("lstrip", "rstrip", "single_word", "normalized")
    for values in product((False, True), repeat=len(names)):
        content = form()
        free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
        flags = dict(zip(names, values, strict=True))
        tokens = [added(free, "table", special, **flags), added(free + 1, "<x>", special, **flags)]
        content["added_tokens"] = [*content["added_tokens"], *tokens]
        result = read(dumped(content))
        is_known = form in (llama, phi3) and flags["lstrip"] and flags["normalized"]
        assert any("a tab at the beginning" in note for note in result.notes) == is_known
        tok, other = Tokenizer.from_spec(result.spec), theirs(dumped(content))
        other.encode_special_tokens = False
        for _ in range(budget.examples(60)):
            text = "".join(chance.choices(["table", "<x>", " ", "  ", "a", "b ", "é", "\n", "▁", "-"], k=6))
            if is_known and "\n" in text[:1]:
                continue  # a known difference: see docs/vocabulary.md
            ids = tok.encode(text, allowed_special="all", prefix_after_special=after_special(tok))
            assert ids == ids_of(other, text), (flags, text)
            for skip in (True, False):
                theirs_said = other.decode(ids, skip_special_tokens=skip)
                assert tok.decode(ids, skip_special_tokens=skip) == theirs_said, (flags, text)


@pytest.mark.parametrize("form", [llama, metaspace_first, metaspace_always, gemma, gpt2])
@pytest.mark.parametrize("flags", [{}, {"normalized": True}, {"single_word": True}], ids=str)
def test_files_with_tokens_that_are_not_special_are_converted(
    form: Callable[[], Json], flags: Json, tmp_path: Path
) -> None:
    """The texts that are tried out, and those of a user, may hold such tokens, such as runs of spaces."""
    content = form()
    free = max([*content["model"]["vocab"].values(), *(token["id"] for token in content["added_tokens"])]) + 1
    content["added_tokens"] += [added(free, "  ", False, **flags), added(free + 1, "qux", False, **flags)]
    (tmp_path / "in.json").write_bytes(dumped(content))
    done = cpbpe.convert(tmp_path / "in.json", tmp_path / "out.json", verify=["a  qux b", "x  qux"])
    assert done.is_exact, done.differences
    assert done.tried is not None


@pytest.mark.parametrize("special", [True, False])
def test_user_defined_pieces_that_are_added_tokens_too(special: bool) -> None:
    """What is written can be read again, and is the same model."""
    spec = json_files.spec_of("user-defined-llama")
    text = Names(spec).user_defined[0]
    spec = replace(spec, carried=Carried(tokens={text: () if special else (PLAIN,)}))
    data = write(spec).data
    again = read(data).spec
    assert again.pieces.types[spec.ids[text.encode()]] == PieceType.USER_DEFINED
    assert again.carried.tokens == spec.carried.tokens
    tok, other = Tokenizer.from_spec(again), theirs(data)
    other.encode_special_tokens = False
    for given in (f"a{text}b", f" {text} {text}", f"{text}"):
        assert tok.encode(given, allowed_special="all") == ids_of(other, given)


@pytest.mark.slow
def test_thousands_of_flagged_tokens() -> None:
    """In each way of looking for them, the time does not grow with the square of their number."""
    content = metaspace_always()
    escaped = {**content, "normalizer": json_files.ESCAPE}
    ways: list[tuple[dict[str, bool], Any]] = [({"normalized": True}, escaped), ({"lstrip": True}, content)]
    for flags, form in (*ways, ({}, escaped)):
        tokens = [added(900 + number, f"<t{number}>", False, **flags) for number in range(20_000)]
        data = dumped({**form, "added_tokens": [*content["added_tokens"], *tokens]})
        with time_limit(20):
            tok = Tokenizer.from_spec(read(data).spec)
            assert tok.encode("a <t19999>")[-1] == 20_899
            assert tok.decode([20_899, 900]) == "<t19999><t0>"


def test_flags_that_another_format_cannot_say() -> None:
    content = llama()
    content["added_tokens"] = [*content["added_tokens"], added(900, "<x>", False)]
    spec = read(dumped(content)).spec
    notes = GGUF.write(spec, allow_differences=True).notes
    assert any("cannot say that added tokens are not special" in note for note in notes)
    assert not any("cannot say that added" in note for note in write(spec).notes)
    spec = replace(
        spec, carried=replace(spec.carried, options={"prefix_after_special": False, "add_eos": True})
    )
    written = GGUF.write(spec, allow_differences=True)
    assert "llama.cpp puts a space also in front of text after a special token" in written.notes
    written = FORMATS["tokenizer.bin"].write(spec, allow_differences=True)
    assert "the program puts no eos at the end of texts" in written.notes
    assert any(
        note.endswith("('<x>'); they are ordinary special tokens there, or none") for note in written.notes
    )


@pytest.mark.parametrize(
    "tokens",
    [{"": []}, {"\ud800": []}, {"a": ["red"]}, {"a": [[1]]}, {"a": "plain"}, ["a"], 3],
)
def test_damaged_flags(tokens: object) -> None:
    data = json.dumps({"tokens": tokens}).encode()
    with pytest.raises(cpbpe.ModelError, match="field 41701"):
        carried_of(data)


def test_added_tokens_in_normalized_text_and_in_text() -> None:
    """The library looks for one kind between the others, so that only one can be USER_DEFINED."""
    content = gemma()
    content["added_tokens"] += [added(902, "table>x", False, normalized=True)]
    data = dumped(content)
    found = read(data)
    assert found.spec.pieces[900].type == PieceType.USER_DEFINED
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    for text in ("<table>x", "<table>", "a<table>a", "<table>b table", "table>x<table>", "a<table>xtable>x"):
        assert tok.encode(text) == ids_of(other, text), text


@pytest.mark.parametrize("form", [llama, gemma])
def test_a_token_that_is_listed_twice(form: Callable[[], Json]) -> None:
    """The flags of the last one count. If the two differ in more than these, the file is refused."""
    names = ("lstrip", "rstrip", "single_word", "special")
    cases = list(product(product((False, True), repeat=len(names)), repeat=2))
    for one, two in random.Random(budget.SEED).sample(cases, 40):
        content = form()
        free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
        flags = [dict(zip(names, values, strict=True)) for values in (one, two)]
        twins = [added(free, "<x>", each.pop("special"), **each) for each in flags]
        content["added_tokens"] = [*content["added_tokens"], *twins]
        if one[-1] != two[-1]:
            with pytest.raises(cpbpe.ModelError, match="'<x>' is listed twice, and special only once"):
                read(dumped(content))
            continue
        tok, other = Tokenizer.from_spec(read(dumped(content)).spec), theirs(dumped(content))
        other.encode_special_tokens = False
        for text in ["a<x> b", "a <x>b", "x<x>x <x>", "<x> <x>"]:
            ids = tok.encode(text, allowed_special="all")
            assert ids == other.encode(text, add_special_tokens=False).ids, (flags, text)
            assert tok.decode(ids, skip_special_tokens=True) == other.decode(ids), (flags, text)


@pytest.mark.parametrize("form", [gemma, metaspace_always])
def test_a_word_of_its_own_and_a_token_in_normalized_text(form: Callable[[], Json]) -> None:
    """The first is refused inside a longer word, and then the second has its text."""
    content = form()
    free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
    pair = [added(free, "qab", False, single_word=True), added(free + 1, "bzz", False, normalized=True)]
    content["added_tokens"] = [*content["added_tokens"], *pair]
    tok, other = Tokenizer.from_spec(read(dumped(content)).spec), theirs(dumped(content))
    for text in ["qabzz", "qab zz", "a qab", "xqabzz", "qabbzz", "zz qab bzz"]:
        assert tok.encode(text) == ids_of(other, text), text


@time_limit(10)
def test_long_tokens_and_many_names_take_little_time() -> None:
    content = gemma()
    free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
    long = [added(free, "<x>", False), added(free + 1, "y" * 20_000, True), added(free + 2, "", True)]
    with pytest.raises(cpbpe.ModelError, match="is empty"):
        read(dumped({**content, "added_tokens": [*content["added_tokens"], *long]}))
    names = ", ".join(f'"x{number}": {number}' for number in range(100_000))
    with pytest.raises(cpbpe.ModelError, match="'x99999' occurs twice"):
        read(b'{"model": {"vocab": {%b, "x99999": 1}}}' % names.encode())
    step = {"type": "Split", "pattern": {"Regex": "a" + "(?:a" * 4000 + ")?" * 4000}, "behavior": "Isolated"}
    with pytest.raises(cpbpe.ModelError, match="its pre-tokenizer is Split"):
        read(dumped({**gemma(), "pre_tokenizer": {**step, "invert": False}}))
    for pattern in ["(?i)" * 2000 + "a", "(?i:" + "s" * 20_000 + ")"]:
        with pytest.raises(PatternError):
            from_theirs(pattern)


@pytest.mark.parametrize("removes", [False, True])
def test_spaces_of_tokens_at_the_beginning(removes: bool) -> None:
    """Each way of decoding drops them as tokenizers does, also after CONTROL pieces that leave no text."""
    spec = json_files.spec_of("llama")
    spec = replace(spec, normalizer=replace(spec.normalizer, remove_extra_whitespaces=removes))
    content = json.loads(write(spec).data)
    first = len(spec.pieces)
    names = (
        " z",
        "  y",
        "<x>" if removes else "▁<x▁>",
    )  # (all marks become spaces, as in Code Llama's ▁<PRE>)
    content["added_tokens"] += [added(first + at, name, False) for at, name in enumerate(names)]
    tok, other = Tokenizer.from_spec(read(dumped(content)).spec), theirs(dumped(content))
    marked = [id for id in range(first) if tok.id_to_piece(id).startswith("▁")][:9]
    chance = random.Random(budget.SEED)
    for _ in range(budget.examples(400)):
        ids = chance.choices([1, 2, *range(first, first + 3), *marked, first - 1], k=chance.randint(1, 5))
        for skip in (None, True, False):
            text = tok.decode(ids, skip_special_tokens=skip)
            assert text == other.decode(ids, skip_special_tokens=skip is not False), (ids, skip)
            assert tok.stream_decoder(skip_special_tokens=skip).push(ids) == text
            assert tok.decode_bytes(ids, skip_special_tokens=skip).decode() == text
            assert tok.decode_pieces(map(tok.id_to_piece, ids), skip_special_tokens=skip) == text
    assert tok.stream_decoder(stop=[" z", "x"]).push([first + 2, first]) == "<"
    if not removes:
        with pytest.raises(ValueError, match="'▁<x▁>' is decoded to ' <x >'; stop at that"):
            tok.stream_decoder(stop="▁<x▁>")


@pytest.mark.parametrize("form", [llama, gemma, gpt2])
def test_whether_texts_with_plain_tokens_come_back(form: Callable[[], Json]) -> None:
    """`is_lossless` has a text that does not, or no short text is one."""
    answers = set()
    for values in product((False, True), repeat=4):
        flags = dict(zip(("lstrip", "rstrip", "single_word", "normalized"), values, strict=True))
        for word in ("<x>", " a▁c"):
            content = form()
            free = 1 + max(*content["model"]["vocab"].values(), *(t["id"] for t in content["added_tokens"]))
            content["added_tokens"] = [*content["added_tokens"], added(free, word, False, **flags)]
            tok = Tokenizer.from_spec(read(dumped(content)).spec)
            answer = tok.is_lossless()
            assert answer.reasons == tok.inspect().losses
            for loss in answer.reasons:
                assert tok.decode(tok.encode(loss.example)) == loss.becomes != loss.example
            parts = [" ", "a", "\n", word if form is gpt2 else word.replace("▁", " ")]
            for text in map("".join, product(parts, repeat=4)) if answer else ():
                assert tok.decode(tok.encode(text)) == text, (flags, word)
            answers.add(bool(answer))
    assert answers == {True, False}


def test_a_plain_token_that_takes_what_the_model_loses() -> None:
    content = metaspace_first()
    content["added_tokens"] = [*content["added_tokens"], added(900, " ", False)]
    spec = read(dumped(content)).spec
    tok = Tokenizer.from_spec(replace(spec, carried=replace(spec.carried, options={}), file=None))
    assert tok.decode(tok.encode(" a")) == " a"
    with pytest.raises(cpbpe.ModelError, match="added tokens take what is lost"):
        tok.is_lossless()
    assert tok.inspect().lossless is None
