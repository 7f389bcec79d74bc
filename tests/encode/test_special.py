"""Special tokens: text never yields one without permission, and with it exactly those that were named."""

import pickle
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe import ModelError, Part, PieceType, Special, Tokenizer
from cpbpe.lazy import MAX_KEPT
from cpbpe.model.formats import model_pb2
from tests.support import budget, corpus, tiers, tokenizers, zoo
from tests.support.texts import SPECIALS, TextMaker, texts

ADDED = ("<|im_start|>", "<|im_end|>", "<|im", "<s><s>", "é✓", "▁<|im", " <sp> ", "a")

quick = budget.quick(10, least=20)


def tokenizer(name: str, engine: str, added: bool = True) -> Tokenizer:
    return tokenizers.tokenizer(name, engine, ADDED if added else ())


def by_hand(tok: Tokenizer, text: str, names: set[str], **options: Any) -> list[int]:
    """What encoding with `names` allowed means, in the simplest words: look at every place."""
    later = options.pop("prefix_after_special", True)
    ids: list[int] = []
    begin = at = 0

    def segment(end: int) -> None:
        chosen = options if begin == 0 or later else {**options, "prefix_space": False}
        ids.extend(tok.encode(text[begin:end], **chosen))

    while at < len(text):
        name = max((name for name in names if text.startswith(name, at)), key=len, default="")
        if name:
            segment(at)
            ids.append(tok.vocab.special_tokens[name])
            begin = at = at + len(name)
        else:
            at += 1
    segment(at)
    return ids


