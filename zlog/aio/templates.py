"""Templates: the settings of new logs, by patterns of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from zlog import _templates
from zlog._base.deadline import Timeout
from zlog._base.log_options import LogOptions
from zlog._base.options import FROM_TEMPLATE, SETTINGS
from zlog._io.aio import drive
from zlog._layout.reconfigure import reconfigure
from zlog._lifecycle import default_stripe_unit
from zlog._templates import Template as Template
from zlog._trim.retention import Retention
from zlog.aio.log import Log, in_store
from zlog.limits import ORDERINGS, TIMEOUT_SECONDS, WIDTH_DEFAULT
from zlog.store import Store
from zlog.view import View


class Setting(NamedTuple):
    """A setting of a log.

    Attributes:
        name: ``width``, ``stripe_unit``, ``ordering``, or the name of an option.
        value: the value as text; None means no limit.
        origin: whether the value is the default, comes from the template that was applied to the
            log, or was set for the log itself.
        pattern: the pattern of the template; empty if the value does not come from one.
    """

    name: str
    value: str | None
    origin: Literal["default", "template", "log"]
    pattern: str = ""


class Applied(NamedTuple):
    """The effect of :func:`apply_template` on a log.

    Attributes:
        template: the template that applies to the log; None if none does.
        changed: the old and new values of the settings that change, by name. None means the
            default.
    """

    template: Template | None
    changed: dict[str, tuple[str | None, str | None]]


async def set_template(
    store: Store,
    pattern: str,
    *,
    width: int | None = None,
    stripe_unit: int | None = None,
    stripe_bytes: int | None = None,
    stripe_records: int | None = None,
    compression: str | None = None,
    options: Mapping[str, str] | None = None,
    hole_timeout: Timeout = ...,
    entry_bytes_max: int | None = None,
    ordering: str | None = None,
    retention: Retention | None = None,
    timeout: float | None = TIMEOUT_SECONDS,
) -> Template:
    """Set the settings of new logs whose names match a pattern, and return the template.

    It replaces the template that has the same pattern. Existing logs do not change.

    Args:
        pattern: a shell pattern with up to 256 characters, such as ``web-*``. If several templates
            match a log's name, the one whose pattern is the name applies, else the one with the
            most characters that are not wildcards, else the first in order.
        width, stripe_unit, stripe_bytes, stripe_records, compression, options, hole_timeout,
            entry_bytes_max, ordering: see :meth:`zlog.aio.Log.create`. A setting that is not
            given here gets its default. Creating a log with another value overrides the template.
        retention: the retention of the logs.

    Raises:
        ValueError: the pattern or a setting is invalid, or they take more than 4096 bytes as JSON.
        LimitReached: the store has 128 templates already.
    """
    both = {**(retention or Retention()).options(), **(options or {})}
    given = stripe_bytes, stripe_records, compression, both, hole_timeout, entry_bytes_max
    new = LogOptions(width, stripe_unit, *given)
    template = Template(pattern, width, stripe_unit, new.applied_to({}), ordering)
    await in_store(
        store, timeout, lambda io, by: _templates.change_template(io, pattern, template, by)
    )
    return template


async def list_templates(
    store: Store, *, timeout: float | None = TIMEOUT_SECONDS
) -> list[Template]:
    """Return the templates of a store, ordered by pattern."""
    return await in_store(store, timeout, _templates.read_templates)


async def remove_template(
    store: Store, pattern: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> bool:
    """Remove a template. Returns False if none has this pattern. Existing logs do not change."""
    return await in_store(
        store, timeout, lambda io, by: _templates.change_template(io, pattern, None, by)
    )


async def apply_template(log: Log, *, dry_run: bool = False, timeout: Timeout = ...) -> Applied:
    """Change an existing log to the settings of its template, as `reconfigure` does.

    Settings that the log has itself change too, if the template has them. Other settings stay,
    except options that an earlier template gave the log, which are removed. A mirror has no
    template, because its settings come from its source.

    Args:
        dry_run: only return what would change.
    """
    client, deadline = log._client, log._deadline(timeout)
    view = await drive(client.layout.refresh(deadline))
    template = await drive(_templates.template_of(client.io, view.log, deadline))
    if template is None or view.mirror:
        return Applied(None, {})
    template = template.suited(template.ordering or view.ordering)
    changes, before = template.changes(view), _templates.settings_in(view)
    if not dry_run:
        await drive(reconfigure(client.layout, changes, deadline))
    after = {**before, **(changes.options or {}), **template.settings}
    pairs = {name: (before.get(name), after[name]) for name in sorted(after)}
    del pairs[FROM_TEMPLATE]
    return Applied(template, {name: pair for name, pair in pairs.items() if pair[0] != pair[1]})


def settings_of(view: View, store: Store) -> list[Setting]:
    """Return all settings of a log and their origins, without a request.

    A setting comes from a template if it still has the value that the template gave the log. The
    template may have changed since.
    """
    used, own = _templates.recorded(view), _templates.settings_in(view)
    width = 1 if view.ordered else WIDTH_DEFAULT
    layout = {"width": str(width), "stripe_unit": str(default_stripe_unit(store))}
    layout["ordering"] = ORDERINGS[0]
    defaults = {**layout, **SETTINGS}

    def setting(name: str) -> Setting:
        value = own.get(name, defaults.get(name))
        if name in own and value == used.settings.get(name):
            return Setting(name, value, "template", used.pattern)
        is_default = name not in own or value == layout.get(name)
        return Setting(name, value, "default" if is_default else "log")

    return [setting(name) for name in dict.fromkeys((*defaults, *sorted(own)))]
