"""What an edit promises about texts, on trained, real and made-up models; and what it refuses."""

import base64
import json
import pickle
import random
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe import ModelError, ModelSpec, NormalizerSpec, Piece, Pieces, PieceType, Tokenizer, TrainingError
from cpbpe.model.byte_level import chunks
from cpbpe.tools.edit import Edit
from tests.bytes.models import WORDS, model
from tests.support import corpus, zoo
from tests.support.budget import quick
from tests.support.tokenizers import tokenizer
from tests.tools.test_diff import small

V1 = zoo.REAL[0]
CASES = ["myocarditis", "Grüße", "haha", "hahahahahaha", "a b", "日本語の文", "🦙🦙", "\n\n", "ab\tc", "x"]


def sides(tok: Tokenizer, text: str) -> list[int]:
    """Where the tokens of a text end."""
    return [end for _, end in tok.align(text).offsets]


def words_of(tok: Tokenizer, count: int, seed: int) -> list[str]:
    """Made-up words: one to four pieces of the tokenizer, put together at random."""
    chance = random.Random(seed)
    pieces = [piece.replace("▁", "") for piece in tok.get_vocab() if not piece.startswith("<")]
    made = {"".join(chance.choices(pieces, k=chance.randint(1, 4))).strip() for _ in range(count)}
    return sorted(filter(str.isprintable, filter(None, made)))


@cache
def trained(size: int, preset: str = "llama2") -> cpbpe.TrainingResult:
    return cpbpe.train(corpus.lines(), vocab_size=size, preset=preset)


@cache
def byte_level() -> Tokenizer:
    return Tokenizer.from_spec(model())


@cache
def several() -> list[Tokenizer]:
    """Models of several kinds, small ones, because an edit of a large one takes a second."""
    kinds = [trained(size, preset).tokenizer for size, preset in ((800, "llama2"), (600, "sentencepiece"))]
    suffix = cpbpe.train(corpus.lines(), vocab_size=800, treat_whitespace_as_suffix=True).tokenizer
    spaces = cpbpe.train(corpus.lines(), vocab_size=800, split_by_whitespace=False).tokenizer
    symbols = cpbpe.train(corpus.lines(), vocab_size=800, user_defined_symbols=["the", "@@"]).tokenizer
    return [*kinds, suffix, spaces, symbols, byte_level(), trained(600, "gpt4").tokenizer]


# --- Growing --------------------------------------------------------------------------------------


@quick(4, 60)
@given(st.data())
def test_texts_without_new_pieces_keep_their_tokens_and_others_join_them(data: st.DataObject) -> None:
    tok = data.draw(st.sampled_from(several()))
    seed = data.draw(st.integers(0, 10**6))
    if tok.spec.alphabet == "bytes":
        words = [word for word in words_of(tok, 8, seed) if len(chunks(f" {word}", tok.spec.patterns)) == 1]
    else:
        words = words_of(tok, 8, seed)
    # (Types are numbers here: 1 is NORMAL, 4 USER_DEFINED, 5 UNUSED.)
    special = [p for p, t in zip(tok.spec.pieces.texts, tok.spec.pieces.types, strict=True) if t == 4]
    words = [word for word in words if not any(p.decode() in f"▁{word}" for p in special)]
    edit = cpbpe.edit(tok).add(words)
    new = edit.report().made
    chance = random.Random(seed)
    for _ in range(10):
        parts = [*words, *CASES, *(f" {word}" for word in words)]
        text = "".join(chance.choices(parts, k=chance.randint(1, 5)))
        before, after = sides(tok, text), sides(edit.tokenizer, text)
        assert {*after} <= {*before}, (text, words)
        rewritten = tok.normalize(text)
        if not any(piece in rewritten for piece in new):
            assert tok.encode(text) == edit.tokenizer.encode(text)
    for word in words:
        (id,) = edit.tokenizer.facts.engine.variant(raw=True).encode(written(tok, word))
        assert edit.tokenizer.facts.engine.piece(id) == written(tok, word)


def written(tok: Tokenizer, word: str) -> bytes:
    text = tok.facts.engine.variant(prefix=False).normalize(word.strip()).encode()
    if tok.spec.alphabet == "bytes":
        return b" " + text
    return text + "▁".encode() if tok.spec.normalizer.suffix else "▁".encode() + text


@quick(4, 40)
@given(st.integers(0, 10**6))
def test_unused_pieces_in_between_leave_texts_without_the_words_alone(seed: int) -> None:
    tok = trained(800).tokenizer
    words = words_of(tok, 6, seed)
    edit = cpbpe.edit(tok).add(words, between="unused")
    chance = random.Random(seed)
    for _ in range(10):
        # Beginnings of the words, which are what the pieces in between spell.
        parts = [word[: chance.randint(1, len(word))] for word in words]
        text = " ".join(chance.choices(parts, k=3))
        if not any(written(tok, word) in tok.normalize(text).encode() for word in words):
            assert tok.encode(text) == edit.tokenizer.encode(text), (text, words)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=edit.tokenizer.to_bytes())
    every = [*words, *(f"{word} and {word}s" for word in words)]
    assert theirs.encode(every) == edit.tokenizer.encode_batch(every)


