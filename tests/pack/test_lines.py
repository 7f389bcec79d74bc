"""Lines that go to the engine without an object for each: the ids of the lines in a list, on both engines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe.corpus.documents import Documents
from cpbpe.packing.read import FileSource, Read
from tests.support import tiers, zoo
from tests.support.budget import quick
from tests.support.corpus import SENTENCES

pieces = st.sampled_from([*(text.encode() for text in SENTENCES), b"a", b"\xff", b"\r", b"\0", "🦙".encode()])
texts = st.lists(st.one_of(pieces, st.just(b"\n"), st.just(b"\n\n")), max_size=30).map(b"".join)


@tiers.engines
@quick(3, 60)
@given(data=texts, front=st.sampled_from([None, 1]), back=st.sampled_from([None, 2]), reverse=st.booleans())
def test_lines(engine: str, data: bytes, front: int | None, back: int | None, reverse: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPBPE_ENGINE", engine)
        tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    expected = tok.facts.engine.encode_arrays([line for line in lines if line], 1, (front, back, reverse))
    for threads in (1, 3):
        ids, offsets, empty = tok.facts.engine.encode_lines(data, threads, (front, back, reverse))
        assert ids.tolist() == expected[0].tolist()
        assert offsets.tolist() == expected[1].tolist()
        assert empty.tolist() == [number for number, line in enumerate(lines) if not line]


def test_lines_of_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 7)
    Path("a.txt").write_bytes(b"one\ntwo\n\nthree four five\nsix")
    Path("b.jsonl").write_bytes(b'{"text": "x"}\n')
    documents = Documents(["a.txt", "b.jsonl"])
    blocks = list(documents.blocks_of(0))
    assert b"".join(block.lines or b"" for block in blocks) == Path("a.txt").read_bytes()
    assert [block.count for block in blocks] == [len(block.texts) for block in blocks] == [1, 2, 1, 1]
    assert documents.read == Path("a.txt").stat().st_size
    for others in (documents.blocks_of(1), Documents("a.txt", whole=True).blocks()):
        assert [block.lines for block in others] == [None]


@pytest.mark.parametrize("few", [1, 1 << 18])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_every_place_to_go_on_from(
    few: int, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has been taken, the rest follows, and the counts are those of one go."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 5)
    monkeypatch.setattr("cpbpe.packing.read._FEW_BYTES", few)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 1)
    Path("a.txt").write_bytes(b"\none\n\ntwo\nthree" + end)
    Path("b.txt").write_bytes(b"four\n\n\nfive" + end)
    engine = cpbpe.Tokenizer.from_bytes(zoo.model("llama")).facts.engine

    def go(read: Read) -> list[tuple[Read, list[bytes]]]:
        found = []
        for batch in FileSource(Documents(["a.txt", "b.txt"])).batches(read, as_lines=True):
            kept, empty = batch.texts, None
            if batch.lines is not None:
                kept = [line for line in batch.lines.split(b"\n") if line]
                empty = engine.encode_lines(batch.lines, 1)[2]
            read, *_ = batch.located(read, len(kept), empty)
            found.append((read, kept))
        return found

    whole = go(Read())
    assert [text for _, texts in whole for text in texts] == [b"one", b"two", b"three", b"four", b"five"]
    last = whole[-1][0]
    more = end == b"\n\n"
    assert (last.number, last.text_bytes, last.empty) == (5, 19, 4 + 2 * more)
    for place, (read, _) in enumerate(whole):
        rest = go(read)
        assert [text for _, texts in rest for text in texts] == [
            text for _, texts in whole[place + 1 :] for text in texts
        ]
        assert rest[-1][0] == last
