"""Ids as lines, and lines as ids: the core and the reference write and read the same."""

from array import array
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbpe.corpus.files import in_order
from cpbpe.engine.lines import first_not_utf8, make_line_writer, read_ids
from cpbpe.reference import lines as reference
from tests.conftest import CORE

WORDS = [b"word" * (number % 7) + b"%d" % number for number in range(40)]
rows = st.lists(st.lists(st.integers(0, 39), max_size=30), max_size=12)


@given(rows, st.sampled_from([(b" ", b"", b"\n"), (b", ", b",\n[", b"]"), (b"", b"", b"")]), st.data())
def test_writing(rows: list[list[int]], shape: tuple[bytes, bytes, bytes], data: st.DataObject) -> None:
    ids = np.array([id for row in rows for id in row], np.uint32)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    places = data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=5)) if len(ids) else set()
    others = [(place, b"other") for place in sorted(places)]
    expected, place = b"", 0
    for row in rows:
        words = []
        for id in row:
            words.append(b"other" if place in places else WORDS[id])
            place += 1
        expected += shape[1] + shape[0].join(words) + shape[2]
    assert make_line_writer(WORDS, *shape)(ids, offsets, others) == expected
    listed = ids.tolist(), offsets.tolist()
    assert reference.write_lines(WORDS, shape, *listed, dict(others)) == expected


@pytest.mark.usefixtures("engine")
def test_what_cannot_be_written() -> None:
    writer = make_line_writer([b"a"], b" ", b"", b"\n")
    with pytest.raises((ValueError, IndexError)):
        writer(np.array([1], np.uint32), np.array([0, 1]), [])


@pytest.mark.skipif(not CORE, reason="there is no core")
@pytest.mark.parametrize("offsets", [[0, 2], [0, 1, 0], [0, -1], [5]])
def test_offsets_that_lead_nowhere(offsets: list[int]) -> None:
    writer = make_line_writer([b"a"], b" ", b"", b"\n")
    if offsets == [5]:  # nothing to write
        assert writer(np.array([0], np.uint32), np.array(offsets), []) == b""
        return
    with pytest.raises(ValueError, match="offsets must ascend"):
        writer(np.array([0], np.uint32), np.array(offsets), [])


@given(st.text(st.sampled_from("0123456789 \n-x")).map(str.encode))
def test_reading(data: bytes) -> None:
    ids, offsets, wrong = read_ids(data)
    assert (ids.tolist(), offsets.tolist(), wrong) == reference.read_lines(data, reference.decimal)
    assert ids.dtype == np.uint32
    if wrong is None:
        split = data.removesuffix(b"\n").split(b"\n") if data else []
        assert [ids[b:e].tolist() for b, e in pairwise(offsets)] == [
            list(map(int, line.split())) for line in split
        ]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("data", "wrong"),
    [(b"1 4294967295", None), (b"1 4294967296", 2), (b"1\n\n 99999999999", 4), (b"1\t2", 0), (b"+1", 0)],
)
def test_what_is_no_id(data: bytes, wrong: int | None) -> None:
    assert read_ids(data)[2] == wrong


@pytest.mark.usefixtures("engine")
def test_what_is_not_utf_8() -> None:
    assert first_not_utf8([]) is None
    assert first_not_utf8([b"", "é🦙".encode(), b"\xc3", b"\xff"]) == 2
    assert first_not_utf8([b"\xed\xa0\x80"]) == 0


# --- Several threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order_and_parts_are_not_read_ahead(threads: int) -> None:
    taken = 0

    def parts() -> object:
        nonlocal taken
        for number in range(40):
            taken = number + 1
            yield number

    def work(number: int) -> int:
        sum(array("I", range((40 - number) * 500)))  # the first take longest
        return number

    for done, number in enumerate(in_order(parts(), work, threads)):  # type: ignore[arg-type]
        assert number == done
        assert taken <= done + 2 * threads + 1


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_come_through(threads: int) -> None:
    def work(number: int) -> int:
        return 1 // (5 - number)

    def parts() -> object:
        yield from range(3)
        raise OSError("the disk")

    with pytest.raises(ZeroDivisionError):
        list(in_order(range(100), work, threads))
    with pytest.raises(OSError, match="the disk"):
        list(in_order(parts(), work, threads))  # type: ignore[arg-type]


def test_nothing_is_alive_after_it_is_closed() -> None:
    import threading

    before = threading.active_count()
    results = in_order(range(100), lambda number: number, 3)
    next(results)
    results.close()
    assert threading.active_count() == before