def test_sentencepiece_reads_what_was_edited(tmp_path: Path) -> None:
    tok = tokenizer(V1, "core")
    edit = cpbpe.edit(tok).add(CASES[:4]).add(["<|chat|>"], kind="control").add(["ﷺ"], kind="user_defined")
    edit = edit.remove(["▁the"], leave="unused").truncate(len(edit.tokenizer) - 500)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=edit.tokenizer.to_bytes())
    for text in [*CASES, *corpus.lines(200), "the theory ﷺ of <|chat|>"]:
        assert theirs.encode(text) == edit.tokenizer.encode(text)
    edit.tokenizer.save(tmp_path / "new.model")
    assert cpbpe.load(tmp_path / "new.model") == edit.tokenizer


def test_what_was_there_is_not_added_twice() -> None:
    edit = cpbpe.edit(tokenizer(V1, "core")).add(["the", "myocarditis", "myocarditis"])
    assert edit.report().made == ("▁myoc", "▁myocard", "▁myocarditis")
    assert "1 piece existed already: ▁the" in edit.steps[0].notes
    again = edit.add(["myocarditis"])
    assert len(again.tokenizer) == len(edit.tokenizer)


def test_a_piece_that_a_rule_makes_can_be_added_although_another_rule_rewrites_it() -> None:
    rules = [("x", "y"), ("y", "z")]
    tok = cpbpe.train(["low lower lowest"] * 9, vocab_size=270, normalization_rules=rules).tokenizer
    assert cpbpe.edit(tok).add(pieces=["y"]).tokenizer.encode_pieces("lowx") == ["▁low", "y"]
    learned = cpbpe.edit(tok).from_corpus(["x x low x"] * 5, 1)
    assert learned.report().made == ("y",)
    with pytest.raises(ModelError, match="rewrites it to 'y' first"):
        cpbpe.edit(tok).add(pieces=["x"])


def test_what_cannot_be_learned_is_noted_beside_what_was() -> None:
    # (Training does not protect "x" from the rules, but encoding does.)
    options: dict[str, Any] = {"normalization_rules": [("x", "y"), ("y", "z")], "user_defined_symbols": ["x"]}
    tok = cpbpe.train(["low lower lowest"] * 9, vocab_size=270, **options).tokenizer
    edit = cpbpe.edit(tok).from_corpus(["x xa x a ba"] * 5, 3)
    learned, left_out = edit.steps[0].notes
    assert edit.report().made == ("a", "b")
    assert learned.startswith("0 merges and 3 characters")
    assert left_out.startswith("left out: 1 piece of these")


def test_an_added_token_becomes_a_piece_that_can_be_special() -> None:
    tok = trained(700).tokenizer.with_special_tokens(["<x>", "<y>"])
    edit = cpbpe.edit(tok).add(["<y>"], kind="control").set_special(pad="<y>")
    assert edit.tokenizer.pad_id == tok.vocab["<y>"] == len(tok) - 1
    assert len(edit.tokenizer) == len(tok)
    (note,) = edit.steps[0].notes
    assert note == "2 added tokens became pieces of type CONTROL, with the ids that they had"
    with pytest.raises(ModelError, match="'<z>' is already an added token"):
        cpbpe.edit(tok.with_special_tokens({"<z>": 900})).add(["<z>"], kind="control")


def test_merging_wakes_unused_pieces_as_adding_does() -> None:
    tok = cpbpe.train(["low lower lowest"] * 9, vocab_size=270).tokenizer
    other = cpbpe.train(["wlowere lowere"] * 20, vocab_size=275).tokenizer
    unused = cpbpe.edit(tok).add(["lowerest"], between="unused")
    edit = unused.merge(other)
    assert "UNUSED before, tokens now: ▁lowere" in edit.steps[-1].notes
    assert edit.tokenizer.encode_pieces("lowere") == ["▁lowere"] != unused.tokenizer.encode_pieces("lowere")


def test_new_names_and_sizes_are_checked() -> None:
    edit = cpbpe.edit(trained(700).tokenizer)
    with pytest.raises(TypeError, match="a new name is a str, not int"):
        edit.rename({"<s>": 5})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="size must be an integer, not str"):
        edit.prune(["low"], size="5")  # type: ignore[arg-type]


@pytest.mark.parametrize("between", ["normal", "unused"])
def test_a_word_on_the_way_to_another_one_did_not_exist_already(between: Any) -> None:
    edit = cpbpe.edit(tokenizer(V1, "core")).add(["myocarditis", "myocard"], between=between)
    assert edit.tokenizer.encode_pieces("myocard myocardial") == ["▁myocard", "▁myocard", "ial"]
    assert edit.steps[0].notes == ()


