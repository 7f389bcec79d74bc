"""``--extra_options``: what goes around the ids of a line, and in which order they are written."""

from __future__ import annotations

from typing import Any, NamedTuple

from cpbpe.tokenizer.tokenizer import Tokenizer


class Extra(NamedTuple):
    """What the options, which are steps in the order given, amount to."""

    front: tuple[int, ...] = ()
    """Ids in front."""
    back: tuple[int, ...] = ()
    """Ids at the end."""
    reverse: bool = False
    """Whether what is in between is written backwards."""
    unk_piece: bool = False
    """Whether an unknown part is written as the UNKNOWN piece."""

    def around(self, items: list[Any], table: Any) -> list[Any]:
        """Items of a line with what goes around them; `table` has the item for each id."""
        if self == _NOTHING:
            return items
        middle = items[::-1] if self.reverse else items
        return [*(table[id] for id in self.front), *middle, *(table[id] for id in self.back)]


_NOTHING = Extra()


def extra_of(text: str, tok: Tokenizer) -> Extra:
    """The options of a text such as ``bos:reverse``: each is done to what those before it have made.

    Something can stand several times: ``bos:bos`` writes two of them.
    """
    extra = _NOTHING
    for name in text.split(":") if text else []:
        front, back, reverse, unk_piece = extra
        if name == "reverse":
            extra = Extra(back[::-1], front[::-1], not reverse, unk_piece)
        elif name == "bos":
            extra = Extra((_special(tok.bos_id, name), *front), back, reverse, unk_piece)
        elif name == "eos":
            extra = Extra(front, (*back, _special(tok.eos_id, name)), reverse, unk_piece)
        elif name in ("unk", "unk_piece"):
            extra = Extra(front, back, reverse, True)
        else:
            raise ValueError(
                f"--extra_options: there is no {name!r}; there are bos, eos, reverse and unk, and a ':' "
                f"goes between them"
            )
    return extra


def _special(id: int | None, name: str) -> int:
    if id is None:
        raise ValueError(f"--extra_options={name}: the model has no {name} piece; leave {name} out")
    return id
