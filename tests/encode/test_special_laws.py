"""Special tokens, and ends, where text comes in parts or is cut: laws that hold for every text.

Streams give what `encode` gives for the whole text; `truncate` and `split` do what an oracle does that looks
at the whole text and tries one place after the other; and a batch gives what its texts give alone.
"""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from cpbpe import StreamEncoder, Tokenizer
from cpbpe.text.utf8 import is_inside
from cpbpe.tokenizer import splitting
from tests.encode.test_splitting import characters
from tests.support import budget, tiers, zoo
from tests.support.budget import SEED
from tests.support.texts import broken, texts
from tests.support.tokenizers import pieces_of, tokenizer

MODELS = ["llama", "defaults", "user-defined", "suffix", "unused-ambiguous", "charsmap-broken", "nmt_nfkc_cf"]
ADDED = ("<|a|>", "<|a|><|b|>", "<|a", "<|ab", "é✓", "▁<|", " <sp> ", "aa")
HALVES = [name[:i] for name in (*ADDED, "<s>", "</s>") for i in (1, len(name) // 2, len(name) - 1) if i]

quick = budget.quick(25, least=8)


def load(name: str, engine: str) -> Tokenizer:
    return tokenizer(name, engine, ADDED)


def some_text(data: st.DataObject, name: str) -> Any:
    """Text full of special tokens and their halves; str or bytes, valid or not."""
    pieces = pieces_of(name)
    marks = st.sampled_from([*ADDED, *HALVES, "<s>", "</s>", "é", "☃", "🦙", " ", "  "])
    text = st.lists(st.one_of(marks, marks, texts(pieces)), max_size=8).map("".join)
    parts = st.lists(st.one_of(marks.map(str.encode), broken(pieces)), max_size=6).map(b"".join)
    return data.draw(st.one_of(text, text.map(str.encode), parts))


def some_options(data: st.DataObject, tok: Tokenizer, refusing: bool = True) -> dict[str, Any]:
    """Every option that streams and cutting have, as it may be chosen."""
    names = sorted(tok.vocab.special_tokens)
    allowed = data.draw(st.sampled_from(["all", *([names[:k] for k in (0, 1, 3, len(names))])]))
    options: dict[str, Any] = {
        "allowed_special": data.draw(st.one_of(st.just(allowed), st.sets(st.sampled_from(names)))),
        "prefix_space": data.draw(st.sampled_from([None, True, False])),
        "prefix_after_special": data.draw(st.booleans()),
        "add_bos": data.draw(st.booleans()),
        "add_eos": data.draw(st.booleans()),
    }
    if refusing:
        other = [name for name in names if name not in options["allowed_special"]]
        refused = st.one_of(st.just("raise"), st.sets(st.sampled_from(other))) if other else st.just(())
        options["disallowed_special"] = data.draw(st.one_of(st.just(()), refused))
    return options


def outcome(call: Any, *args: Any, **options: Any) -> Any:
    try:
        return call(*args, **options)
    except ValueError as error:
        return str(error)


# --- Streams --------------------------------------------------------------------------------------


COPIES: list[Callable[[StreamEncoder], StreamEncoder]] = [copy.copy, copy.deepcopy, StreamEncoder.copy]


def cuts(data: st.DataObject, text: Any) -> list[Any]:
    """The text in parts: str anywhere, bytes inside characters too; some of the parts are empty."""
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@tiers.engines
@tiers.models(MODELS)
@quick
@seed(SEED)
@given(data=st.data())
def test_streams_encode(name: str, engine: str, data: st.DataObject) -> None:
    """However a text is cut, and also if the stream was copied on the way."""
    tok = load(name, engine)
    text, options = some_text(data, name), some_options(data, tok)
    expected = outcome(tok.encode, text, **options)

    def push_all() -> list[int]:
        stream = tok.stream_encoder(**options)
        ids: list[int] = []
        for part in cuts(data, text):
            before = stream.copy()
            came = stream.push(part)
            assert before.push(part) == came
            if data.draw(st.booleans()):
                stream = data.draw(st.sampled_from(COPIES))(stream)
            ids += came
        return ids + stream.flush()

    assert outcome(push_all) == expected


@tiers.engines
@tiers.models(MODELS)
@quick
@seed(SEED)
@given(data=st.data())
def test_a_refused_part_leaves_the_stream_as_it_was(name: str, engine: str, data: st.DataObject) -> None:
    """The parts without a token that the text must not contain, joined, are the text that was encoded."""
    tok = load(name, engine)
    text, options = some_text(data, name), some_options(data, tok)
    stream = tok.stream_encoder(**options)
    taken, ids = text[:0], list[int]()
    for part in cuts(data, text):
        before = stream.copy()
        came = outcome(stream.push, part)
        if isinstance(came, str):
            assert "the text holds the special token" in came
            assert came == outcome(stream.push, part) == outcome(before.push, part)
            # The message is that of `encode`, unless this waits for more text to find a longer token.
            assert came == outcome(tok.encode, taken + part, **options)
        else:
            taken, ids = taken + part, ids + came
    end = outcome(stream.flush)
    expected = outcome(tok.encode, taken, **options)
    assert (end if isinstance(end, str) else ids + end) == expected
    if isinstance(end, str):  # what waits is refused: it stays so, and the stream has not ended
        assert outcome(stream.flush) == end
    else:
        assert stream.flush() == []


def test_refused_in_a_stream(engine: str) -> None:
    tok = load("llama", engine)
    stream = tok.stream_encoder(disallowed_special="raise", add_bos=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="holds the special token '</s>' at position 5"):
            stream.push("é the</s>")
    came = tok.stream_encoder(disallowed_special="raise", add_bos=True)
    ids = came.push("é <")
    assert ids[0] == 1
    with pytest.raises(ValueError, match="'<s>' at position 2"):
        came.push("s> more")
    assert ids + came.push(" more") + came.flush() == [1, *tok.encode("é < more")]
    # One that a longer token could still begin with is refused when that does not come.
    both = tok.stream_encoder(allowed_special={"<|ab"}, disallowed_special={"<|a"})
    assert both.push("x<|a") == tok.stream_encoder().push("x")
    copied = both.copy()
    assert copied.push("b")[-1] == tok.vocab.special_tokens["<|ab"]
    for _ in range(2):
        with pytest.raises(ValueError, match=r"'<\|a' at position 1"):
            both.flush()
    with pytest.raises(ValueError, match=r"'<\|a' at position 1"):
        both.push("c")


@tiers.engines
@tiers.models(MODELS)
@quick
@seed(SEED)
@given(data=st.data())
def test_ids_before_a_special_token_come_at_once(name: str, engine: str, data: st.DataObject) -> None:
    """With the token itself, also where the model's text else waits for its end."""
    tok = load(name, engine)
    before = data.draw(texts(pieces_of(name)))
    stream = tok.stream_encoder(allowed_special={"</s>", "<|ab"}, add_bos=True)
    parts = data.draw(st.sampled_from([["</s>"], ["</", "s>"], ["<|ab"], ["<", "|a", "b"]]))
    came = [id for part in cuts(data, before) for id in stream.push(part)]
    for part in parts:
        came += stream.push(part)
    whole = before + "".join(parts)
    assert came == tok.encode(whole, allowed_special={"</s>", "<|ab"}, add_bos=True)
    assert stream.flush() == []


def test_what_may_become_longer_waits(engine: str) -> None:
    tok = load("llama", engine)
    special = tok.vocab.special_tokens
    stream = tok.stream_encoder(allowed_special="all", prefix_after_special=False)
    assert stream.push("<|a|>") == []  # "<|a|><|b|>" is a token, too
    assert stream.push("<|") == []
    assert stream.push("b|>") == [special["<|a|><|b|>"]]
    assert stream.push("<|a|>x</s>") == [special["<|a|>"], *tok.encode("x", prefix_space=False), 2]
    assert stream.push("<|a") == []
    assert stream.flush() == [special["<|a"]]


# --- Cutting --------------------------------------------------------------------------------------


@pytest.fixture
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "FIRST_WINDOW", 1)
    monkeypatch.setattr(splitting, "FIRST_MARGIN", 1)
    monkeypatch.setattr(splitting, "MANY", 1 << 40)  # believe only what is certain


class Oracle:
    """What truncate() and split() promise, in the simplest way: all of the text is encoded for every cut."""

    def __init__(self, tok: Tokenizer, options: dict[str, Any]):
        self._tok = tok
        # What must not be there is looked for in the whole text, and not in its parts.
        self._options = {**options, "disallowed_special": ()}
        self.around = int(options["add_bos"]) + int(options["add_eos"])

    def count(self, text: Any) -> int:
        return self._tok.count(text, **self._options)

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        plain = {**self._options, "add_bos": False, "add_eos": False}
        return self._tok.align(data, **plain).offsets

    def truncated(self, text: Any, limit: int) -> Any:
        if self.count(text) <= limit:
            return text
        data = text.encode() if isinstance(text, str) else text
        spans = self.spans(data)
        for number in range(limit - self.around, 0, -1):
            end = spans[number - 1][1]
            whole_character = spans[number - 1][0] < spans[number][0] and not is_inside(data, end)
            if whole_character and self.count(data[:end]) <= limit:
                return data[:end].decode() if isinstance(text, str) else data[:end]
        return text[:0]


@pytest.mark.usefixtures("_small_windows")
@tiers.engines
@tiers.models(MODELS)
@quick
@seed(SEED)
@given(data=st.data())
def test_truncate_and_split(name: str, engine: str, data: st.DataObject) -> None:
    tok = load(name, engine)
    text, options = some_text(data, name), some_options(data, tok)
    oracle = Oracle(tok, options)
    limit = data.draw(st.integers(oracle.around, 12))
    ids = outcome(tok.encode, text, **options)
    found = outcome(tok.truncate, text, limit, **options)
    if isinstance(ids, str):  # refused: the same error, with the same position, wherever it would be cut
        assert found == ids
        assert outcome(tok.split, text, limit + 1, **options) == ids
        return
    assert found == oracle.truncated(text, limit)
    assert len(tok.encode(found, **options)) <= max(limit, 0)

    limit += 1
    overlap = data.draw(st.integers(0, limit - 1 - oracle.around)) if limit - oracle.around > 1 else 0
    parts = outcome(tok.split, text, limit, overlap=overlap, **options)
    if isinstance(parts, str):
        needed = re.search("no character is cut; max_tokens must be at least ([0-9]+)", parts)
        assert needed is not None, parts
        assert int(needed[1]) > limit
        assert any(oracle.count(part) > limit for part in [*characters(text), *ADDED])
        return
    assert all(type(part) is type(text) and part for part in parts)
    assert all(oracle.count(part) <= limit for part in parts)
    check_cover(oracle, text, parts, limit, overlap)


def check_cover(oracle: Oracle, text: Any, parts: list[Any], limit: int, overlap: int) -> None:
    """The parts are all of the text; each is what truncate() makes of the rest, from where it may begin."""
    begin = end = 0
    for number, part in enumerate(parts):
        starts = [end]
        if number and overlap:
            data = parts[number - 1].encode() if isinstance(text, str) else parts[number - 1]
            spans = oracle.spans(data)
            own = range(max(len(spans) - overlap, 1), len(spans))
            places = [spans[t][0] for t in own if spans[t][0] > spans[t - 1][0]]
            kept = [place for place in places if not is_inside(data, place)]
            starts = [begin + (len(data[:p].decode()) if isinstance(text, str) else p) for p in kept] + [end]
        for start in starts:
            new = oracle.truncated(text[start:], limit)
            if start + len(new) > end:
                assert part == new
                break
        else:  # nothing fits: one character, or one special token, with spaces in front of it
            start = end
            assert text.startswith(part, start)
            stripped = part.lstrip() or part
            assert len(characters(stripped)) == 1 or oracle.count(part) > oracle.count(part[:0])
        begin = start
        assert text.startswith(part, begin)
        end = begin + len(part)
    assert end == len(text)


def test_refused_wherever_it_is(engine: str) -> None:
    """All of the text must be without the token, not only what truncate() looks at or gives."""
    tok = load("llama", engine)
    text = "é the " * 3000 + "</s>"
    for options in ({"disallowed_special": "raise"}, {"disallowed_special": {"</s>"}}):
        expected = outcome(tok.encode, text, **options)
        assert "at position 18000" in expected
        assert outcome(tok.truncate, text, 3, **options) == expected
        assert outcome(tok.split, text, 30, overlap=3, **options) == expected
    # The beginning of a longer token that is allowed is not refused where a window, or a part, ends.
    options = {"allowed_special": {"<|ab"}, "disallowed_special": {"<|a"}}
    text = "x<|ab" * 400
    for limit in range(4, 9):
        assert "".join(tok.split(text, limit, **options)) == text  # type: ignore[arg-type]
        assert text.startswith(tok.truncate(text, limit, **options))  # type: ignore[arg-type]


# --- Batches --------------------------------------------------------------------------------------


@tiers.engines
@tiers.models(MODELS)
@quick
@seed(SEED)
@given(data=st.data())
def test_batches_are_their_texts(name: str, engine: str, data: st.DataObject) -> None:
    """For every unit, option and mixture of str and bytes; sampled with one seed after the other."""
    tok = load(name, engine)
    batch = [some_text(data, name) for _ in range(data.draw(st.integers(0, 4)))]
    options = some_options(data, tok, refusing=False)
    options["reverse"] = data.draw(st.booleans())
    own: list[dict[str, Any]] = [options] * len(batch)
    if data.draw(st.booleans()):
        start = data.draw(st.sampled_from([0, 1, -1, 2**64 - 1, 2**64 - 2, 7**20]))
        alpha = data.draw(st.sampled_from([0.1, 0.5, 1.0]))
        own = [{**options, "alpha": alpha, "seed": start + i} for i in range(len(batch))]
        options = {**options, "alpha": alpha, "seed": start}
    unit: Any = data.draw(st.sampled_from([None, "char", "byte"]))
    threads = data.draw(st.sampled_from([None, 1, 3]))

    alone = [tok.align(text, unit=unit, **o) for text, o in zip(batch, own, strict=True)]
    assert tok.align_batch(batch, unit=unit, threads=threads, **options) == alone
    rows = tok.encode_arrays(batch, spans=True, unit=unit, threads=threads, **options)
    assert rows.tolist() == [encoding.ids for encoding in alone]
    spans = [list(span) for encoding in alone for span in encoding.offsets]
    assert rows.spans is not None
    assert rows.spans.tolist() == spans
    ids = [tok.encode(text, **o) for text, o in zip(batch, own, strict=True)]
    assert ids == rows.tolist() == tok.encode_batch(batch, threads=threads, **options)
    assert tok.encode_arrays(batch, threads=threads, **options).tolist() == ids
    assert tok.count_batch(batch, threads=threads, **options) == [len(row) for row in ids]
    assert [tok.count(text, **o) for text, o in zip(batch, own, strict=True)] == [len(row) for row in ids]
    pieces = [tok.encode_pieces(text, **o) for text, o in zip(batch, own, strict=True)]
    assert pieces == [encoding.pieces for encoding in alone]


@pytest.mark.parametrize("name", ["llama", zoo.REAL[0]])
def test_seeds_of_parts_and_segments_differ(name: str, engine: str) -> None:
    """The same text is sampled in another way at each place where it stands."""
    tok = tokenizer(name, engine)
    text = "the old lighthouse keeper counted ships"
    for number in range(5):
        options: Any = {"alpha": 0.5, "seed": number, "allowed_special": "all"}
        row = tok.encode_parts([f"{text}</s>{text}</s>{text}", 9, text, 9, text], **options)
        flat = " ".join(str(2 if id == 9 else id) for id in row).split(" 2 ")
        assert len(flat) == len(set(flat)) == 5
        assert flat[0] == " ".join(map(str, tok.encode(text, **options)))