def test_words_of_scripts_without_spaces_are_pointed_out() -> None:
    edit = cpbpe.edit(tokenizer(V1, "core")).add(["機械学習", "machine"])
    assert "give them as pieces" in edit.steps[0].notes[0]
    edit = cpbpe.edit(tokenizer(V1, "core")).add(pieces=["機械学習"])
    assert edit.tokenizer.encode_pieces("の機械学習") == ["▁", "の", "機械学習"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": "word"}, "list of texts"),
        ({"words": [""]}, "empty"),
        ({"words": ["  "]}, "empty"),
        ({"pieces": [b"a\0b"]}, "NUL"),
        ({"pieces": [b"\xff\xfe"]}, "not UTF-8"),
        ({"pieces": ["<s>"]}, "already piece 1, of type CONTROL"),
        ({"pieces": ["<0x41>"]}, "of type BYTE"),
        ({"words": ["a"], "kind": "byte"}, "kind must be"),
        ({"words": ["a"], "between": "nothing"}, "between must be"),
        ({"words": ["a"], "between": "unused", "kind": "control"}, "leave out between="),
        ({"pieces": ["the"], "kind": "user_defined"}, "already piece"),
        ({"words": [b"a"]}, "a word is a str"),
    ],
)
def test_what_cannot_be_added(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        cpbpe.edit(tokenizer(V1, "core")).add(**arguments)


def test_what_cannot_be_added_to_byte_level_models() -> None:
    edit = cpbpe.edit(byte_level())
    with pytest.raises(ModelError, match="the pattern cuts it into 'word', ' two'"):
        edit.add(pieces=["word two"])
    with pytest.raises(ModelError, match="the pattern always cuts between its characters"):
        edit.add(pieces=[b"word tw\xc3"])
    for arguments in ({"kind": "user_defined"}, {"between": "unused"}):
        with pytest.raises(ModelError, match="a byte-level model has no pieces"):
            edit.add(["word"], **arguments)  # type: ignore[arg-type]


def test_a_word_with_a_user_defined_piece_in_it_is_refused() -> None:
    tok = cpbpe.edit(tokenizer(V1, "core")).add(pieces=["ﷺﷺ"], kind="user_defined").tokenizer
    with pytest.raises(ModelError, match="in it is found before anything merges"):
        cpbpe.edit(tok).add(["aﷺﷺb"])


def test_added_tokens_keep_their_ids_and_what_they_do() -> None:
    tok = tokenizer(V1, "core").with_special_tokens({"<|a|>": 32000, "<|b|>": 32002, "<|c|>": 40000})
    edit = cpbpe.edit(tok).add(["myocarditis"])
    new = edit.tokenizer
    choices: tuple[dict[str, Any], ...] = ({}, {"allowed_special": "all"})
    for options in choices:
        text = "x<|a|>y<|b|>z<|c|>"
        assert tok.encode(text, **options) == new.encode(text, **options)
        ids = tok.encode(text, **options)
        for skip in (None, True, False):
            assert tok.decode(ids, skip_special_tokens=skip) == new.decode(ids, skip_special_tokens=skip)
    assert [id for id in range(32000, 32005) if new.id_to_piece(id).startswith("▁")] == [32001, 32003, 32004]
    assert (edit.ids[:32001] == np.arange(32001)).all()
    assert edit.ids[32002] == 32002
    assert edit.ids[40000] == 40000


# --- Continuing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "few", "many"), [("llama2", 700, 900), ("sentencepiece", 500, 700), ("gpt4", 400, 650)]
)
def test_learning_goes_on_as_if_it_had_never_stopped(preset: str, few: int, many: int) -> None:
    short, long = (trained(size, preset).tokenizer for size in (few, many))
    edit = cpbpe.edit(short).from_corpus(corpus.lines(), many - few)
    assert len(edit.tokenizer) == len(long)
    chance = random.Random(5)
    for text in corpus.lines() + ["".join(chance.choices(corpus.lines(50), k=3)) for _ in range(50)]:
        assert sides(edit.tokenizer, text) == sides(long, text)
    assert set(edit.tokenizer.get_vocab()) == set(long.get_vocab())


def test_both_engines_continue_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus.lines(400, seed=3)
    for preset in ("llama2", "gpt4"):
        made = []
        for engine in ("core", "reference"):
            monkeypatch.setenv("CPBPE_ENGINE", engine)
            edit = cpbpe.edit(trained(700, preset).tokenizer).from_corpus(texts, 80)
            made.append((edit.report().made, edit.steps[0].notes))
        assert made[0] == made[1]


def test_new_characters_get_pieces_and_old_texts_keep_theirs() -> None:
    tok = tokenizer(V1, "core")
    hindi = ["नमस्ते दुनिया, यह एक परीक्षण है।", "हिन्दी में लिखा हुआ एक और वाक्य।", "खग्रास झंझट ढक्कन"] * 20
    edit = cpbpe.edit(tok).from_corpus(hindi, 60)
    before, after = (sum(map(len, t.encode_batch(hindi))) for t in (tok, edit.tokenizer))
    assert after < before / 2
    for text in filter(str.isascii, corpus.lines(500)):
        assert tok.encode(text) == edit.tokenizer.encode(text)
    with pytest.raises(TrainingError, match="new pieces, not 5000"):
        cpbpe.edit(tok).from_corpus(hindi, 5000)
    with pytest.raises(TrainingError, match="nothing to learn from"):
        cpbpe.edit(tok).from_corpus([""], 5)
    with pytest.raises(TypeError, match="no option 'split_by_moon'"):
        cpbpe.edit(tok).from_corpus(hindi, 5, split_by_moon=True)
    for number in (0, True, "5", -1):
        with pytest.raises(ValueError, match="number must be"):
            cpbpe.edit(tok).from_corpus(hindi, number)  # type: ignore[arg-type]


def test_what_pieces_may_be_is_as_the_model_says_unless_it_is_given() -> None:
    tok = trained(800).tokenizer
    lines = [f"zorblax quibbet {number}" for number in range(10, 60)]
    edit = cpbpe.edit(tok).from_corpus(lines, 10)
    made = edit.report().made
    assert not any(c.isdigit() or c == "▁" for piece in made for c in piece[1:])
    wide = cpbpe.edit(tok).from_corpus(lines, 12, split_by_whitespace=False)
    assert any("▁" in piece[1:] for piece in wide.report().made)
    found = edit.report(lines).corpus
    assert found is not None
    assert found.new_tokens < found.old_tokens


