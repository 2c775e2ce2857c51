"""The console's routes: its page, and the requests of the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import zlog
from zlog.cli.commands.console import changes, log, look, streams
from zlog.cli.commands.console.access import COOKIE, Access, given_fields
from zlog.cli.commands.console.handles import Handles
from zlog.cli.commands.console.logs import Logs
from zlog.cli.session import Session
from zlog.cli.watch import Watch

LOGS_MAX = 10_000
"""The maximum number of logs that are shown, in name order. `--match` selects others."""

_CONTENTS = 64
"""The number of logs whose objects each poll queries."""

_FILES = Path(__file__).parent / "static"
_COOKIE_SECONDS = 30 * 86400

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (zlog.LogNotFound, 404),
    (zlog.CursorNotFound, 404),
    (zlog.NotWritten, 404),
    (zlog.Invalidated, 404),
    (zlog.StoreReadOnly, 403),
    (zlog.KeyNeeded, 409),
    (zlog.AppendRefused, 409),
    (zlog.AlreadyWritten, 409),
    (zlog.HeldByCursor, 409),
    (zlog.StoreUnavailable, 503),
    (zlog.StoreTimeout, 503),
    (ValueError, 400),
    (TypeError, 400),
    (OverflowError, 400),
)


def make_app(
    session: Session, store: zlog.Store, access: Access, interval: float, match: str
) -> Starlette:
    """Return the console as an ASGI application.

    Setting the event ``state.ending`` of the application ends all streams to browsers.

    Args:
        session: the global options of the command.
        store: the store with the logs. The console reads it through a read-only wrapper.
        access: what users may do.
        interval: the number of seconds between polls of all logs.
        match: a pattern; only logs whose names match it are shown.
    """
    looked_at = zlog.ReadOnlyStore(store)
    watch = Watch(looked_at, match, LOGS_MAX, _CONTENTS, session.timeout)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.session = session
        app.state.store = looked_at
        app.state.logs = Logs(watch, interval)
        app.state.handles = Handles(looked_at, session.timeout, session.mac_key)
        app.state.changing = Handles(store, session.timeout, session.mac_key)
        looking = asyncio.create_task(app.state.logs.run())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])
            await app.state.handles.close()
            await app.state.changing.close()

    async def about(request: Request) -> Response:  # noqa: ARG001
        return JSONResponse(
            {
                "store": store.url,
                "version": zlog.__version__,
                "changes": access.changes,
                "interval": interval,
                "match": match,
                "logs_max": LOGS_MAX,
            }
        )

    async def begin_session(request: Request) -> Response:
        given = (await given_fields(request)).get("token")
        if not access.token or not isinstance(given, str) or not access.knows_token(given):
            raise HTTPException(401, "the token is wrong")
        response = JSONResponse({})
        response.set_cookie(
            COOKIE,
            access.cookie,
            max_age=_COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=access.certificate is not None,
        )
        return response

    async def page(request: Request) -> Response:  # noqa: ARG001
        return FileResponse(_FILES / "index.html")

    async def colours(request: Request) -> Response:  # noqa: ARG001
        return Response(look.style_sheet(), media_type="text/css")

    routes = [
        Route("/", page),
        Route("/look.css", colours),
        Route("/api/about", about),
        Route("/api/session", begin_session, methods=["POST"]),
        *streams.ROUTES,
        *log.ROUTES,
        *(changes.ROUTES if access.changes else ()),
        Mount("/static", StaticFiles(directory=_FILES)),
    ]
    handlers = {HTTPException: _http_error, zlog.ZlogError: _error}
    handlers |= {kind: _error for kind, _ in _STATUS}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.state.ending = asyncio.Event()
    return app


async def _error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Return an error with a hint to the page."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error), "hint": getattr(error, "hint", "")}, status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404 and request.url.path.startswith("/api/"):
        detail = "no such address"
        if request.method != "GET":
            detail += "; changes need `zlog console --allow-changes`"
    return JSONResponse({"error": detail, "hint": ""}, error.status_code)