def awkward(tok: Tokenizer) -> st.SearchStrategy[str]:
    names = [*tok.vocab.special_tokens, *SPECIALS]
    halves = [name[:i] for name in names for i in (1, len(name) // 2, len(name) - 1)]
    return st.lists(
        st.one_of(st.sampled_from(names), st.sampled_from(halves), texts(SPECIALS)), max_size=8
    ).map("".join)


@tiers.engines
@tiers.models()
@quick
@given(data=st.data())
def test_only_what_is_named(name: str, engine: str, data: st.DataObject) -> None:
    tok = tokenizer(name, engine)
    text = data.draw(awkward(tok))
    special = set(tok.vocab.special_tokens.values())
    assert not special & set(tok.encode(text))
    assert tok.encode(text) == tokenizer(name, engine, added=False).encode(text)

    allowed = data.draw(st.sets(st.sampled_from(sorted(tok.vocab.special_tokens))))
    prefix = data.draw(st.sampled_from([None, True, False]))
    later = data.draw(st.booleans())
    ids = tok.encode(text, allowed_special=allowed, prefix_space=prefix, prefix_after_special=later)
    assert {id for id in ids if id in special} <= {tok.vocab.special_tokens[name] for name in allowed}
    assert ids == by_hand(tok, text, allowed, prefix_space=prefix, prefix_after_special=later)
    everything = tok.encode(text, allowed_special="all")
    assert everything == by_hand(tok, text, set(tok.vocab.special_tokens))


@tiers.engines
@tiers.models([*zoo.REAL[:1], "user-defined", "suffix", "defaults", "unused", "charsmap-broken"])
@quick
@given(data=st.data())
def test_every_way_of_encoding(name: str, engine: str, data: st.DataObject) -> None:
    """All ways find the same, in str and in bytes, alone and in a batch."""
    tok = tokenizer(name, engine)
    text, other = data.draw(awkward(tok)), data.draw(awkward(tok))
    options: dict[str, Any] = {
        "allowed_special": data.draw(st.sampled_from(["all", {"<|im", "<|im_end|>"}, frozenset(ADDED[:2])])),
        "prefix_space": data.draw(st.sampled_from([None, True, False])),
        "prefix_after_special": data.draw(st.booleans()),
    }
    ids = tok.encode(text, **options)
    assert tok.encode(text.encode(), **options) == ids
    assert tok.count(text, **options) == len(ids)
    assert tok.encode_array(text, threads=2, **options).tolist() == ids
    both = [ids, tok.encode(other, **options)]
    assert tok.encode_batch([text, other.encode()], **options) == both
    assert tok.encode_arrays([text, other], **options).tolist() == both
    assert tok.encode_batch([], **options) == tok.encode_arrays([], **options).tolist() == []
    reverse = tok.encode(text, reverse=True, **options)
    assert reverse == ids[::-1]

    found = tok.align(text, **options)
    assert found.ids == ids
    assert found.pieces == tok.encode_pieces(text, **options)
    names = {id: name for name, id in tok.vocab.special_tokens.items()}
    for id, piece, surface in zip(ids, found.pieces, found.surfaces, strict=True):
        if id in names:
            assert piece == surface == names[id]
    ends = [end for _, end in found.offsets]
    assert ends == sorted(ends)


def test_refused(engine: str) -> None:
    tok = tokenizer(zoo.REAL[0], engine)
    assert tok.encode("nothing", disallowed_special="raise") == tok.encode("nothing")
    for text, position in (("a<|im_end|>", 1), ("é<s></s><|im_end|>", 8), (b"\xc3\xa9<|im_end|>", 2)):
        with pytest.raises(
            ValueError, match=rf"'<\|im_end\|>' at position {position}\..*allowed_special=\{{'<"
        ):
            tok.encode(text, allowed_special={"<s>", "</s>"}, disallowed_special="raise")
        for method in (tok.encode_array, tok.encode_pieces, tok.align, tok.count):
            with pytest.raises(ValueError, match="disallowed_special"):
                method(text, disallowed_special={"<|im_end|>"})
        for batch in (tok.encode_batch, tok.encode_arrays, tok.align_batch):
            with pytest.raises(ValueError, match="disallowed_special"):
                batch(["fine", text], disallowed_special={"<|im_end|>"})
    # All but these.
    assert tok.encode("<s>", allowed_special="all", disallowed_special={"</s>"}) == [1]
    with pytest.raises(ValueError, match="special token '</s>'"):
        tok.encode("<s></s>", allowed_special="all", disallowed_special={"</s>"})
    # Only what is refused is refused, and a token inside of a longer one that is allowed is none.
    assert tok.encode("<|im_start|>", disallowed_special={"</s>"}) == tok.encode("<|im_start|>")
    assert tok.encode("<|im_end|>", allowed_special={"<|im_end|>"}, disallowed_special="raise") == [
        tok.vocab.special_tokens["<|im_end|>"]
    ]
    # A longer one that is refused is not taken for the shorter one.
    with pytest.raises(ValueError, match="im_start"):
        tok.encode("<|im_start|>", allowed_special={"<|im"}, disallowed_special="raise")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"allowed_special": "<s>"}, ValueError, "allowed_special must be 'all' or a set"),
        ({"allowed_special": {"<nope>"}}, ValueError, "'<nope>' is not a special token.*with_special_tokens"),
        ({"allowed_special": {"▁the"}}, ValueError, "piece .*, of type NORMAL"),
        ({"allowed_special": {"<unk>"}}, ValueError, "of type UNKNOWN"),
        ({"allowed_special": {"<0x0A>"}}, ValueError, "of type BYTE"),
        ({"allowed_special": {"\ud800"}}, ValueError, "not a special token"),
        ({"allowed_special": {1}}, TypeError, "must hold str, not int"),
        ({"allowed_special": 5}, ValueError, "allowed_special must be 'all' or a set"),
        ({"allowed_special": np.array(["<s>"])}, ValueError, "allowed_special must be 'all' or a set"),
        ({"allowed_special": b"<s>"}, ValueError, "allowed_special must be 'all' or a set"),
        ({"disallowed_special": "all"}, ValueError, "disallowed_special must be 'raise' or a set"),
        ({"disallowed_special": ["<nope>"]}, ValueError, "disallowed_special: '<nope>'"),
        ({"allowed_special": ["<s>"], "disallowed_special": ["<s>"]}, ValueError, "choose one"),
    ],
)
def test_wrong_choices(engine: str, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tokenizer(zoo.REAL[0], engine).encode("text", **options)


def test_permission_is_not_remembered(engine: str) -> None:
    """A set, or a view of one, may change between two calls."""
    tok = tokenizer(zoo.REAL[0], engine)
    names = {1: "<s>"}
    for allowed in (names.values(), set(names.values()), list(names.values())):
        assert tok.encode("<s></s>", allowed_special=allowed)[0] == 1
    view = names.values()
    assert tok.encode("<s></s>", allowed_special=view)[0] == 1
    names[1] = "</s>"
    assert tok.encode("<s></s>", allowed_special=view)[-1] == 2
    for length in range(100):  # more choices than are kept
        assert tok.encode("<s>", allowed_special=("<s>",) * (length + 1)) == [1]


@pytest.mark.slow
def test_threads_with_more_choices_than_are_kept(engine: str) -> None:
    """One thread makes room for a choice while others do the same."""
    tok = tokenizer(zoo.REAL[0], engine)
    choices = [frozenset(some) for some in combinations(tok.vocab.special_tokens, 3)][: 2 * MAX_KEPT]
    assert len(choices) > MAX_KEPT
    expected = {choice: tok.encode("<|im_start|>a<s>", allowed_special=choice) for choice in choices}

    def encode(first: int) -> None:
        for choice in (choices[first:] + choices[:first]) * 40:
            assert tok.encode("<|im_start|>a<s>", allowed_special=choice) == expected[choice]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(encode, range(0, 40, 5)))
    finally:
        sys.setswitchinterval(interval)


