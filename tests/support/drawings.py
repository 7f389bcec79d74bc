"""Drawings, read back: what a text that was spelled stands for, and what a browser makes of HTML."""

import re
from html.parser import HTMLParser

from cpbpe.text.drawn import CIRCLE, SIGNS

_DRAWN = re.compile(f"‹(?:([0-9A-F]{{2}})|U\\+([0-9A-F]{{4,6}}))›|{CIRCLE}|(.)", re.DOTALL)
_MEANT = {sign: character for character, sign in SIGNS.items()}
ALLOWED = {
    "div": {"role", "aria-label", "dir", "style"},
    "span": {"style", "title"},
    "bdi": {"style", "title", "dir"},
    "del": {"style", "title"},
    "mark": {"style"},
    "small": {"style"},
    "br": set(),
    "details": set(),
    "summary": set(),
    "table": {"style"},
    "thead": set(),
    "tbody": set(),
    "tr": set(),
    "th": {"style", "scope"},
    "td": {"style"},
}
"""The elements of drawings, and their attributes."""
_STYLE = re.compile(r"[-a-zA-Z0-9:;.,() %]*")


def unspelled(text: str) -> bytes:
    """The bytes that a text stands for."""
    data = b""
    for byte, code, other in _DRAWN.findall(text):
        data += bytes.fromhex(byte) if byte else chr(int(code, 16)).encode() if code else b""
        data += _MEANT.get(other, other).encode()
    return data


class Page(HTMLParser):
    """A fragment of HTML: it must have nothing but what is allowed, and be well-formed."""

    def __init__(self, html: str):
        super().__init__()
        self.titles: list[tuple[str, bytes]] = []
        """The elements with a title, and the bytes that their content stands for."""
        self.rows: list[list[bytes]] = []
        """The rows of tables, in the same way."""
        self.labels: list[str] = []
        self.text = ""
        self._open: list[tuple[str, dict[str, str]]] = []
        self._parts: list[tuple[int, str, bytes]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert given.keys() <= ALLOWED[tag], (tag, given)
        assert len(given) == len(attrs)
        assert _STYLE.fullmatch(given.get("style", "")), given
        assert given.get("dir", "ltr") in ("ltr", "rtl")
        if tag == "br":
            return
        self._open.append((tag, given))
        if "title" in given:
            self.titles.append((given["title"], b""))
        if "aria-label" in given:
            self.labels.append(given["aria-label"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(b"")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        is_pale = any(given.get("style") == "opacity:.6" for _, given in self._open)
        meant = unspelled(data) if is_pale else data.encode()
        if any("title" in given for _, given in self._open):
            title, content = self.titles[-1]
            self.titles[-1] = title, content + meant
        if any(tag in ("td", "th") for tag, _ in self._open):
            self.rows[-1][-1] += meant

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


class WholePage(HTMLParser):
    """A page or a part of one that needs nothing else, and in which nothing acts."""

    def __init__(self, html: str):
        super().__init__()
        self.text = ""
        self.title = ""
        self.marked: list[tuple[str, str]] = []
        """The texts with a tone, such as the best number of a row, each after its tone."""
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "a", "base", "object", "form"}
        given = dict(attrs)
        assert not [name for name in given if name.startswith("on") or name in {"src", "href", "xlink:href"}]
        if tag != "meta":
            self._open.append((tag, given))
        if "data-tone" in given:
            self.marked.append((given["data-tone"] or "", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, given = self._open[-1] if self._open else ("", {})
        if tag == "style":
            assert "url(" not in data
            assert "@import" not in data
            return
        self.text += data
        if tag == "title" and len(self._open) == 3:  # (in the head; bars have titles, too)
            self.title = data
        if "data-tone" in given:
            self.marked[-1] = self.marked[-1][0], data


SGR = re.compile("\x1b\\[[0-9;]*m")


def without_colours(text: str) -> str:
    """Without the codes of colours; nothing else that controls a terminal may be there."""
    plain = SGR.sub("", text)
    assert "\x1b" not in plain
    return plain
