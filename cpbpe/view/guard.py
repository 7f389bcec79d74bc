"""Who may ask the page's server, and how much: programs of this machine, and no other page of the browser.

A server on 127.0.0.1 can be reached by every page that the browser has open. A page that lets its own name
point to 127.0.0.1 (DNS rebinding) sends that name as Host; any other page sends its name as Origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cpbpe.view.answers import MAX_TEXT

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 3 * MAX_TEXT
"""A longer body, in bytes, is refused. (JSON writes some characters of one byte with six.)"""
NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What this machine is called."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing comes from elsewhere, and nothing in the page can run or be sent but what the server gave."""
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class TooLargeError(Exception):
    """The body of a request turned out to be too large while it was read."""


class Guard:
    """Refuses requests, and puts headers on all answers."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":  # the page has no other connections
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        left = MAX_BODY

        async def receiving() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLargeError(_too_large())
            return message

        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receiving, sending)
        else:
            await _answer(sending, *refused)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason, if the request is refused."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        # 1. It is for this server, and comes from its own page or from a program.
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not _is_ours(hosts[0], scope):
            return 421, "this server answers to localhost and 127.0.0.1, with its port, and to no other name"
        if any(origin != f"http://{hosts[0]}" for origin in headers.get("origin", [])):
            return 403, "another page asked; only the page of this server may"
        sites = headers.get("sec-fetch-site", [])
        navigates = scope["path"] == "/" and "navigate" in headers.get("sec-fetch-mode", [])
        if not navigates and any(site not in ("same-origin", "none") for site in sites):
            return 403, "another page asked; only the page of this server may"
        # 2. What is posted is JSON, which a form of another page cannot send, and not too much.
        if scope["method"] == "POST":
            kind = ",".join(headers.get("content-type", [])).partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "send application/json"
        length = "".join(headers.get("content-length", [])) or "0"
        if not length.isdecimal() or len(length) > 18 or int(length) > MAX_BODY:
            return 413, _too_large()
        return None


def _is_ours(host: str, scope: Mapping[str, Any]) -> bool:
    """Whether a Host is a name of this machine with the port of this server."""
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    server = scope.get("server")
    return name.lower() in NAMES and server is not None and port == str(server[1])


def _too_large() -> str:
    return f"the text is too long: the page takes {MAX_TEXT:,} bytes; cpbpe encode has no limit"


async def _answer(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
