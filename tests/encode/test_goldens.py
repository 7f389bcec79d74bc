"""Toy models whose results a reader can check by hand. Only cpbpe takes part; no oracle.

A model is written as its pieces in order of score: the first merges first.
"""

import pytest

import cpbpe
from cpbpe import Tokenizer
from tests.support.zoo import Piece, Proto

pytestmark = pytest.mark.usefixtures("engine")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = (
    Piece.NORMAL,
    Piece.UNKNOWN,
    Piece.CONTROL,
    Piece.USER_DEFINED,
    Piece.UNUSED,
    Piece.BYTE,
)


def toy(
    pieces: str,
    *,
    user_defined: str = "",
    unused: str = "",
    control: str = "<s> </s>",
    byte_fallback: bool = False,
    add_dummy_prefix: bool = False,
    remove_extra_whitespaces: bool = False,
    suffix: bool = False,
) -> Tokenizer:
    """A model with the pieces of a list separated by spaces; best first."""
    proto = Proto()
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = byte_fallback
    proto.trainer_spec.treat_whitespace_as_suffix = suffix
    proto.normalizer_spec.add_dummy_prefix = add_dummy_prefix
    proto.normalizer_spec.remove_extra_whitespaces = remove_extra_whitespaces
    proto.pieces.add(piece=b"<unk>", type=UNKNOWN)
    for piece in control.split():
        proto.pieces.add(piece=piece.encode(), type=CONTROL)
    for byte in range(256 if byte_fallback else 0):
        proto.pieces.add(piece=b"<0x%02X>" % byte, type=BYTE)
    for piece in user_defined.split():
        proto.pieces.add(piece=piece.encode(), type=USER_DEFINED)
    for rank, piece in enumerate(pieces.split()):
        type = UNUSED if piece in unused.split() else NORMAL
        proto.pieces.add(piece=piece.encode(), score=-rank, type=type)
    return Tokenizer.from_bytes(proto.SerializeToString())


def pieces(tok: Tokenizer, text: str) -> str:
    return " ".join(tok.encode_pieces(text))


def test_the_best_pair_merges_first() -> None:
    tok = toy("ab ra abra a b r c d")
    assert pieces(tok, "abracadabra") == "abra c a d abra"
    # With another order of merges the same pieces give another result: br takes the b and the r first.
    assert pieces(toy("br ab ra abra a b r c d"), "abracadabra") == "a br a c a d a br a"


def test_equal_pairs_merge_from_the_left() -> None:
    tok = toy("aa a")
    assert pieces(tok, "aaaaa") == "aa aa a"


def test_a_piece_is_out_of_reach_without_its_halves() -> None:
    # abc is a piece, but neither ab nor bc is: two characters never become the half of it.
    assert pieces(toy("abc a b c"), "abc") == "a b c"
    assert pieces(toy("abc bc a b c"), "abc") == "abc"


def test_halves_need_not_be_pieces_themselves() -> None:
    # a and b are not pieces, yet the text "ab" is one.
    assert pieces(toy("ab c"), "abc") == "ab c"


def test_spaces_are_letters() -> None:
    tok = toy("▁w or ▁wor ld ▁world w o r l d ▁", add_dummy_prefix=True)
    assert pieces(tok, "world") == "▁world"
    assert pieces(tok, "world world") == "▁world ▁world"
    assert pieces(tok, "  world") == "▁ ▁ ▁world"
    assert tok.decode(tok.encode("  world")) == "  world"
    assert tok.normalize("a b") == "▁a▁b"


def test_space_as_suffix() -> None:
    tok = toy("a▁ b▁ a b ▁", add_dummy_prefix=True, suffix=True)
    assert pieces(tok, "a b") == "a▁ b▁"


def test_squeezed_spaces() -> None:
    tok = toy("▁a a ▁", add_dummy_prefix=True, remove_extra_whitespaces=True)
    assert pieces(tok, "  a   a  ") == "▁a ▁a"
    assert pieces(tok, "   ") == ""
    assert tok.align("  a   a  ").offsets == [(2, 3), (3, 7)]