# --- Parts ----------------------------------------------------------------------------------------


def test_parts(engine: str) -> None:
    tok = tokenizer(zoo.REAL[0], engine)
    a, b = "<s>Hi </s>", "more"
    assert tok.encode_parts([Special("<s>"), a, 13, b]) == [1, *tok.encode(a), 13, *tok.encode(b)]
    assert tok.encode_parts((a,)) == tok.encode_parts([a]) == tok.encode(a)
    assert tok.encode_parts([]) == tok.encode_parts([""]) == []
    assert tok.encode_parts([b"Hi", Special("<|im_end|>")], add_bos=True, reverse=True) == [
        1,
        tok.vocab.special_tokens["<|im_end|>"],
        *tok.encode("Hi"),
    ]
    later = tok.encode_parts([a, Special("<s>"), b], prefix_after_special=False)
    assert later == [*tok.encode(a), 1, *tok.encode(b, prefix_space=False)]
    assert tok.encode_parts([a, b], prefix_space=False)[-1:] == tok.encode(b, prefix_space=False)
    # Only the text right after a special token counts as coming after one.
    lists: list[list[Part]] = [[a, b], ["", b], [13, b], [a, 13, b]]
    for parts in lists:
        expected = [
            id for part in parts for id in ([part] if isinstance(part, int) else tok.encode_parts([part]))
        ]
        assert tok.encode_parts(parts, prefix_after_special=False) == expected
    lists = [[1, b], ["x</s>", b], [Special("<s>"), "", b]]
    for parts in lists:
        found = tok.encode_parts(parts, prefix_after_special=False, allowed_special="all")
        assert found[-1:] == tok.encode(b, prefix_space=False)
    assert tok.encode_parts(["x<s>", 1], allowed_special={"<s>"}) == [*tok.encode("x"), 1, 1]
    with pytest.raises(ValueError, match="holds the special token '</s>'"):
        tok.encode_parts([a, 1], disallowed_special={"</s>"})
    with pytest.raises(ValueError, match=r"Special\(text='<none>'\) is not a special token"):
        tok.encode_parts([Special("<none>")])
    with pytest.raises(IndexError, match="outside the vocabulary"):
        tok.encode_parts(["a", 10**9])
    with pytest.raises(TypeError, match="not float; for several texts use encode_batch"):
        tok.encode_parts(["a", 1.5])  # type: ignore[list-item]
    for wrong in (1, b"<s>", ["a"]):
        with pytest.raises(TypeError, match="the text of a Special must be a str"):
            Special(wrong)  # type: ignore[arg-type]
    # Sampled as well, each text with a seed of its own; ids and Special tokens stay what they are.
    sampled = tok.encode_parts(["Seeds", 13, "Seeds", Special("<s>")], alpha=0.5, seed=3)
    assert sampled == tok.encode_parts(["Seeds", 13, "Seeds", Special("<s>")], alpha=0.5, seed=3)
    rows = [tok.encode_parts(["Seeds", 13, "Seeds"], alpha=0.5, seed=seed) for seed in range(9)]
    assert {tok.decode(row).replace("\n ", "\n") for row in rows} == {"Seeds\nSeeds"}
    assert any(row[: row.index(13)] != row[row.index(13) + 1 :] for row in rows)


