"""Who may use the console, and whether they may change logs."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from zlog.admin import is_loopback, parse_host_port

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "zlog-console"
CHANGE_HEADER = "x-zlog-console"
"""The header of requests that change something. A page of another site cannot send it."""

_OWN_PAGES = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` that browsers send for the console's page and for typed addresses."""

_BODY_BYTES_MAX = 8 << 20
_TOKEN_BYTES_MIN = 16
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class Access:
    """The console's address, and what its users may do.

    Attributes:
        host: the address to listen on.
        port: the port to listen on; 0 means any free port.
        token: the token that browsers must send; empty if they need none.
        printed: whether the console must print the token, because it generated the token itself.
        certificate: the path of the TLS certificate (PEM); None means no TLS.
        key: the path of the private key; None means that the certificate's file has the key.
        changes: whether users may change logs.
    """

    host: str
    port: int
    token: str
    printed: bool
    certificate: str | None
    key: str | None
    changes: bool

    @classmethod
    def of(
        cls,
        listen: str,
        token_file: str | None,
        certificate: str | None,
        key: str | None,
        *,
        changes: bool,
    ) -> Access:
        """Check the options, and read or create the token. Raises ValueError if any is invalid."""
        host, port = parse_host_port(listen)
        if key is not None and certificate is None:
            raise ValueError("--tls-key needs --tls-cert")
        if certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError) as error:
                raise ValueError(f"can't speak TLS with {certificate}: {error}") from error
        token = "" if is_loopback(host) else secrets.token_urlsafe(24)
        if token_file is not None:
            token = Path(token_file).read_text(errors="replace").strip()
            if len(token) < _TOKEN_BYTES_MIN or not token.isprintable() or not token.isascii():
                raise ValueError(
                    f"{token_file} must contain a token of at least {_TOKEN_BYTES_MIN} printable"
                    " ASCII characters; create one with `openssl rand -hex 24`"
                )
        return cls(host, port, token, token_file is None, certificate, key, changes)

    @property
    def cookie(self) -> str:
        """The cookie for a browser that knew the token. The token can't be derived from it."""
        return hashlib.sha256(f"{COOKIE} {self.token}".encode()).hexdigest()

    def knows_token(self, given: str) -> bool:
        """Whether a string is the token."""
        return _same(given, self.token)

    def admits(self, request: Request) -> bool:
        """Whether there is no token, or the request proves that its sender knows it."""
        if not self.token:
            return True
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.knows_token(given.strip())
        return _same(request.cookies.get(COOKIE, ""), self.cookie)


async def given_fields(request: Request) -> dict[str, Any]:
    """Read the body of a request, which must be a JSON object.

    Raises:
        HTTPException: the body is too long.
        ValueError: the body is not a JSON object.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES_MAX:
            raise HTTPException(413, f"a request can have at most {_BODY_BYTES_MAX >> 20} MiB")
    given = json.loads(body)
    if not isinstance(given, dict):
        raise ValueError("a request's body must be a JSON object")
    return given


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


class Guard:
    """ASGI middleware that refuses unsafe requests and isolates the page in browsers.

    Without a token, the console answers only requests addressed to ``localhost`` or a loopback
    address. Otherwise the owner of a hostile site could change the site's DNS name to this
    machine's address, and scripts of that site could then read the console. Requests from other
    sites are refused, too, because they could start expensive work.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_PAGE_HEADERS)
            await send(message)

        refused = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        path = request.url.path
        is_api = path.startswith("/api/")
        if not self._access.token and not is_loopback(_name(request.headers)):
            reason = "this console has no token, so it answers only requests to localhost"
            return _refuse(421, reason, "Start the console with --token-file.")
        if request.headers.get("sec-fetch-site", "none") not in _OWN_PAGES and is_api:
            return _refuse(403, "the request comes from a page of another site", "")
        if request.method not in ("GET", "HEAD") and CHANGE_HEADER not in request.headers:
            return _refuse(403, f"a change needs the header {CHANGE_HEADER}", "")
        if is_api and path != "/api/session" and not self._access.admits(request):
            return _refuse(401, "the token is missing or wrong", "Enter the console's token.")
        return None


def _name(headers: Headers) -> str:
    """Return the host that a request names, without its port and brackets."""
    given = headers.get("host", "")
    if given.startswith("["):
        return given[1:].partition("]")[0]
    return given.partition(":")[0]


def _refuse(status: int, error: str, hint: str) -> Response:
    return JSONResponse({"error": error, "hint": hint}, status)
