"""Whether two models must give the same tokens to every text, from what they say alone."""

from __future__ import annotations

from cpbpe.differing.orders import Orders
from cpbpe.differing.values import SettingChange

_NAMES_ONLY = ("normalizer.name", "special_tokens", "unk_id")
"""Names of rules, whose tables are compared, too; and tokens that only come where they are allowed."""


def surely_same(orders: Orders, settings: list[SettingChange]) -> bool:
    """Whether nothing that decides about tokens is different.

    Which pairs merge depends on the pieces that there are, on their types, and on which of two scores is
    higher, or whether they are equal: `orders` has the answer. The numbers and the ids make no difference to
    the tokens. Neither do names, trainer settings, or what decoding does.
    """
    return orders.same and not any(change.encodes and change.name not in _NAMES_ONLY for change in settings)