# --- Shrinking ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "sizes"), [("llama2", (700, 900)), ("gpt4", (300, 650)), ("sentencepiece", (500, 700))]
)
def test_truncating_is_training_to_that_size(preset: str, sizes: tuple[int, int]) -> None:
    short, long = (trained(size, preset).tokenizer for size in sizes)
    edit = cpbpe.edit(long).truncate(sizes[0])
    assert edit.tokenizer.to_bytes() == short.to_bytes()
    for text in corpus.lines(300):
        assert {*sides(long, text)} <= {*sides(edit.tokenizer, text)}


@quick(4, 30)
@given(st.data())
def test_pieces_made_unused_are_split_into_their_halves(data: st.DataObject) -> None:
    tok = trained(800).tokenizer
    chance = random.Random(data.draw(st.integers(0, 10**6)))
    pieces = [id for id, type in enumerate(tok.spec.pieces.types) if type == 1 and len(tok.vocab[id]) > 1]
    gone = [*chance.sample(pieces, 30), tok.vocab["▁the"], tok.vocab["er"]]
    edit = cpbpe.edit(tok).remove(gone, leave="unused")
    assert (edit.ids == np.arange(len(tok))).all()
    for text in chance.sample(corpus.lines(), 40):
        before, after = tok.encode(text), edit.tokenizer.encode(text)
        assert not {*gone} & {*after}
        if not {*gone} & {*before}:
            assert before == after
        assert {*sides(tok, text)} <= {*sides(edit.tokenizer, text)}


def test_texts_whose_tokens_are_kept_stay_as_they_are() -> None:
    for tok in (tokenizer(V1, "core"), byte_level(), trained(800).tokenizer):
        texts = [*corpus.lines(300), WORDS.decode()]
        some, others = texts[::2], texts[1::2]
        edit = cpbpe.edit(tok).prune(some)
        ids = edit.ids
        for text in texts:
            before = tok.encode(text)
            if (ids[before] >= 0).all():
                assert ids[before].tolist() == edit.tokenizer.encode(text)
            assert edit.tokenizer.decode(edit.tokenizer.encode(text)) == tok.decode(before)
        assert edit.report(some).corpus.different == 0  # type: ignore[union-attr]
        assert len(edit.tokenizer) < len(tok) or tok is byte_level()
        keep = ["the"] if tok.vocab.get("the") else []
        smaller = cpbpe.edit(tok).prune(some, size=len(edit.tokenizer) - 20, keep=keep)
        assert len(edit.tokenizer) - 40 <= len(smaller.tokenizer) <= len(edit.tokenizer) - 20
        back = smaller.tokenizer.decode(smaller.tokenizer.encode(others[0]))
        assert back == tok.decode(tok.encode(others[0]))


def test_dead_pieces_go_without_a_trace() -> None:
    # (Nothing makes "axb".)
    tok = small({"bc": -1, "ab": -2, "abc": -3, "axb": -4, "ca": -5, "cab": -6})
    edit = cpbpe.edit(tok).prune()
    assert edit.report().lost == ("axb",)
    for text in all_texts("abc x", 6):
        assert edit.ids[tok.encode(text)].tolist() == edit.tokenizer.encode(text)


def test_what_is_made_from_a_removed_piece_goes_too() -> None:
    tok = trained(800).tokenizer
    piece = next(p.text for p in tok.spec.pieces if p.type == PieceType.NORMAL and len(p.text) == 2)
    edit = cpbpe.edit(tok).remove([piece])
    report = edit.report()
    assert piece.decode() in report.lost
    assert not report.unreachable
    for text in corpus.lines(300):
        before = tok.encode(text)
        if (edit.ids[before] >= 0).all():
            assert edit.ids[before].tolist() == edit.tokenizer.encode(text)


def test_what_cannot_be_removed() -> None:
    edit = cpbpe.edit(tokenizer(V1, "core"))
    for piece, message in (("<s>", "type CONTROL"), (3, "type BYTE"), ("<unk>", "type UNKNOWN")):
        with pytest.raises(ModelError, match=message):
            edit.remove([piece])
    with pytest.raises(ModelError, match="not a piece"):
        edit.remove(["no such piece"])
    with pytest.raises(TypeError, match="pieces is a list"):
        edit.remove("the")
    with pytest.raises(ModelError, match="text would be lost"):
        cpbpe.edit(byte_level()).remove([b"a"])
    with pytest.raises(ModelError, match="added token"):
        cpbpe.edit(tokenizer(V1, "core").with_special_tokens(["<|a|>"])).remove(["<|a|>"])
    for size in (3, 50_000, "9", True):
        with pytest.raises(ValueError, match="size must be"):
            edit.truncate(size)  # type: ignore[arg-type]
    for texts, options in ((None, {"size": 500}), (None, {"keep": ["a"]}), (["a"], {"size": 5})):
        with pytest.raises(ValueError, match="always stay" if texts else "decided by a corpus"):
            edit.prune(texts, **options)


# --- Merging --------------------------------------------------------------------------------------


