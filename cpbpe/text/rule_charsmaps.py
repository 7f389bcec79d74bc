"""The charsmaps of the named rules, which are part of the package.

They are compiled by `named_rules.py` (a command of the developers), because that takes more than two seconds:
as long as training on 60 MB of text. To read one takes two milliseconds. (lzma would make 330 KB of them
instead of 566, but takes fifteen times as long to read, and is missing in some builds of Python.)
"""

from __future__ import annotations

import pkgutil
import zlib
from functools import cache

NAMES = ("nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""The rules that there are, besides identity."""


@cache
def rule_charsmap(name: str) -> bytes:
    """The charsmap of a named rule set: nfkc, nmt_nfkc, nfkc_cf, nmt_nfkc_cf, or identity, which is empty.

    >>> rule_charsmap("identity"), len(rule_charsmap("nmt_nfkc"))
    (b'', 240007)
    """
    if name == "identity":
        return b""
    if name not in NAMES:
        raise ValueError(f"there are no rules named {name!r}")
    data = pkgutil.get_data("cpbpe.text", f"charsmaps/{name}.zlib")  # also from a zip file
    if data is None:
        raise ImportError("the installation of cpbpe is incomplete: cpbpe/text/charsmaps is missing")
    return zlib.decompress(data)