# --- Adding tokens --------------------------------------------------------------------------------


def test_added_tokens_live_on(engine: str, tmp_path: Path) -> None:
    plain = tokenizer(zoo.REAL[0], engine, added=False)
    size = plain.vocab_size
    tok = plain.with_special_tokens({"<|a|>": size + 5, "<|b|>": size})
    assert (len(tok), tok.vocab_size, len(plain)) == (size + 6, size + 6, size)
    assert tok.piece_to_id("<|a|>") == size + 5
    assert tok.id_to_piece(size + 5) == "<|a|>"
    assert (tok.vocab.piece_type(size), tok.vocab.score(size)) == (PieceType.CONTROL, 0.0)
    more = tok.with_special_tokens(["<|c|>"])
    assert more.vocab.special_tokens["<|c|>"] == size + 6
    assert more.with_special_tokens([]) == more
    more.save(tmp_path / "more.model")
    for again in (
        cpbpe.load(tmp_path / "more.model"),
        pickle.loads(pickle.dumps(more)),
        Tokenizer.from_bytes(more.to_bytes()),
    ):
        assert again == more
        assert hash(again) == hash(more)
        assert dict(again.vocab.special_tokens) == dict(more.vocab.special_tokens)
        text = "<|a|>x<|c|>"
        assert again.encode(text, allowed_special="all") == [size + 5, *again.encode("x"), size + 6]
    assert more != tok != plain
    assert len({more.fingerprint, tok.fingerprint, plain.fingerprint}) == 3
    assert "2 added tokens" in repr(tok)
    for id in (size + 1, size + 4):
        for call in (tok.id_to_piece, tok.vocab.score, tok.vocab.piece_type, lambda id: tok.decode([1, id])):
            with pytest.raises(IndexError, match="not in use"):
                call(id)
    # sentencepiece reads the file, and passes over what it does not know.
    theirs = sentencepiece.SentencePieceProcessor(model_proto=more.to_bytes())
    assert theirs.vocab_size() == size
    assert theirs.encode("<|a|>") == more.encode("<|a|>")


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ("<|a|>", TypeError, "a list of str, or a dict"),
        (5, TypeError, "a list of str, or a dict"),
        ([b"<|a|>"], TypeError, "a special token must be a str, not bytes"),
        ([""], ValueError, "is empty"),
        (["\ud800"], ValueError, "lone surrogate"),
        (["<s>"], ValueError, "is already piece 1 of the model, of type CONTROL; it need not be added"),
        (["▁the"], ValueError, "of type NORMAL; choose another text"),
        (["<|a|>", "<|a|>"], ValueError, "already has the id 32000; leave it out"),
        ({"<|a|>", "<|b|>"}, TypeError, "not set: without an order, they would have different ids"),
        (["é" * 129], ValueError, "is longer than 256 bytes"),
        ({"<|a|>": 5}, ValueError, "cannot have the id 5: ids of the model's pieces are 0 to 31999"),
        ({"<|a|>": -1}, ValueError, "cannot have the id -1"),
        ({"<|a|>": 1 << 40}, ValueError, "cannot have the id"),
        ({"<|a|>": "x"}, TypeError, "the id of '<|a|>' must be an integer"),
        ({"<|a|>": 32000, "<|b|>": 32000}, ValueError, "which is that of '<|a|>'; 32001 is free"),
    ],
)
def test_wrong_tokens(engine: str, tokens: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        tokenizer(zoo.REAL[0], engine, added=False).with_special_tokens(tokens)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([(b"\xff", 32000)], "is not UTF-8"),
        ([(b"", 32000)], "is empty"),
        ([(b"<s>", 32000)], "is already piece 1 of the model"),
        ([(b"a|", 5)], "cannot have the id 5"),
        ([(b"a|", 2**32 - 1)], "cannot have the id"),
        ([(b"a|", 32000), (b"a|", 32001)], "occurs twice"),
        ([(b"a|", 32000), (b"b|", 32000)], "has the id 32000, and so has another"),
    ],
)
def test_files_with_wrong_tokens(engine: str, tokens: list[tuple[bytes, int]], message: str) -> None:
    proto = model_pb2.ModelProto()
    for text, id in tokens:
        token = model_pb2.AddedToken(text=text, id=id)
        proto.Extensions[model_pb2.added_tokens].append(token.SerializeToString())
    with pytest.raises(ModelError, match=message):
        Tokenizer.from_bytes(zoo.model(zoo.REAL[0]) + proto.SerializeToString())


