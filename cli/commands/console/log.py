"""The console's data of one log: its state, a map of its positions, entries, layouts."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict
from operator import attrgetter

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import zlog
from zlog.cli.commands.views import stripe_fields, view_fields
from zlog.cli.groups import see_groups, seen_fields
from zlog.cli.render import gap_details
from zlog.cli.template import iso
from zlog.overview import see_store

ENTRIES_MAX = 1000
_CELLS_DEFAULT = 512
_PAGE_BYTES_MAX = 4 << 20
_SHOWN_BYTES_MAX = 16 << 10
"""The maximum data of an entry that is shown. `/data` returns all of it."""

_STATES = (
    *("written", "filled", "trimmed", "unwritten"),
    *("lost", "unreadable", "unknown", "offloaded"),
)


async def _log(request: Request) -> Response:
    """Return an overview of a log."""
    name = request.path_params["name"]
    state = request.app.state
    async with state.handles.use(name) as log:
        seen = await see_store(state.store, [name], content=True, timeout=state.session.timeout)
        if not seen.logs:
            raise zlog.LogNotFound(f"there is no log {name!r} in {state.store.url}")
        report = await log.retention_report()
        producers = await log.producers()
        retention = zlog.Retention.of(seen.logs[0].options)
    overview = seen.logs[0]
    groups = await see_groups(state.session, state.store, seen.logs)
    return JSONResponse(
        {
            **asdict(overview),
            "lag": overview.lag,
            "retention": asdict(retention) if not retention.unlimited else None,
            "retention_report": report._asdict(),
            "producers": [
                {
                    **producer._asdict(),
                    "created": iso(producer.created),
                    "updated": iso(producer.updated),
                }
                for producer in producers
            ],
            "groups": seen_fields(groups.get(name, {})),
            "mac": log.view.mac is not None,
            "replica_reads": sum(log.replica_reads.values()),
        }
    )


async def _map(request: Request) -> Response:
    """Return a map of positions, with a column for each count of its cells."""
    start, end = _number(request, "start", 0), _number(request, "end", None)
    cells = _number(request, "cells", _CELLS_DEFAULT)
    assert start is not None
    assert cells is not None
    async with request.app.state.handles.use(request.path_params["name"]) as log:
        found = await log.position_map(start, end, cells=cells)
    columns = {
        what: [*map(attrgetter(what), found.cells)] for what in ("start", "end", "looked", *_STATES)
    }
    return JSONResponse(
        {
            "start": found.start,
            "end": found.end,
            "tail": found.tail,
            "trim_point": found.trim_point,
            "cells": columns,
            "stripes": [stripe_fields(stripe) for stripe in found.stripes],
        }
    )


async def _entries(request: Request) -> Response:
    """Return the present entries and gaps from a position on. The next page begins at `next`."""
    start, count = _number(request, "start", 0), _number(request, "count", 100)
    assert start is not None
    assert count is not None
    if not 1 <= count <= ENTRIES_MAX:
        raise ValueError(f"count must be 1 to {ENTRIES_MAX}, not {count}")
    items: list[dict[str, object]] = []
    size = 0
    async with request.app.state.handles.use(request.path_params["name"]) as log:
        tail = await log.tail()
        at, end = start, min(start + count, tail)
        async for item in log.read_range(start, end, hole_timeout=0):
            items.append(item_fields(item))
            at = item.position + 1 if isinstance(item, zlog.Entry) else item.end
            size += len(item.data) if isinstance(item, zlog.Entry) else 0
            if size > _PAGE_BYTES_MAX:
                break
    return JSONResponse({"items": items, "next": max(at, start), "tail": tail})


async def _data(request: Request) -> Response:
    """Return the data of an entry as a file."""
    name, position = request.path_params["name"], request.path_params["position"]
    async with request.app.state.handles.use(name) as log:
        data = (await log.read(position)).data
    disposition = f'attachment; filename="{name}-{position}"'
    headers = {"content-disposition": disposition}
    return Response(data, media_type="application/octet-stream", headers=headers)


async def _find(request: Request) -> Response:
    """Return the first position that is not older than a time, in seconds since 1970."""
    when = float(request.query_params.get("time", "nan"))
    async with request.app.state.handles.use(request.path_params["name"]) as log:
        return JSONResponse({"position": await log.find_time(when)})


async def _views(request: Request) -> Response:
    """Return the layouts of the last 128 epochs, oldest first."""
    async with request.app.state.handles.use(request.path_params["name"]) as log:
        found = await log.views()
        files = await log.stripe_files(found[0].stripes[0].start)
        by_id = {file.id: file for file in files}
        return JSONResponse([view_fields(view, by_id) for view in found])


def item_fields(item: zlog.Entry | zlog.Gap) -> dict[str, object]:
    """Return an entry, with the shown part of its data, or a gap for JSON."""
    if isinstance(item, zlog.Gap):
        gap = {"gap": item.kind.value, "position": item.position, "end": item.end}
        return {**gap, **gap_details(item)}
    return {
        "position": item.position,
        "timestamp": iso(item.timestamp),
        "tags": sorted(item.tags),
        "bytes": len(item.data),
        "data": b64encode(item.data[:_SHOWN_BYTES_MAX]).decode(),
    }


def _number(request: Request, name: str, default: int | None) -> int | None:
    """Return a numeric URL parameter. Raises ValueError if it is not a number."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > 19:
        raise ValueError(f"{name} must be a number, not {given!r}")
    return int(given)


ROUTES = (
    Route("/api/logs/{name}", _log),
    Route("/api/logs/{name}/map", _map),
    Route("/api/logs/{name}/entries", _entries),
    Route("/api/logs/{name}/data/{position:int}", _data),
    Route("/api/logs/{name}/find", _find),
    Route("/api/logs/{name}/views", _views),
)