def test_another_vocabulary_goes_below() -> None:
    tok = tokenizer(V1, "core")
    lines = ["北京是中华人民共和国的首都", "机器学习改变了世界", "我们在学习机器翻译"] * 30
    other = cpbpe.train(lines, vocab_size=300, hard_vocab_limit=False).tokenizer
    edit = cpbpe.edit(tok).merge(other)
    assert {*other.get_vocab()} <= {*edit.tokenizer.get_vocab()}
    for text in corpus.lines(300):
        assert tok.encode(text) == edit.tokenizer.encode(text) or not text.isascii()
    assert sum(edit.tokenizer.count_batch(lines)) < sum(tok.count_batch(lines)) * 0.6
    safe = cpbpe.edit(tok).merge(other, only="new_characters")
    known = {piece for piece in tok.get_vocab() if len(piece) == 1}
    assert all(any(c not in known for c in piece) for piece in safe.report().made)
    assert "with a character that had no piece" in safe.steps[0].promise
    han = cpbpe.edit(tok).merge(other, only="Han")
    assert len(safe.tokenizer) < len(han.tokenizer) <= len(edit.tokenizer)
    assert han.report(corpus.lines(300)).corpus.different == 0  # type: ignore[union-attr]
    few = cpbpe.edit(tok).merge(other, only=lambda piece: "学" in piece)
    assert few.report().made
    assert all("学" in piece for piece in few.report().made)
    with pytest.raises(ValueError, match="only must be"):
        cpbpe.edit(tok).merge(other, only="Klingon")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=edit.tokenizer.to_bytes())
    texts = [*lines[:3], *corpus.lines(50)]
    assert theirs.encode(texts) == edit.tokenizer.encode_batch(texts)
    with pytest.raises(ModelError, match="byte-level"):
        cpbpe.edit(tok).merge(byte_level())


# --- Ids, names and settings ----------------------------------------------------------------------


def test_ids_can_be_exchanged() -> None:
    tok = trained(700).tokenizer
    order = list(range(len(tok)))
    random.Random(1).shuffle(order)
    edit = cpbpe.edit(tok).reorder(order)
    assert edit.origins.tolist() == order
    assert all(edit.ids[tok.encode(t)].tolist() == edit.tokenizer.encode(t) for t in corpus.lines(100))
    with pytest.raises(ValueError, match="each once"):
        cpbpe.edit(tok).reorder([0, 0, 1])


def test_names_roles_and_rules() -> None:
    tok = trained(700).tokenizer
    edit = cpbpe.edit(tok).rename({"<s>": "<|begin|>"}).add(["<pad>"], kind="control")
    edit = edit.set_special(pad="<pad>")
    assert edit.tokenizer.bos_id == 1
    assert edit.tokenizer.pad_id == len(tok)
    assert edit.tokenizer.vocab["<|begin|>"] == 1
    plain = cpbpe.edit(tok).set_normalizer("nfkc", add_dummy_prefix=False)
    assert plain.tokenizer.normalize("ﬁ") == "fi"
    assert tok.normalize("ﬁ") == "▁ﬁ"
    again = cpbpe.edit(tok)
    with pytest.raises(ModelError, match="its name is its text"):
        again.rename({"▁": "x"})
    with pytest.raises(ModelError, match="it must be CONTROL"):
        again.set_special(eos="e")
    with pytest.raises(TypeError, match="takes True or False"):
        again.set_normalizer(add_prefix=True)
    with pytest.raises(ValueError, match="nfkd"):
        again.set_normalizer("nfkd")
    with pytest.raises(ModelError, match="only add_dummy_prefix can be changed"):
        cpbpe.edit(byte_level()).set_normalizer("nfkc")


# --- Reports and embeddings -----------------------------------------------------------------------


def test_ids_and_origins_say_the_same() -> None:
    tok = trained(800).tokenizer
    edit = cpbpe.edit(tok).truncate(750).add(["zebra"])
    edit = edit.prune(corpus.lines(200)).from_corpus(corpus.lines(), 20)
    ids, origins = edit.ids, edit.origins
    assert len(ids) == len(tok)
    assert len(origins) == len(edit.tokenizer)
    for old, new in enumerate(ids.tolist()):
        assert new < 0 or (origins[new] == old and tok.id_to_piece(old) == edit.tokenizer.id_to_piece(new))
    assert sorted(origins[origins >= 0]) == sorted(np.flatnonzero(ids >= 0))
    assert all(edit.tokenizer.vocab[piece] in np.flatnonzero(origins < 0) for piece in edit.report().made)


def test_the_report_says_what_matters_first() -> None:
    edit = cpbpe.edit(tokenizer(V1, "core")).add(["myocarditis"])
    report = edit.report(["acute myocarditis", "a cold"])
    assert report.corpus is not None
    assert report.corpus.different == 1
    text = str(report)
    assert "every id means the same as before" in text
    assert "same tokens as before" in text
    assert json.loads(report.to_json())["made"] == ["▁myoc", "▁myocard", "▁myocarditis"]
    assert "▁myocarditis" in report.html()
    assert repr(report) == "<cpbpe.EditReport: 3 new, 0 gone, 0 unreachable>"
    assert repr(edit) == "<cpbpe.Edit: add; 32000 ids → 32003>"
    assert cpbpe.edit(tokenizer(V1, "core")).report().steps == ()
    with pytest.raises(AttributeError, match="does not change"):
        edit.old = edit.tokenizer
    with pytest.raises(TypeError, match="path or a Tokenizer"):
        cpbpe.edit(5)  # type: ignore[arg-type]


