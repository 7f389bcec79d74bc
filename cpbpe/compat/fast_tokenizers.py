"""transformers' own fast tokenizers, encoding with cpbpe: what `cpbpe.compat.install("transformers")` is for.

A fast tokenizer of transformers has a `tokenizers.Tokenizer` that works on text. This object stays, because
programs ask it for much, change it, and pass it to functions that take no other class. Only its methods that
encode are replaced, by those of `cpbpe.compat.tokenizers`, which is made from what the object would save.
(Those that add tokens do what they did. They are replaced, too, so as to notice it.)
"""

from __future__ import annotations

import copy
import functools
import json
import logging
from typing import Any

from cpbpe.errors import missing

try:
    import tokenizers
    from transformers import PreTrainedTokenizerBase
except ImportError as error:
    raise missing(
        'cpbpe.compat.install("transformers") needs the package transformers, 4.57 or newer', "transformers"
    ) from error

from cpbpe.compat.tokenizers import Tokenizer
from cpbpe.compat.tokenizers.processors import PostProcessor

_ENCODING = ("encode", "encode_batch", "encode_batch_fast", "post_process")
_CHANGING = ("add_tokens", "add_special_tokens", "train", "train_from_iterator")
_OF_MODEL = (
    *("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"),
    *("fuse_unk", "byte_fallback", "ignore_merges"),
)
"""What can be set in a model of tokenizers. Its vocabulary and merges can only be replaced with it."""
_UNSAVED = ", which tokenizers does not forget, but no file says it"
_log = logging.getLogger("cpbpe.compat")


class Backend:
    """The `tokenizers.Tokenizer` of a fast tokenizer, and the drop-in that encodes for it.

    `theirs` can be changed at any time: by its own methods, by properties, and inside of the parts that these
    return. So what has an influence on ids is compared before each call, which takes a few microseconds. For
    some changes, the drop-in is made anew.
    """

    def __init__(self, theirs: Any, refusal: str | None = None):
        self._theirs = theirs
        self._refusal = refusal
        self._ours: Tokenizer | None = None
        self._state: list[Any] = []
        self._post_processor: bytes | None = None
        self._settings: tuple[Any, ...] = ()
        self._changes = 0
        self._again: str | None = None
        """A token that was added twice, with different flags."""

    def attach(self) -> None:
        """Replace the methods of `theirs`."""
        for names, by in ((_ENCODING, self._encode), (_CHANGING, self._change)):
            for name in names:
                setattr(self._theirs, name, functools.partial(by, name))

    def _original(self, name: str) -> Any:
        return getattr(type(self._theirs), name).__get__(self._theirs)

    def _encode(self, name: str, *args: Any, **kwargs: Any) -> Any:
        ours = self.ours()
        if ours is not None:
            try:
                self._set_up(ours)
                return getattr(ours, name)(*args, **kwargs)
            except (TypeError, ValueError, OverflowError):
                pass  # `theirs` has its own errors for this
        return self._original(name)(*args, **kwargs)

    def _change(self, name: str, *args: Any, **kwargs: Any) -> Any:
        before = _flags(self._theirs)
        try:
            return self._original(name)(*args, **kwargs)
        finally:
            self._changes += 1
            now = _flags(self._theirs)
            lists = [items for items in (*args, *kwargs.values()) if type(items) is list]
            given = [item for items in lists for item in items if not isinstance(item, str)]
            tokens = [(str(item), repr(item)) for item in given]
            changed = (text for text, flags in (*before.items(), *tokens) if now.get(text, flags) != flags)
            self._again = self._again or next(changed, None)

    @property
    def refusal(self) -> str | None:
        """Why `theirs`, as it is now, encodes by itself; None if the drop-in does it."""
        self.ours()
        return self._refusal

    def ours(self) -> Tokenizer | None:
        """The drop-in for `theirs` as it is now; None if none does exactly the same."""
        if self._refusal is not None:
            return None
        ours = self._ours
        try:
            state, post_processor = self._state_of_theirs(), _saved(self._theirs.post_processor)
            if ours is None or state != self._state:
                ours = self._made()
            elif post_processor != self._post_processor:
                ours.post_processor = PostProcessor.of(json.loads(post_processor)) if post_processor else None
        except Exception as error:  # of cpbpe, or of tokenizers, which cannot save parts written in Python
            self._refuse(str(error))
            return None
        self._ours, self._state, self._post_processor = ours, state, post_processor
        return ours

    def _refuse(self, why: str) -> None:
        self._refusal = why
        _log.info("a tokenizer of transformers encodes without cpbpe: %s", why)

    def _made(self) -> Tokenizer:
        if self._again is not None:
            raise ValueError(f"the added token {self._again!r} was added before with other flags{_UNSAVED}")
        return Tokenizer.from_str(self._theirs.to_str())

    def check(self) -> None:
        """Refuse a tokenizer with tokens of which transformers changed the flags when it made it."""
        theirs, ours = self._theirs, self.ours()
        if ours is None:
            return
        tokens = list(_flags(theirs))
        texts = [f"{text} a{text}a {text} " for text in tokens]
        plain, truncation = theirs.encode_special_tokens, theirs.truncation
        differing = None
        for is_plain in (False, True):
            rows = []
            for tokenizer in (theirs, ours):
                tokenizer.no_truncation()
                tokenizer.encode_special_tokens = is_plain
                rows.append([(one.ids, one.tokens, one.offsets) for one in tokenizer.encode_batch(texts)])
            pairs = zip(tokens, *rows, strict=True)
            differing = next((token for token, one, other in pairs if one != other), differing)
        theirs.encode_special_tokens = plain
        if truncation is not None:
            theirs.enable_truncation(**truncation)
        if differing is not None:
            self._refuse(f"the added token {differing!r} is not found as its flags say{_UNSAVED}")

    def _state_of_theirs(self) -> list[Any]:
        """What the drop-in is made of."""
        theirs = self._theirs
        model = theirs.model
        return [
            self._changes,
            theirs.get_vocab_size(with_added_tokens=False),
            *[getattr(model, name, None) for name in _OF_MODEL],
            _saved(theirs.normalizer),
            _saved(theirs.pre_tokenizer),
        ]

    def _set_up(self, ours: Tokenizer) -> None:
        """Give the drop-in the padding and truncation of `theirs`, which transformers sets for each call."""
        theirs = self._theirs
        truncation, padding, skips = theirs.truncation, theirs.padding, theirs.encode_special_tokens
        settings = ours, truncation, padding, skips
        if settings == self._settings:
            return
        # (Another thread may encode with the same settings. For it, none of them is gone even for a moment.)
        ours.no_truncation() if truncation is None else ours.enable_truncation(**truncation)
        ours.no_padding() if padding is None else ours.enable_padding(**padding)
        ours.encode_special_tokens = skips
        self._settings = settings

    # When a fast tokenizer is copied or pickled, its `tokenizers.Tokenizer` and this object are copied, too.
    # The copies belong together again, but the former has its original methods: they must be replaced anew.

    def __reduce__(self) -> tuple[Any, ...]:
        return _attached, (self._theirs, self._refusal)

    def __deepcopy__(self, memo: dict[int, Any]) -> Backend:
        new = _attached(copy.deepcopy(self._theirs, memo), self._refusal)
        new._ours, new._state = copy.copy(self._ours), self._state
        new._post_processor, new._changes = self._post_processor, self._changes
        return new