# --- Decoding -------------------------------------------------------------------------------------


def test_shown_and_hidden(engine: str) -> None:
    tok = tokenizer(zoo.REAL[0], engine)
    user = tok.vocab.special_tokens["<|im_start|>"]
    ids = [1, user, *tok.encode("Hi there"), 2, *tok.encode("x")]
    assert tok.decode(ids) == "<|im_start|>Hi there x"
    assert tok.decode(ids, skip_special_tokens=True) == "Hi there x"
    assert tok.decode(ids, skip_special_tokens=False) == "<s><|im_start|>Hi there</s>x"
    kept = tok.decode(ids, skip_special_tokens=False, prefix_after_special=False)
    assert kept == "<s><|im_start|> Hi there</s> x"
    assert tok.decode(ids[2:4], keep_prefix_space=True) == " Hi there"
    assert tok.decode([], skip_special_tokens=False) == tok.decode([], keep_prefix_space=True) == ""
    for options in ({}, {"skip_special_tokens": True}, {"skip_special_tokens": False}):
        text = tok.decode(ids, **options)
        assert tok.decode_bytes(ids, **options) == text.encode()
        assert tok.decode_batch([ids, []], **options) == [text, ""]
    for again in (iter(ids), map(int, ids), (id for id in ids), np.array(ids)):
        assert tok.decode(again) == tok.decode(ids)
    assert tok.decode_bytes(iter(ids)) == tok.decode(ids).encode()
    assert tok.decode_batch([iter(ids), np.array(ids)]) == [tok.decode(ids)] * 2
    pieces = [tok.id_to_piece(id) for id in ids]
    assert tok.decode_pieces(pieces) == tok.decode(ids)
    with pytest.raises(IndexError, match="at position 1 of sequence 1"):
        tok.decode_batch([ids, [1, 10**7]])
    assert tok.decode(np.array(ids), skip_special_tokens=False) == tok.decode(ids, skip_special_tokens=False)
    with pytest.raises(IndexError, match="at position 1"):
        tok.decode([1, 10**7], skip_special_tokens=False)


# --- The search -----------------------------------------------------------------------------------


def test_thousands_of_tokens(engine: str) -> None:
    """Many keys with long beginnings in common, in a text that repeats them: nothing is quadratic."""
    plain = tokenizer(zoo.REAL[0], engine, added=False)
    rng = random.Random(1)
    keys = [f"<|extra_{i}|>" for i in range(3000)] + ["=" * length for length in range(20, 256, 3)]
    tok = plain.with_special_tokens(keys)
    maker = TextMaker(1, keys, corpus.lines())
    for _ in range(20):
        text = maker.text() + rng.choice(keys) + "<|extra_" + rng.choice(keys)
        assert tok.encode(text, allowed_special="all") == by_hand(tok, text, set(tok.vocab.special_tokens))
    text = "=" * 19 + "x" + "<|extra_" * 100
    assert tok.encode(text * 50, allowed_special="all") == plain.encode(text * 50)
