"""The pool as the monitors report it: its type, replicas, space and health."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from zlog import Store, StoreTimeout, StoreUnavailable
from zlog.admin import ask_monitors
from zlog.cli.ceph import Target, new_client
from zlog.cli.commands.doctor.diagnosis import Diagnosis, failure, note, ok, warning

_ERASURE = 3
"""``type`` of an erasure-coded pool in the monitors' answers (osd_types.h)."""

_OMAP = "supports_omap"
"""The flag of an erasure-coded pool that stores omap keys and runs object classes (Ceph 21)."""

_COPIES = 3
"""Ceph's default size of a pool. A pool with more copies than OSDs stores nothing completely."""

_GROUPS_MAX = 3
"""Limit of the placement groups that are named."""

_WHOLE_OBJECTS = "osd_object_clean_region_max_num_intervals"
"""If this is 0, an OSD that missed writes gets whole objects in recovery."""

_FIND_MONITOR = "ceph -s   # shows which monitors are down"
_PART = "pool"


def examine(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Examine the pool of a store, and the cluster's health as far as it concerns the pool."""
    ask = partial(ask_monitors, store, timeout=seconds)
    try:
        pools = ask("osd pool ls", detail="detail")
        found = next((each for each in pools if each["pool_name"] == store.pool), None)
        if found is None:
            return  # it was removed since the store was opened
        yield _copies(found, len(ask("osd ls")))
        if found["type"] != _ERASURE and found["size"] > 1:
            yield _recovery(ask)
        yield from _space(found)
        yield from _health(found, ask("health", detail="detail"))
    except StoreUnavailable as error:
        late = isinstance(error, StoreTimeout)
        fix = _FIND_MONITOR if late else new_client(Target.parse(url))
        yield warning(_PART, str(error), fix)


def _copies(pool: dict[str, Any], osds: int) -> Diagnosis:
    name, size = pool["pool_name"], pool["size"]
    if pool["type"] == _ERASURE:
        if _OMAP in pool["flags_names"].split(","):
            return ok(_PART, f"{name!r} is erasure coded, with {_OMAP}")
        text = f"{name!r} is erasure coded and cannot store omap keys, which logs need"
        create = f"ceph osd pool create {name}-replicated 32 32 replicated"
        fix = f"{create}, and use --store ceph://{name}-replicated; or, if all OSDs run Ceph 21"
        return failure(_PART, text, f"{fix} or newer, ceph osd pool set {name} {_OMAP} true")
    if size > 1:
        text = f"{name!r} is replicated: {size} copies, and appends need {pool['min_size']}"
        return ok(_PART, text)
    text = f"{name!r} keeps only one copy, so entries are lost if their disk fails"
    fix = f"ceph osd pool set {name} size {_COPIES}"
    if osds < _COPIES:
        fix = f"add OSDs: the cluster has {osds}, and {_COPIES} copies need at least {_COPIES}"
    return warning(_PART, text, fix)


def _recovery(ask: Callable[..., Any]) -> Diagnosis:
    """Examine whether recovery may lose acknowledged entries, as with Ceph's defaults."""
    part = "recovery"
    try:
        intervals = ask("config get", who="osd", key=_WHOLE_OBJECTS)
    except StoreTimeout:
        raise
    except StoreUnavailable as error:  # caps that don't allow it, or a release without the option
        text = f"it is unknown whether OSDs recover objects as a whole: {error}"
        return note(part, text, f"ceph config get osd {_WHOLE_OBJECTS}")
    if intervals == 0:
        return ok(part, "OSDs recover objects as a whole")
    text = "OSDs recover parts of objects: entries may be lost if OSDs freeze in quick succession"
    return warning(part, text, f"ceph config set osd {_WHOLE_OBJECTS} 0")


def _space(pool: dict[str, Any]) -> Iterator[Diagnosis]:
    """Report if a pool has reached its quota, or if its OSDs are full or nearly full."""
    name, flags = pool["pool_name"], pool["flags_names"].split(",")
    if "full_quota" in flags:
        text = f"{name!r} has used up its quota: appends wait until there is space"
        show = f"ceph osd pool get-quota {name} shows it"
        fix = f"trim logs, or raise it with ceph osd pool set-quota; {show}"
        yield failure(_PART, text, fix)
    elif "full" in flags:
        text = f"{name!r} is full: appends wait until there is space"
        fix = "trim logs, or add OSDs; ceph osd df shows which ones are full"
        yield failure(_PART, text, fix)
    elif "nearfull" in flags or "backfillfull" in flags:
        text = f"{name!r} is nearly full: appends wait once an OSD under it is"
        fix = "trim logs, or add OSDs; ceph osd df shows how full they are"
        yield warning(_PART, text, fix)


def _health(pool: dict[str, Any], health: dict[str, Any]) -> Iterator[Diagnosis]:
    """Report health checks that concern the pool, and OSDs that are down."""
    checks: dict[str, Any] = health.get("checks", {})
    own = f"pg {pool.get('pool_id')}."
    details = checks.get("PG_AVAILABILITY", {}).get("detail", [])
    stuck = [each["message"] for each in details if each["message"].startswith(own)]
    if stuck:
        yield warning(
            _PART,
            f"{pool['pool_name']!r} has placement groups that do not answer:"
            f" {'; '.join(stuck[:_GROUPS_MAX])}",
            "ceph health detail",
        )
    for name in ("OSD_DOWN", "OSD_HOST_DOWN"):
        if name in checks:
            text = f"{name}: {checks[name]['summary']['message']}"
            yield warning("cluster", text, "ceph health detail")