def _saved(part: Any) -> bytes | None:
    """A part of a tokenizer of tokenizers, as it is pickled."""
    return None if part is None else part.__getstate__()


def _flags(theirs: Any) -> dict[str, str]:
    """The added tokens with their flags."""
    return {token.content: repr(token) for token in theirs.get_added_tokens_decoder().values()}


def _attached(theirs: Any, refusal: str | None) -> Backend:
    backend = Backend(theirs, refusal)
    if refusal is None:
        backend.attach()
    return backend


# --- Loading with transformers --------------------------------------------------------------------

_installed: dict[str, Any] = {}
"""`from_pretrained` before `install`, and ours."""


def install() -> None:
    """Have `from_pretrained` return fast tokenizers that encode with cpbpe."""
    if _installed:
        return
    before = vars(PreTrainedTokenizerBase)["from_pretrained"]

    @functools.wraps(before.__func__)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        tokenizer = before.__func__(cls, *args, **kwargs)
        theirs = getattr(tokenizer, "backend_tokenizer", None)
        if type(theirs) is tokenizers.Tokenizer:
            backend = tokenizer.cpbpe_backend = Backend(theirs)
            backend.check()
            if backend.refusal is None:
                backend.attach()
        return tokenizer

    ours = PreTrainedTokenizerBase.from_pretrained = classmethod(from_pretrained)
    _installed.update(before=before, ours=ours)


def uninstall() -> None:
    """Undo `install`. Tokenizers that were loaded in the meantime keep what they have."""
    if _installed and vars(PreTrainedTokenizerBase)["from_pretrained"] is _installed["ours"]:
        PreTrainedTokenizerBase.from_pretrained = _installed["before"]
        _installed.clear()
