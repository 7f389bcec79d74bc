"""`Ragged`: many sequences of ids in one array."""

import numpy as np
import pytest

import cpbpe


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
        with pytest.raises(IndexError, match=f"sequence {bad} is outside of 4"):
            ragged[bad]
    assert ragged.padded(9).tolist() == [[0, 9, 9], [9, 9, 9], [1, 2, 3], [4, 5, 9]]
    assert ragged.padded(9, side="left").tolist() == [[9, 9, 0], [9, 9, 9], [1, 2, 3], [9, 4, 5]]
    assert ragged.padded(9, 2).tolist() == [[0, 9], [9, 9], [1, 2], [4, 5]]
    assert ragged.padded(9, 2, side="left").tolist() == [[9, 0], [9, 9], [2, 3], [4, 5]]
    assert ragged.padded(9, 0, side="left").shape == (4, 0)
    with pytest.raises(ValueError, match="side is 'left' or 'right'"):
        ragged.padded(9, side="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_length is at least 0"):
        ragged.padded(9, -1)
