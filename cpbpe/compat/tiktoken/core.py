"""`Encoding`, the class that programs use: tiktoken's calls, each a few lines on top of the engines.

The first section is about special tokens in texts: which are refused, and which become ids.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from cpbpe.checks import threads_for
from cpbpe.compat.tiktoken.engines import GAP, GAP_TEXT, Engines, completions, ids_of_bytes, stable_count
from cpbpe.engine.choice import make_finder
from cpbpe.lazy import Kept, importing, kept

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cpbpe.tokenizer.tokenizer import Tokenizer

__all__ = ["Encoding", "raise_disallowed_special_token"]

# --- Special tokens -------------------------------------------------------------------------------

Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]
NONE: AbstractSet[str] = frozenset()
"""No tokens."""


def raise_disallowed_special_token(token: str, word: str | None = None) -> NoReturn:
    """Raise the error for a text with a special token that is not allowed.

    `word` is what was given as `disallowed_special`, if it was a single str, whose letters are then refused.
    """
    found = f"Encountered text corresponding to disallowed special token {token!r}.\n"
    if word is not None:
        raise ValueError(
            f"{found}disallowed_special={word!r} refuses each of its letters; to refuse a token, put it into "
            f"a set; for all that are not allowed give 'all', and for none ().\n"
        )
    raise ValueError(
        f"{found}"
        f"To make it this token, allow it: allowed_special={{{token!r}, ...}}.\n"
        f"To encode it as ordinary text, leave it out of those that are refused: "
        f"disallowed_special=(enc.special_tokens_set - {{{token!r}}}).\n"
        "To encode all of them as ordinary text, refuse none: disallowed_special=().\n"
    )


class SpecialTokens:
    """The special tokens of an encoding, and a finder for each choice of tokens that a call has made."""

    def __init__(self, ids: Mapping[str, int]):
        self.texts = frozenset(ids)
        if "" in ids:
            raise ValueError("a special token is empty, and every place of a text would be that token")
        self._choices: Kept[tuple[object, object], tuple[Keys, Keys]] = Kept()
        self.all = Keys(self.texts)
        """All of them, to search for."""
        self._none = Keys(frozenset())

    def choice(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Keys, Keys]:
        """The tokens that become ids, and those that are refused, each ready to search for.

        "all" does not refuse tokens that are allowed. Texts that are no special tokens can be refused, too.
        """
        if allowed is NONE and isinstance(disallowed, str) and disallowed == "all":
            return self._none, self.all
        if not disallowed:  # None and False as well
            disallowed = NONE
        elif not isinstance(disallowed, str):
            disallowed = frozenset(disallowed)  # (an iterator has its texts only once)
        if allowed != "all" and not isinstance(allowed, AbstractSet):
            raise _not_a_choice(allowed)
        key = (
            allowed if isinstance(allowed, str) else frozenset(allowed),
            disallowed,
        )
        found = self._choices.get(key)
        if found is None:
            found = self._choice(allowed, disallowed)
            self._choices.keep(key, found)
        return found

    def _choice(self, allowed: Allowed, disallowed: Disallowed) -> tuple[Keys, Keys]:
        if isinstance(allowed, str):
            allowed = self.texts
        word = disallowed if isinstance(disallowed, str) and disallowed != "all" else None
        if isinstance(disallowed, str) and disallowed == "all":
            disallowed = self.texts - allowed
        refused = frozenset(disallowed)
        if not all(isinstance(text, str) for text in (*allowed, *refused)):
            raise TypeError("allowed_special and disallowed_special must hold str")
        return Keys(self.texts & allowed), Keys(refused, word)


def _not_a_choice(allowed: object) -> TypeError:
    if not allowed or allowed in ("none", "none_raise"):
        hint = "for none leave it out"
    elif isinstance(allowed, str):
        hint = f"put it into a set: {{{allowed!r}}}"
    else:
        hint = "set(...) makes one of a list" if isinstance(allowed, Iterable) else "'all' allows all"
    shown = type(allowed).__name__ if isinstance(allowed, (list, tuple)) else repr(allowed)
    return TypeError(f'allowed_special must be "all" or a set of str, not {shown}; {hint}')


class Keys:
    """Texts to search for: at each place the longest, from left to right."""

    def __init__(self, texts: frozenset[str], word: str | None = None):
        """`word`: see `raise_disallowed_special_token`."""
        self.texts = sorted(texts - {""})
        self._word = word
        keys = [text.encode(errors="surrogatepass") for text in self.texts]
        self.finder = make_finder(keys) if keys else None
        """None if there are no texts."""
        self._holds_empty = "" in texts
        self.find: Callable[[str], list[Any] | None] = self.finder.split if self.finder else _nothing
        """Splits a text at these: parts, with the numbers of texts between them; None if none is found."""

    def may_be_in(self, text: str) -> bool:
        """Whether a text may have one of them; True also if it has to be repaired first."""
        try:
            return self.find(text) is not None
        except UnicodeEncodeError:
            return True

    def refuse(self, text: str) -> None:
        """Raise ValueError if the text has one of them."""
        if self._holds_empty:
            raise_disallowed_special_token("")
        if self.finder is None:
            return
        try:
            parts = self.finder.split(text)
        except UnicodeEncodeError:  # half of a surrogate pair, which is repaired only later
            longest = sorted(self.texts, key=len, reverse=True)
            found = re.search("|".join(map(re.escape, longest)), text)
            parts = found and ["", self.texts.index(found.group())]
        if parts is not None:
            raise_disallowed_special_token(self.texts[parts[1]], self._word)


def _nothing(text: str) -> None:
    """The `find` of `Keys` without texts."""


# --- The class ------------------------------------------------------------------------------------


class Registered:
    """The encodings that have names and are pickled by them. `registry.py` fills this."""

    made: dict[str, Encoding]
    """The encodings that exist already."""
    get: Callable[[str], Encoding]
    """Returns the encoding of a name, and makes it if it does not exist yet."""


registered = Registered()
registered.made = {}


class Encoding:
    r"""One tokenizer: ranks, a pattern, and special tokens.

    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    >>> enc = Encoding("my", pat_str=r"\w+|\s+", mergeable_ranks=ranks, special_tokens={"<end>": 257})
    >>> enc, enc.n_vocab
    (<Encoding 'my'>, 258)
    >>> enc.encode("abc<end>", allowed_special="all"), enc.decode([256, 99])
    ([256, 99, 257], 'abc')
    """

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
    ):
        """If `explicit_n_vocab` is given, there must be exactly this many tokens, without gaps."""
        self.name = name
        self._pat_str = pat_str
        self._mergeable_ranks = mergeable_ranks
        self._special_tokens = special_tokens
        self._special_token_values = set(special_tokens.values())
        self.max_token_value = max(max(mergeable_ranks.values()), *special_tokens.values(), 0)
        """The highest id."""
        if explicit_n_vocab:
            count = len(mergeable_ranks) + len(special_tokens)
            if count != explicit_n_vocab or self.max_token_value != explicit_n_vocab - 1:
                raise AssertionError(
                    f"explicit_n_vocab is {explicit_n_vocab}, but there are {count} tokens, and the "
                    f"highest id is {self.max_token_value}"
                )
        self._engines = Engines(mergeable_ranks, special_tokens, pat_str)
        self._special = SpecialTokens(special_tokens)
        self._find = self._special.all.find
        direct = self._engines.direct
        self._encode: Callable[[str], list[int]] = self._engines.encode if direct is None else direct.encode
        """Encodes a text: a method of the engine itself, if its ids are the ranks."""
        self._decoder = self._engines.decoder
        self._has_no_gaps = self._engines.has_no_gaps
        self._rank_of = self._engines.rank_or_none
        self._texts: dict[int, bytes] = {}
        """The bytes of ids, filled when a call first needs them."""

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # --- Text to ids ------------------------------------------------------------------------------

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text, in which special tokens are ordinary text."""
        if not isinstance(text, str):
            raise _not_a_text(text)
        try:
            return self._encode(text)
        except UnicodeEncodeError:
            return self._encode(_repaired(text))

    def encode(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> list[int]:
        """The ids of a text.

        If the text spells out a special token, that is a ValueError, with two exceptions: a token that is
        allowed becomes its id, and one that is not refused (`disallowed_special=()`) is ordinary text.
        """
        if not isinstance(text, str):
            raise _not_a_text(text)
        # The usual choices get a fast path, because `choice` takes longer than encoding a short text.
        if (allowed_special is NONE or allowed_special == "all") and disallowed_special == "all":
            try:
                if self._find(text) is None:
                    return self._encode(text)
            except UnicodeEncodeError:
                pass
        elif disallowed_special == () and allowed_special is NONE:
            return self.encode_ordinary(text)
        allowed, refused = self._special.choice(allowed_special, disallowed_special)
        refused.refuse(text)
        try:
            return self._with_special(text, allowed)
        except UnicodeEncodeError:
            return self._with_special(_repaired(text), allowed)

    def _with_special(self, text: str, allowed: Keys) -> list[int]:
        parts = allowed.find(text)
        if parts is None:
            return self._encode(text)
        encode = self._encode
        ids = encode(parts[0]) if parts[0] else []
        for key, part in zip(parts[1::2], parts[2::2], strict=True):
            ids.append(self._engines.special[allowed.texts[key]])
            if part:
                ids += encode(part)
        return ids

    def encode_to_numpy(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> NDArray[np.uint32]:
        """The same as an array. (As in tiktoken, a lone surrogate raises UnicodeEncodeError.)"""
        if not isinstance(text, str):
            raise _not_a_text(text)
        allowed, refused = self._special.choice(allowed_special, disallowed_special)
        refused.refuse(text)
        if allowed.find(text) is None:
            return self._engines.encode_array(text)
        with importing:
            import numpy as np
        return np.array(self._with_special(text, allowed), np.uint32)

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int = 8) -> list[list[int]]:
        """The ids of many texts, in which special tokens are ordinary text, by at most this many threads."""
        return self._batch(_texts(text), num_threads)

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int = 8,
        allowed_special: Allowed = NONE,
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """The ids of many texts, by at most this many threads."""
        texts = _texts(text)
        allowed, refused = self._special.choice(allowed_special, disallowed_special)
        for one in texts:
            refused.refuse(one)
        if allowed.finder is None:
            return self._batch(texts, num_threads)
        special = [allowed.may_be_in(one) for one in texts]
        plain = self._batch([one for one, has in zip(texts, special, strict=True) if not has], num_threads)
        rows = iter(plain)
        return [
            self.encode(one, allowed_special=allowed_special, disallowed_special=()) if has else next(rows)
            for one, has in zip(texts, special, strict=True)
        ]

    def _batch(self, texts: list[str], num_threads: int) -> list[list[int]]:
        _check_threads(num_threads)
        try:
            return self._engines.encode_batch(texts, num_threads)
        except UnicodeEncodeError:
            return [self.encode_ordinary(text) for text in texts]

    def encode_with_unstable(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> tuple[list[int], list[list[int]]]:
        """The ids of a text that will not change if more text follows, and the ids that may come after them.

        Each of the latter lists stands for the rest of the text, and its last token may reach beyond that.
        The lists are those that tiktoken finds, which are not all that are possible. (As in tiktoken, a lone
        surrogate raises UnicodeEncodeError.)
        """
        if not isinstance(text, str):
            raise _not_a_text(text)
        allowed, refused = self._special.choice(allowed_special, disallowed_special)
        refused.refuse(text)
        ids = self._with_special(text, allowed)
        parts = allowed.find(text)
        chunks = self._engines.chunks(text if parts is None else parts[-1])
        if not chunks:
            return ids, []
        last = len(self._engines.encode_chunk(chunks[-1]))
        stable = stable_count(self._engines, ids, last)
        rest = self.decode_bytes(ids[stable:])
        return ids[:stable], completions(self._engines, rest)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of one token, special tokens included. KeyError if there is no such token."""
        # (Fast paths: looking up a token takes less time than the call, so every check would show.)
        if type(text_or_bytes) is str:
            rank = self._rank_of(text_or_bytes.encode())
            if rank is None:
                rank = self._engines.special.get(text_or_bytes)
        elif type(text_or_bytes) is bytes:
            rank = self._rank_of(text_or_bytes)
            if rank is None:
                rank = self._engines.special.get(text_or_bytes.decode(errors="replace"))
        elif isinstance(text_or_bytes, str):
            return self.encode_single_token(text_or_bytes.encode())
        elif isinstance(text_or_bytes, bytes):
            return self.encode_single_token(bytes(text_or_bytes))
        else:
            raise TypeError(f"a token is str or bytes, not {type(text_or_bytes).__name__}")
        if rank is None:
            raise KeyError(text_or_bytes if isinstance(text_or_bytes, bytes) else text_or_bytes.encode())
        return rank

    # --- Ids to text ------------------------------------------------------------------------------

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of ids. KeyError for an id that is not in use."""
        # (The decoder writes GAP for an id that is not in use. A text may hold it, too, so then look again.)
        if type(tokens) is list and self._decoder is not None:
            data = self._decoder.decode_bytes(tokens)
            if data is not None and (self._has_no_gaps or data.find(GAP) < 0):
                return data
        data = self._engines.decode_bytes(tokens)
        # (In this order, another thread never trusts a decoder whose result it should check for gaps.)
        self._has_no_gaps = self._engines.has_no_gaps
        self._decoder = self._engines.decoder
        return data

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of ids. Bytes that are not UTF-8 become U+FFFD, or what `errors` says."""
        if errors == "replace" and type(tokens) is list and self._decoder is not None:
            text = self._decoder.decode(tokens)
            if text is not None and GAP_TEXT not in text:
                return text
        return self.decode_bytes(tokens).decode("utf-8", errors=errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id. KeyError if it is not in use."""
        if type(token) is int:
            try:
                return self._texts[token]
            except KeyError:
                self._texts = self._engines.table
        return self._engines.bytes_of(token)

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each id."""
        if not isinstance(tokens, list):
            tokens = list(tokens)
        row = self._engines.row
        try:
            array("I", tokens)  # none of them is negative
            return [row[token] for token in tokens]
        except (IndexError, TypeError, OverflowError):
            return [self._engines.bytes_of(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The text of ids, and the place in it where each begins, in characters.

        For a token that begins inside a character, that is the place of the character. UnicodeDecodeError for
        bytes that are not UTF-8.
        """
        parts = self.decode_tokens_bytes(tokens)
        data = b"".join(parts)
        text = data.decode()
        begins = list(accumulate(map(len, parts), initial=0))[:-1]
        if data.isascii() or not begins:
            return text, begins
        with importing:
            import numpy as np
        first_bytes = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        places: list[int] = (np.cumsum(first_bytes)[np.minimum(begins, len(data) - 1)] - 1).tolist()
        return text, places

    def decode_batch(
        self, batch: Iterable[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """The texts of many lists of ids."""
        _check_threads(num_threads)
        rows: list[Any] = list(batch)
        if errors == "replace" and self._decoder is not None and all(type(row) is list for row in rows):
            texts = self._decoder.decode_batch(rows, min(num_threads, threads_for(rows, None)))
            if texts is not None and not any(GAP_TEXT in text for text in texts):
                return texts
        return [self.decode(row, errors) for row in rows]

    def decode_bytes_batch(self, batch: Iterable[Sequence[int]], *, num_threads: int = 8) -> list[bytes]:
        """The bytes of many lists of ids."""
        _check_threads(num_threads)
        return list(map(self.decode_bytes, batch))

    # --- What it is -------------------------------------------------------------------------------

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all ranks, sorted."""
        return list(self._engines.sorted_bytes)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`."""
        return self._special_tokens["<|endoftext|>"]

    @kept
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is that of a special token."""
        if not isinstance(token, int):
            raise AssertionError(f"token must be an int, not {type(token).__name__}")
        return token in self._special_token_values

    @property
    def n_vocab(self) -> int:
        """The highest id plus one."""
        return self.max_token_value + 1

    @kept
    def cpbpe(self) -> Tokenizer:
        """The same as a `cpbpe.Tokenizer`, with everything that it can do.

        ModelError if that is not possible, because there are gaps between the ranks, for example. Of several
        names of one id, as in o200k_harmony, only the first is known there, with a UserWarning.
        """
        names: dict[int, str] = {}
        for text, id in self._special_tokens.items():
            names.setdefault(id, text)
        others = [text for text, id in self._special_tokens.items() if names[id] != text]
        if others:
            warnings.warn(
                f"{', '.join(map(repr, others))} and {names[self._special_tokens[others[0]]]!r} have one id: "
                f"the cpbpe.Tokenizer knows only the name that was given first",
                stacklevel=2,
            )
        with importing:
            from cpbpe.model.formats.tiktoken import spec_of, write_ranks
            from cpbpe.tokenizer.tokenizer import Tokenizer
        file = write_ranks(self._mergeable_ranks)
        return Tokenizer.from_spec(spec_of(file, self._pat_str, {text: id for id, text in names.items()}))

    # --- Private methods of tiktoken that programs call -------------------------------------------

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """The ids of one chunk, which the pattern does not cut."""
        data = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        return self._engines.encode_chunk(data)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """The ids of a text, cut by the package regex."""
        with importing:
            import regex
        return [
            id
            for match in regex.findall(self._pat_str, text)
            for id in self._engines.encode_chunk(match.encode())
        ]

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The ids of bytes, which need not be UTF-8."""
        if not isinstance(text, bytes):
            raise TypeError(f"text must be bytes, not {type(text).__name__}")
        return ids_of_bytes(self._engines, text)

    def __getstate__(self) -> object:
        if self is registered.made.get(self.name):
            return self.name
        return {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }

    def __setstate__(self, value: Any) -> None:
        if isinstance(value, str):
            self.__dict__ = registered.get(value).__dict__
        else:
            self.__init__(**value)  # type: ignore[misc]


def _not_a_text(text: object) -> TypeError:
    more = "; encode_batch takes several texts" if isinstance(text, (list, tuple)) else ""
    return TypeError(f"text must be str, not {type(text).__name__}{more}")


def _texts(texts: Iterable[str]) -> list[str]:
    given = list(texts)
    for text in given:
        if not isinstance(text, str):
            raise _not_a_text(text)
    return given


def _check_threads(num_threads: int) -> None:
    if num_threads <= 0:
        raise ValueError(f"num_threads must be greater than 0, not {num_threads}")


def _repaired(text: str) -> str:
    """The text with each pair of surrogates as its character, and each lone surrogate as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
