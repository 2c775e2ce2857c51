"""Errors as replies: a status, and a JSON object with code, message and hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import zlog

STATUS: tuple[tuple[type[Exception], int], ...] = (
    (zlog.LogNotFound, 404),
    (zlog.NotWritten, 404),
    (zlog.Invalidated, 410),
    (zlog.EntryTooLarge, 413),
    (zlog.LogExists, 409),
    (zlog.Conflict, 409),
    (zlog.AppendRefused, 409),
    (zlog.HeldByCursor, 409),
    (zlog.KeyNeeded, 409),
    (zlog.LimitReached, 409),
    (zlog.StoreReadOnly, 403),
    (zlog.StoreUnavailable, 503),
    (zlog.SequencerUnavailable, 503),
    (zlog.StaleEpoch, 503),
    (ValueError, 400),
    (OverflowError, 400),
)
"""The statuses of errors. The first class that matches counts, and others are 500."""


class Refusal(Exception):
    """A request that the server refuses.

    Args:
        status: the status of the reply.
        code: a word that programs can compare.
        message: what is wrong.
        hint: what to do about it.
        headers: headers of the reply, with ``_`` for ``-``.
    """

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", **headers: object
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.hint = status, code, hint
        self.headers = {name.replace("_", "-"): str(value) for name, value in headers.items()}


def reply_to(error: Exception, url: str) -> Response:
    """Return the reply to a request that failed.

    The text of an unexpected error is not shown, and nor is the store's URL.
    """
    if isinstance(error, Refusal):
        status, code, headers = error.status, error.code, error.headers
    else:
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        plain = isinstance(error, ValueError) and not isinstance(error, zlog.ZlogError)
        code = "ValueError" if plain else type(error).__name__
        headers = {"Retry-After": "1"} if status == 503 else {}
    known = status != 500 or isinstance(error, zlog.ZlogError)
    message = str(error) if known else "the server failed; its own log has the reason"
    hint = getattr(error, "hint", "") or ("See GET /openapi.json." if status == 400 else "")
    if code == "LogNotFound":
        hint = "PUT creates a log or a stream."
    fields = {"code": code, "message": message.replace(url, "the store"), "hint": hint}
    given = {name: getattr(error, name, None) for name in ("position", "positions")}
    fields |= {name: value for name, value in given.items() if value not in (None, ())}
    return json_reply(fields, status, headers)


def location(request: Request) -> dict[str, str]:
    """Return the header of a reply with the address of what was created."""
    path = request.scope["raw_path"].partition(b"?")[0].decode("latin-1")
    host = request.headers.get("host")  # HTTP/1.0 does not require it
    return {"Location": f"{request.url.scheme}://{host}{path}" if host else path}


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a reply with a value as JSON."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")
