"""The changes that the console can make with `zlog console --allow-changes`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import zlog.aio
from zlog.cli.commands.console.access import given_fields

Change = Callable[[zlog.aio.Log, dict[str, Any]], Awaitable[dict[str, Any]]]


async def _append(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    data, tags = given["data"], given.get("tags", [])
    if not isinstance(data, str) or not isinstance(tags, list):
        raise ValueError("an entry must be a string, and its tags must be a list of strings")
    return {"position": await log.append(data.encode(), tags=tags)}


async def _fill(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    await log.fill(given["position"])
    return {}


async def _trim(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    await log.trim_to(given["position"])
    return {}


async def _reconfigure(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    view = await log.reconfigure(width=given["width"])
    return {"epoch": view.epoch}


async def _read_only(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    wanted = given["read_only"]
    if not isinstance(wanted, bool):
        raise ValueError("read_only must be true or false")
    view = await (log.read_only() if wanted else log.writable())
    return {"epoch": view.epoch}


async def _remove_cursor(log: zlog.aio.Log, given: dict[str, Any]) -> dict[str, Any]:
    await (await log.cursor(given["cursor"])).remove()
    return {}


def _route(name: str, change: Change) -> Route:
    async def answer(request: Request) -> Response:
        try:
            given = await given_fields(request)
            async with request.app.state.changing.use(request.path_params["name"]) as log:
                return JSONResponse(await change(log, given))
        except KeyError as missing:
            raise ValueError(f"the request lacks {missing}") from missing

    return Route(f"/api/logs/{{name}}/{name}", answer, methods=["POST"])


ROUTES = (
    _route("append", _append),
    _route("fill", _fill),
    _route("trim", _trim),
    _route("reconfigure", _reconfigure),
    _route("read-only", _read_only),
    _route("remove-cursor", _remove_cursor),
)
