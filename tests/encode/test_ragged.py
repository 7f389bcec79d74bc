"""`Ragged`: many sequences of ids in one array."""

import pickle

import numpy as np
import pytest

import cpbpe
from tests.support import zoo


def test_ragged() -> None:
    ragged = cpbpe.Ragged(np.arange(6, dtype=np.uint32), np.array([0, 1, 1, 4, 6]))
    rows = [[0], [], [1, 2, 3], [4, 5]]
    assert ragged.tolist() == [row.tolist() for row in ragged] == rows
    assert [ragged[i].tolist() for i in range(-4, 4)] == rows * 2
    for cut in (slice(1, 3), slice(None), slice(3, 1), slice(None, None, -1), slice(0, 4, 2), slice(9, 12)):
        assert ragged[cut].tolist() == rows[cut]
        assert ragged[cut] == ragged[cut]
    assert ragged != cpbpe.Ragged(np.arange(6, dtype=np.uint32), np.array([0, 1, 2, 4, 6]))
    assert repr(ragged) == "<cpbpe.Ragged: 4 sequences, 6 ids>"
    for bad in (4, -5):
        with pytest.raises(IndexError, match=f"sequence {bad} is out of range: there are 4"):
            ragged[bad]
    assert ragged.padded(9).tolist() == [[0, 9, 9], [9, 9, 9], [1, 2, 3], [4, 5, 9]]
    assert ragged.padded(9, side="left").tolist() == [[9, 9, 0], [9, 9, 9], [1, 2, 3], [9, 4, 5]]
    assert ragged.padded(9, 2).tolist() == [[0, 9], [9, 9], [1, 2], [4, 5]]
    assert ragged.padded(9, 2, side="left").tolist() == [[9, 0], [9, 9], [2, 3], [4, 5]]
    assert ragged.padded(9, 0, side="left").shape == (4, 0)
    with pytest.raises(ValueError, match="side must be 'left' or 'right'"):
        ragged.padded(9, side="middle")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="max_length must be at least 0"):
        ragged.padded(9, -1)


def ragged() -> cpbpe.Ragged:
    return cpbpe.Ragged(np.arange(6, dtype=np.uint32), np.array([0, 1, 1, 4, 6]))


def test_padding_needs_an_id() -> None:
    """A model without a pad piece has none; that of a model with one is the default, in slices, too."""
    rows = cpbpe.Tokenizer.from_bytes(zoo.model("llama")).encode_arrays(["a", "a b c"])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"needs a pad_id: .* no pad piece\..*attention_mask.*<pad>"):
            rows.padded()
        with pytest.raises(ValueError, match="needs a pad_id"):
            rows.padded(pad_id=None)
        rows = rows[:1]
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("special"))
    assert tok.pad_id is not None
    for options in ({}, {"spans": True}, {"add_bos": True, "reverse": True}, {"alpha": 0.1, "seed": 1}):
        rows = tok.encode_arrays(["a", "a b c"], **options)
        for some in (rows, rows[:], rows[::-1]):
            assert some.padded().tolist() == some.padded(tok.pad_id).tolist()
    assert rows.padded(pad_id=0)[0].tolist()[-1] == 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("max_length", [None, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("multiple_of", [1, 2, 4])
def test_attention_mask(side: str, max_length: int | None, multiple_of: int) -> None:
    """It marks what is there, whatever it is: id 0 may be padding and may be a piece."""
    options = {"side": side, "max_length": max_length, "multiple_of": multiple_of}
    ids, mask = ragged().padded(0, attention_mask=True, **options)  # type: ignore[call-overload]
    assert ids.tolist() == ragged().padded(0, **options).tolist()  # type: ignore[call-overload]
    assert ids.shape == mask.shape
    assert mask.dtype == np.int64
    assert ids.shape[1] % multiple_of == 0
    limit = 3 if max_length is None else max_length
    assert limit <= ids.shape[1] < limit + multiple_of
    for row, marks, whole in zip(ids, mask, ragged(), strict=True):
        kept = min(limit, len(whole))
        there = whole[:kept] if side == "right" else whole[len(whole) - kept :]
        assert row[marks == 1].tolist() == there.tolist()
        assert marks.tolist() == sorted(marks.tolist(), reverse=side == "right")
        assert not row[marks == 0].any()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pad_id": -1}, ValueError, "pad_id must be at least 0, not -1"),
        ({"pad_id": 1 << 32}, ValueError, r"pad_id must be less than 2\*\*32"),
        ({"pad_id": 10**400}, ValueError, r"pad_id must be less than 2\*\*32"),
        ({"pad_id": "<pad>"}, TypeError, "pad_id must be an integer, not str"),
        ({"pad_id": 1.5}, TypeError, "pad_id must be an integer, not float"),
        ({"pad_id": 0, "multiple_of": 0}, ValueError, "multiple_of must be at least 1"),
        ({"pad_id": 0, "max_length": "3"}, TypeError, "max_length must be an integer, not str"),
    ],
)
def test_wrong_padding(options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ragged().padded(**options)  # type: ignore[call-overload]
    assert ragged().padded(np.int64(7), np.int32(2)).tolist() == [[0, 7], [7, 7], [1, 2], [4, 5]]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("texts", ["alike", "denser", "sparser"])
def test_large_batch(texts: str, threads: int) -> None:
    """How many ids there will be is estimated from the first texts, which may be like the others or not."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    sparse, dense = "the cat sat on the mat, and so on " * 30, "x7 😀 %$ " * 100
    batch = {"alike": [sparse], "denser": [sparse, dense], "sparser": [dense, sparse]}[texts]
    batch = [text[i:] for text in batch for i in range(600)]
    rows = tok.encode_arrays(batch, threads=threads)
    assert rows.tolist() == [tok.encode(text) for text in batch]
    # Little room stays unused behind the ids, and nobody sees it.
    whole = rows.ids if rows.ids.base is None else rows.ids.base
    assert whole.nbytes <= max(rows.ids.nbytes * 8 // 7, rows.ids.nbytes + 64)
    assert rows.ids.flags.c_contiguous
    assert len(pickle.dumps(rows.ids)) < rows.ids.nbytes + 1000