def test_rows_follow_their_ids() -> None:
    tok = trained(700).tokenizer
    matrix = np.random.default_rng(1).normal(size=(710, 8)).astype(np.float16)
    edit = cpbpe.edit(tok).truncate(680).add(["zebra"])
    rows = edit.embeddings(matrix, multiple=64)
    assert rows.dtype == np.float16
    assert len(rows) % 64 == 0
    assert not rows[len(edit.tokenizer) :].any()
    for old, new in enumerate(edit.ids.tolist()):
        assert new < 0 or (rows[new] == matrix[old]).all()
    new = edit.tokenizer.vocab["▁zebra"]
    parts = tok.facts.engine.variant(raw=True).encode("▁zebra")
    assert np.allclose(rows[new], matrix[parts].mean(0), atol=1e-2)
    assert not edit.embeddings(matrix, "zeros")[new].any()
    assert (edit.embeddings(matrix, lambda rows: rows[0])[new] == matrix[parts[0]]).all()
    for arguments, message in (
        ((matrix[:5],), "a row for each"),
        ((matrix, "median"), "rule must be"),
        ((matrix.tolist(),), "is a matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            edit.embeddings(*arguments)
    with pytest.raises(ValueError, match="multiple must be"):
        edit.embeddings(matrix, multiple=0)


def test_byte_level_models_are_written_for_their_libraries(tmp_path: Path) -> None:
    tok = trained(600, "gpt4").tokenizer
    edit: Edit = cpbpe.edit(tok).add(["myocarditis", "ferritin"]).from_corpus(["zebra zebras"] * 9, 3)
    edit.tokenizer.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*corpus.lines(100), "acute myocarditis and ferritin", "zebras"]:
        assert theirs.encode(text, add_special_tokens=False).ids == edit.tokenizer.encode(text)
    edit.tokenizer.save(tmp_path / "new.tiktoken")
    lines = (tmp_path / "new.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines}
    pattern, special = edit.tokenizer.spec.patterns[0], dict(edit.tokenizer.vocab.special_tokens)
    encoding = tiktoken.Encoding("new", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    for text in [*corpus.lines(100), "acute myocarditis and ferritin", "zebras"]:
        assert encoding.encode_ordinary(text) == edit.tokenizer.encode(text)
    scores = edit.tokenizer.spec.pieces.numbers()
    normal = [r for r, t in zip(scores, edit.tokenizer.spec.pieces.types, strict=True) if t == 1]
    assert all(a > b for a, b in pairwise(normal))


def test_what_cannot_be_added_can_be_left_out() -> None:
    edit = cpbpe.edit(byte_level())
    with pytest.raises(ModelError, match=r"' Covid19' can never be.*; 1 other cannot be.*; skip=True"):
        edit.add(["Covid19", "myocarditis", "H2O"])
    done = edit.add(["Covid19", "myocarditis", "H2O", " ", ""], skip=True)
    assert done.tokenizer.encode_pieces(" myocarditis") == [" myocarditis"]
    left_out = [note.partition(" can")[0] for note in done.steps[0].notes]
    assert left_out == ["left out: ' Covid19'", "left out: ' H2O'"]


def saved(path: Path, tensors: dict[str, tuple[str, np.ndarray[Any, Any]]]) -> None:
    """A .safetensors file."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (kind, array) in tensors.items():
        offsets = [place, place + array.nbytes]
        head[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(head).encode()
    data = b"".join(array.tobytes() for _, array in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def tensor(path: Path, name: str, dtype: str) -> np.ndarray[Any, Any]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])[name]
    first, last = entry["data_offsets"]
    return np.frombuffer(data[8 + length :][first:last], dtype).reshape(entry["shape"])


def test_tables_in_files_follow_their_ids(tmp_path: Path) -> None:
    tok = trained(700).tokenizer
    chance = np.random.default_rng(2)
    whole = chance.normal(size=(704, 8)).astype("<f4")
    halves = (whole.view(np.uint32) >> 16).astype("<u2")
    norm, deep = chance.normal(size=8).astype("<f4"), chance.normal(size=(8, 8)).astype("<f4")
    old = tmp_path / "model.safetensors"
    tensors = {"model.norm.weight": ("F32", norm), "model.embed_tokens.weight": ("BF16", halves)}
    saved(old, {**tensors, "lm_head.weight": ("F32", whole), "model.layers.0.weight": ("F32", deep)})
    edit = cpbpe.edit(tok).truncate(690).add(["zebra", "giraffe"])
    new = tmp_path / "new.safetensors"
    names = edit.resize(old, new, multiple=8)
    assert set(names) == {"model.embed_tokens.weight", "lm_head.weight"}
    assert (tensor(new, "model.norm.weight", "<f4") == norm).all()
    assert (tensor(new, "model.layers.0.weight", "<f4") == deep).all()
    assert (tensor(new, "lm_head.weight", "<f4") == edit.embeddings(whole, multiple=8)).all()
    rows, ids = tensor(new, "model.embed_tokens.weight", "<u2"), edit.ids
    assert (rows[ids[ids >= 0]] == halves[:700][ids >= 0]).all()
    zebra = edit.tokenizer.vocab["▁zebra"]
    mean = edit.embeddings((halves.astype(np.uint32) << 16).view(np.float32))[zebra]
    assert np.allclose((rows[zebra].astype(np.uint32) << 16).view(np.float32), mean, rtol=0.01)
    assert edit.resize(old, new, tensors=["lm_head.weight"]) == ("lm_head.weight",)
    with pytest.raises(ValueError, match="there is no tensor 'x'"):
        edit.resize(old, new, tensors=["x"])
    with pytest.raises(TypeError, match=r"write \['lm_head.weight'\]"):
        edit.resize(old, new, tensors="lm_head.weight")
    saved(old, {"model.norm.weight": ("F32", norm)})
    with pytest.raises(ValueError, match="no tensor with a usual name has 700 rows"):
        edit.resize(old, new)
    old.write_bytes(b"no such file")
    with pytest.raises(ValueError, match="neither a"):
        edit.resize(old, new)


# --- Corners, each of which was wrong once --------------------------------------------------------


def mergeable(
    *pieces: str | tuple[str, float, PieceType], fallback: bool = False, **rules: bool
) -> Tokenizer:
    """A small model; pieces without a score have the scores 0, -1, -2 and so on."""
    rows = [Piece(b"<unk>", 0, PieceType.UNKNOWN), Piece(b"<s>", 0, PieceType.CONTROL)]
    rows += [Piece(b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256 * fallback)]
    for place, piece in enumerate(pieces):
        text, score, type = piece if isinstance(piece, tuple) else (piece, -float(place), PieceType.NORMAL)
        rows.append(Piece(text.encode(), score, type))
    normalizer = replace(NormalizerSpec("identity", add_dummy_prefix=False), **rules)  # type: ignore[arg-type]
    return Tokenizer.from_spec(ModelSpec(Pieces.of(rows), normalizer, byte_fallback=fallback))


def all_texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(part) for size in range(1, longest + 1) for part in product(alphabet, repeat=size)]


UNUSED = PieceType.UNUSED


def test_removing_keeps_the_order_of_unused_pieces() -> None:
    tok = mergeable("ab", "bc", "xy", *"abcdxy", ("cd", -9, UNUSED))
    edit = cpbpe.edit(tok).remove(["xy"])
    for text in all_texts("abcd", 5):
        assert edit.ids[tok.encode(text)].tolist() == edit.tokenizer.encode(text)


def test_unused_pieces_stay_because_they_are_in_the_way_of_others() -> None:
    tok = mergeable(("ab", 1, UNUSED), "bc", *"abc")
    with pytest.raises(ModelError, match="UNUSED"):
        cpbpe.edit(tok).remove(["ab"])
    assert cpbpe.edit(tok).prune(["abc", "bc"]).tokenizer.vocab["ab"] is not None
    assert "ab" not in cpbpe.edit(mergeable("bc", *"abc", ("ab", -9, UNUSED))).truncate(6).tokenizer.vocab


def test_a_cut_between_equal_scores_promises_less() -> None:
    tok = mergeable(("bc", -1, PieceType.NORMAL), ("ab", -1, PieceType.NORMAL), *"abc")
    size = len(tok)
    assert "same score" in cpbpe.edit(tok).truncate(size - 1).steps[0].promise
    assert "same score" not in cpbpe.edit(tok).truncate(size - 2).steps[0].promise


def test_runs_of_unknown_characters_are_told_apart() -> None:
    tok = mergeable("ab", *"abcdxy")
    edit = cpbpe.edit(tok).add(pieces=["é"])
    assert tok.encode("éz") != edit.tokenizer.encode("éz")
    assert "a run of unknown characters" in edit.steps[0].promise
    assert "unknown" not in cpbpe.edit(mergeable(*"ab", fallback=True)).add(pieces=["é"]).steps[0].promise


def test_merging_only_some_adds_nothing_that_is_never_made() -> None:
    tok = mergeable("ab", *"abcdxy")
    other = mergeable("xy", "xyc", "xycd", "xycda", *"abcdxy")
    edit = cpbpe.edit(tok).merge(other, only=lambda piece: len(piece) >= 4)
    assert edit.report().made == ()
    assert "cannot be made here" in edit.steps[0].notes[0]
    chinese = cpbpe.train(["学习机器学习"] * 9, vocab_size=270, preset="gpt4").tokenizer
    han = cpbpe.edit(byte_level()).merge(chinese, only="Han")
    reach = han.tokenizer.facts.witnesses.reach()
    new = np.flatnonzero(han.origins < 0).tolist()
    assert not any(reason.decided for id, reason in reach.reasons.items() if id in new)
    assert any("学" in piece for piece in han.report().made)


def test_rows_of_pieces_that_are_not_utf8() -> None:
    tok = byte_level()
    edit = cpbpe.edit(tok).add(pieces=["学".encode()[:2]])
    matrix = np.arange(len(tok), dtype=float)[:, None]
    (new,) = np.flatnonzero(edit.origins < 0)
    parts = [tok.spec.ids[bytes([byte])] for byte in "学".encode()[:2]]
    assert edit.embeddings(matrix)[new] == np.mean(parts)


def test_pieces_that_the_model_rewrites_do_not_come_along() -> None:
    plain = cpbpe.train(corpus.lines(300), vocab_size=700, preset="sentencepiece").tokenizer
    wide = mergeable("ＡＢ", *"ＡＢ")
    edit = cpbpe.edit(plain).merge(wide)
    assert edit.report().made == ()
    with pytest.raises(ModelError, match="makes one space of several first"):
        cpbpe.edit(plain).add(pieces=["▁▁"])


def test_an_empty_corpus_does_not_remove_everything() -> None:
    for texts in ([], [""], iter(())):
        with pytest.raises(ValueError, match="the corpus has no tokens"):
            cpbpe.edit(trained(700).tokenizer).prune(texts)
    with_token = trained(700).tokenizer.with_special_tokens(["<|a|>"])
    assert cpbpe.edit(with_token).prune(corpus.lines(20), keep=["<|a|>"]).tokenizer.vocab["<|a|>"] is not None


def test_names_can_be_exchanged_and_everything_follows() -> None:
    tok = trained(700).tokenizer
    edit = cpbpe.edit(tok).rename({"<s>": "</s>", "</s>": "<s>"})
    assert (edit.tokenizer.bos_id, edit.tokenizer.eos_id) == (tok.bos_id, tok.eos_id)
    assert edit.tokenizer.vocab["<s>"] == 2
    bound = cpbpe.edit(tok.using(allowed_special={"</s>"}, reverse=True)).rename({"</s>": "<end>"}).tokenizer
    assert bound.bound_options == {"allowed_special": ("<end>",), "reverse": True}
    real = cpbpe.edit(tokenizer(V1, "core")).rename({"<s>": "<|begin|>"}).tokenizer
    assert real.settings.trainer.get("bos_id", 1) == 1
    assert real.bos_id == 1
    with pytest.raises(ModelError, match="added token"):
        cpbpe.edit(tok.with_special_tokens(["<|a|>"])).set_special(pad="<|a|>")
    with pytest.raises(ModelError, match="added token"):
        cpbpe.edit(tok.with_special_tokens(["<|a|>"])).add(pieces=["<|a|>"])
    told = cpbpe.edit(tok.with_special_tokens(["<|a|>"])).add(["zebra"]).steps[0].notes
    assert told == ("1 added token became pieces of type CONTROL, with the ids that they had",)


def test_a_dead_piece_that_would_wake_is_refused() -> None:
    tok = mergeable("bc", "abcd", *"abcdxy")
    with pytest.raises(ModelError, match="nothing makes the piece 'abcd' today"):
        cpbpe.edit(tok).add(pieces=["abcx"], between="unused")
    with pytest.raises(ModelError, match="too many UNUSED pieces"):
        cpbpe.edit(tokenizer(V1, "core")).add(["qzxj" * 60], between="unused")
    with pytest.raises(ModelError, match="one character"):
        cpbpe.edit(trained(700).tokenizer).remove(["a"], leave="unused")


def test_what_becomes_unreachable_is_told_of_every_step() -> None:
    tok = mergeable("ab", "abc", *"abc")
    assert cpbpe.edit(tok).add(pieces=["bc"], kind="user_defined").report().unreachable == ("abc",)


def test_an_edit_can_be_pickled_and_an_unused_piece_used_again() -> None:
    edit = cpbpe.edit(trained(700).tokenizer).add(["zebra"], between="unused")
    again = pickle.loads(pickle.dumps(edit))
    assert (again.tokenizer, again.steps) == (edit.tokenizer, edit.steps)
    assert (again.ids == edit.ids).all()
    pieces = edit.tokenizer.spec.pieces
    piece = pieces.texts[pieces.types.index(UNUSED)]
    used = edit.add(pieces=[piece]).tokenizer
    assert used.spec.pieces.types[used.vocab[piece.decode()]] == PieceType.NORMAL
    assert edit.add(["<a b>"], kind="control").tokenizer.vocab["<a b>"] == len(edit.tokenizer)
    with pytest.raises(TypeError, match="a piece is str or bytes"):
        edit.add(pieces=[5])  # type: ignore[list-item]


def test_what_a_model_rewrites_can_be_left_out_too() -> None:
    plain = cpbpe.train(corpus.lines(300), vocab_size=700, preset="sentencepiece").tokenizer
    edit = cpbpe.edit(plain).add(pieces=["ﬁ", "zebra"], skip=True)
    assert "rewrites it to 'fi'" in edit.steps[0].notes[0]
    assert edit.tokenizer.vocab["zebra"] is not None


def test_user_defined_pieces_are_found_before_rules_rewrite_them_but_after_spaces() -> None:
    tok = cpbpe.train(["fi"], vocab_size=9, preset="sentencepiece", user_defined_symbols=["@"]).tokenizer
    edit = cpbpe.edit(tok)
    for done in (edit.rename({"@": "ﬁ"}), edit.add(["ﬁ"], kind="user_defined")):
        theirs = sentencepiece.SentencePieceProcessor(model_proto=done.tokenizer.to_bytes())
        assert theirs.encode("ﬁf") == done.tokenizer.encode("ﬁf")
        assert done.tokenizer.encode_pieces("ﬁf") == ["▁", "ﬁ", "f"]
    with pytest.raises(ModelError, match="rewrites it to 'y▁z' first"):
        edit.rename({"@": "y z"})
    with pytest.raises(ModelError, match="rewrites it to 'y▁z' first"):
        edit.add(["y z"], kind="user_defined")


def test_the_piece_of_the_space_stays() -> None:
    edit = cpbpe.edit(mergeable("▁", *"abc", fallback=True))
    new = edit.prune(["abc"]).tokenizer
    assert new.decode(new.encode("a b")) == "a b"
    with pytest.raises(ModelError, match="text would be lost"):
        edit.remove(["▁"])


def test_promises_of_chosen_pieces_tell_of_unknown_characters_too() -> None:
    edit = cpbpe.edit(mergeable(*"ab")).merge(mergeable("机器", *"机器"), only="Han")
    assert "of the script Han" in edit.steps[0].promise
    assert "a run of unknown characters" in edit.steps[0].promise
    assert edit.report().unreachable == ()
