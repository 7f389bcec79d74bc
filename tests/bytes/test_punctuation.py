"""What the pre-tokenizer Punctuation of tokenizers cuts at, character by character."""

import re
from itertools import pairwise

from tokenizers import pre_tokenizers

from cpbpe.model.formats.tokenizer_json.patterns import punctuation


def test_punctuation_is_that_of_the_library() -> None:
    step = pre_tokenizers.Punctuation("contiguous")
    regex = re.compile(f"[{punctuation()}]+")
    # (Runs of 16 characters with a letter before each, so that most texts are short.)
    for begin in range(0, 0x110000, 16):
        given = "".join(chr(code) for code in range(begin, begin + 16) if not 0xD800 <= code < 0xE000)
        if begin < 0x20000 or regex.search(given):
            places = [place for _, place in step.pre_tokenize_str(f"a{given}a")]
            marks = [match.span() for match in regex.finditer(f"a{given}a")]
            assert marks == [place for place in places if place in marks], given
            ends = sorted({place for mark in marks for place in mark} | {0, len(given) + 2})
            assert places == [*pairwise(ends)], given
