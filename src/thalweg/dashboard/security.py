"""Who may ask the page's server: checks the Host, the Origin and the token of each request.

The server only reads, but the events of a run hold names and texts of users. On a loopback address every program of
this machine may ask. A page of another site may not, even if its name is made to lead here (DNS rebinding): hence the
checks of Host and Origin. Any other address needs a token.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "thalweg-token"
PARAMETER = "token"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD")
NOT_ALLOWED = 405  # the status of another method, whose answer has to name these
LEAST_LETTERS = 16  # of a token that a user chooses
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """Which requests are answered.

    Parameters
    ----------
    hosts
        The names by which the server may be called.
    token
        The token that a request needs; None if it needs none.
    any_number
        Whether the server may also be called by any IP address, since it listens at all of them. A page of another site
        can make its own name lead here, but no IP address.
    """

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    token: str | None = None
    any_number: bool = False

    @classmethod
    def to(cls, address: str, token: str | None = None, names: Sequence[str] = ()) -> Access:
        """The access to an address: any address but a loopback address gets a token, if the user chose none.

        >>> Access.to("127.0.0.1").token is None, Access.to("0.0.0.0").token is None
        (True, False)
        """
        if token is not None and len(token) < LEAST_LETTERS:
            raise ValueError(f"a token has {LEAST_LETTERS} letters or more: leave token out, and a token is made")
        is_any = is_unspecified(address)
        own = [socket.gethostname()] if is_any else []
        hosts = tuple(dict.fromkeys([*LOOPBACK_NAMES, address, *own, *names]))
        if token is None and not is_loopback(address):
            token = secrets.token_urlsafe(24)
        return cls(tuple(host.lower() for host in hosts), token, any_number=is_any)

    def refusal(self, method: str, headers: Mapping[str, str], parameters: Mapping[str, str]) -> tuple[int, str] | None:
        """Why a request is refused: the status, and a sentence that says what to do; None if it is not.

        >>> Access().refusal("GET", {"host": "evil.example:80"}, {})
        (421, 'this server is not called evil.example: open it by the address that it printed')
        """
        host = _host_name(headers.get("host", ""))
        if host not in self.hosts and not (self.any_number and is_number(host)):
            return 421, f"this server is not called {host}: open it by the address that it printed"
        origin = headers.get("origin")
        if origin is not None and _place_of(origin) != headers["host"].lower():
            return 403, "pages of other sites may not ask this server"
        if headers.get("sec-fetch-site") in {"cross-site", "same-site"} and headers.get("sec-fetch-mode") != "navigate":
            return 403, "pages of other sites may not ask this server"
        if self.token is not None and not any(
            secrets.compare_digest(given.encode(), self.token.encode()) for given in given_tokens(headers, parameters)
        ):
            return 401, "this server needs its token: open the address that it printed, which ends in ?token=..."
        if method not in METHODS:
            return NOT_ALLOWED, "this server only reads"
        return None


def given_tokens(headers: Mapping[str, str], parameters: Mapping[str, str]) -> list[str]:
    """The tokens in a request: as a header, as a cookie, or in the address."""
    found = []
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(value.strip())
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        cookie = None
    if cookie is not None:
        found.append(cookie.value)
    if PARAMETER in parameters:
        found.append(parameters[PARAMETER])
    return found


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def is_unspecified(address: str) -> bool:
    """Whether an address stands for all addresses of the machine.

    >>> is_unspecified("0.0.0.0"), is_unspecified("::"), is_unspecified("127.0.0.1"), is_unspecified("example.org")
    (True, True, False, False)
    """
    return is_number(address) and ipaddress.ip_address(address).is_unspecified


def is_number(host: str) -> bool:
    """Whether a host is an IP address, rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _place_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


class Guard:
    """The middleware that refuses requests, and gives each answer the headers that keep browsers from doing harm."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets
            return

        async def send_guarded(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = parse_qs(scope["query_string"].decode("latin-1"))
        parameters = {name: values[-1] for name, values in query.items()}
        refusal = self._access.refusal(scope["method"], headers, parameters)
        if refusal is not None:
            await _answer(send_guarded, *refusal, {"allow": ", ".join(METHODS)} if refusal[0] == NOT_ALLOWED else {})
        elif self._access.token is not None and PARAMETER in parameters and scope["path"] == "/":
            # The token goes from the address, which browsers remember and show, into a cookie that no script can read.
            cookie = f"{COOKIE}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send_guarded, 303, "", {"location": "/", "set-cookie": cookie})
        else:
            await self._app(scope, receive, send_guarded)


async def _answer(send: Any, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:  # noqa: ANN401
    listed = {"content-type": "text/plain; charset=utf-8", **(headers or {})}
    encoded = [(name.encode(), value.encode()) for name, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": text.encode()})