def test_unknown_characters_fuse() -> None:
    tok = toy("a b")
    assert pieces(tok, "axyb?a") == "a xy b ? a"
    assert tok.encode("axyb?a") == [3, 0, 4, 0, 3]
    assert tok.decode(tok.encode("axyb")) == "a ⁇ b"


def test_byte_fallback_comes_after_merging() -> None:
    tok = toy("a é", byte_fallback=True)
    assert pieces(tok, "aèé") == "a <0xC3> <0xA8> é"
    assert tok.decode(tok.encode("aèé")) == "aèé"
    assert tok.align("aèé").offsets == [(0, 1), (1, 1), (1, 2), (2, 3)]
    # The text "<0xC3>" is six characters, never the byte.
    assert pieces(tok, "<") == "<0x3C>"


def test_user_defined_pieces_are_frozen() -> None:
    tok = toy("ab abc a b c x", user_defined="bc xx")
    assert pieces(tok, "abc") == "a bc"
    assert pieces(tok, "xxx") == "xx x"


def test_the_longest_user_defined_piece_wins() -> None:
    tok = toy("a b c d", user_defined="ab abc cd")
    assert pieces(tok, "abcd") == "abc d"


def test_control_pieces_never_come_from_text() -> None:
    tok = toy("s> <s < s >")
    assert pieces(tok, "<s>") == "< s>"
    assert 1 not in tok.encode("<s>")
    assert tok.encode("s", add_bos=True, add_eos=True) == [1, 6, 2]
    assert tok.decode([1, 6, 2, 6]) == "ss"


def test_unused_pieces_merge_but_do_not_show() -> None:
    tok = toy("ab abc a b c", unused="ab")
    assert pieces(tok, "ab") == "a b"
    assert pieces(tok, "abc") == "abc"


def test_an_unused_piece_is_always_split_in_the_same_way() -> None:
    """As in a text of its own, whatever is merged around it; see `ReferenceEngine._split`."""
    tok = toy("ab abc bc a b c", unused="abc")
    assert pieces(tok, "abc") == "ab c"
    tok = toy("ya bc yabc abc ab a b c y", unused="abc")
    assert pieces(tok, "abc") == "a bc"
    assert pieces(tok, "abcyabc") == "a bc yabc"
    assert pieces(tok, "yabcabc") == "yabc a bc"


@pytest.mark.parametrize("from_the_left", [True, False])
def test_an_unused_piece_is_split_a_hundred_times(from_the_left: bool) -> None:
    """What is left then stays whole, on whichever side it is."""
    letters = [chr(0x4E00 + i) for i in range(110)]
    parts = [letters[:n] if from_the_left else letters[-n:] for n in range(2, 111)]
    unused = " ".join(map("".join, parts))
    tok = toy(f"{unused} {' '.join(letters)}", unused=unused)
    whole = ["".join(parts[7])]
    split = [*whole, *letters[9:]] if from_the_left else [*letters[:-9], *whole]
    assert tok.encode_pieces("".join(letters)) == split


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([4, 5], "ab"),
        ([3, 4], "a"),
        ([3, 3, 4], " a"),
        ([1, 3, 4], "a"),
        ([4, 3], "a "),
        ([0, 3, 4], " ⁇  a"),
    ],
)
def test_one_space_is_dropped_in_front(ids: list[int], text: str) -> None:
    tok = toy("▁ a b", add_dummy_prefix=True)
    assert tok.decode(ids) == text


def test_broken_text() -> None:
    tok = toy("a \ufffd", byte_fallback=True)
    assert tok.encode_pieces(b"a\xff\xe2\x96") == ["a", "\ufffd", "\ufffd", "\ufffd"]
    assert tok.align(b"a\xff\xe2\x96").offsets == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_piece_types() -> None:
    tok = toy("a u", user_defined="x", unused="u", byte_fallback=True)
    ids = [tok.piece_to_id(piece) for piece in ("<unk>", "<s>", "<0x00>", "x", "a", "u")]
    types = [tok.vocab.piece_type(id).name for id in ids if id is not None]
    assert types == ["UNKNOWN", "CONTROL", "BYTE", "USER_DEFINED", "NORMAL", "UNUSED"]
    assert int(cpbpe.PieceType.BYTE) == 6
