"""Templates: the settings of new logs, by patterns of their names.

A store keeps its templates in one object with the form of a log's head, as the options of its view
(docs/formats/templates.md). The head's methods decide which of several concurrent changes is first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.log_options import LogOptions
from zlog._base.names import TEMPLATES_OBJECT
from zlog._base.options import (
    FROM_TEMPLATE,
    MIRROR_OF,
    PROMOTED_FROM,
    check_options,
    check_unreserved,
)
from zlog._catalog.head import Head
from zlog._layout.views import backoff
from zlog.errors import ClassNotLoaded, LimitReached, LogNotFound
from zlog.limits import OPTION_VALUE_BYTES_MAX
from zlog.names import check_pattern
from zlog.view import OPEN_END, Stripe, View

_HEAD_NAME = "templates"
_LOG_ID = 0
_SHOWN_APART = {FROM_TEMPLATE, PROMOTED_FROM}
_TEMPLATES_MAX = 128
_WILDCARDS = re.compile(r"\[!?\]?[^\]]*\]|[*?]")

_CAPS_HINT = (
    " A client that creates logs needs `view_read` on the object zlog.directory/templates"
    " (docs/operating.md, Users and caps)."
)


@dataclass(frozen=True, slots=True)
class Template:
    """Settings of new logs whose names match a pattern.

    Attributes:
        pattern: a shell pattern, such as ``web-*``.
        width, stripe_unit: the striping; None means the default.
        options: the other settings, with the retention, as in :attr:`zlog.View.options`.
        ordering: what assigns positions; None means the default.

    Raises ValueError or TypeError if a value is invalid.
    """

    pattern: str
    width: int | None = None
    stripe_unit: int | None = None
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ordering: str | None = None

    def __post_init__(self) -> None:
        check_pattern(self.pattern)
        LogOptions(self.width, self.stripe_unit, ordering=self.ordering)  # checks them
        check_options(self.options)
        check_unreserved(self.options)
        if FROM_TEMPLATE in self.options:
            raise ValueError(f"option {FROM_TEMPLATE!r} is reserved for zlog")
        if len(self.encode().encode()) > OPTION_VALUE_BYTES_MAX:
            raise ValueError(f"a template has at most {OPTION_VALUE_BYTES_MAX} bytes as JSON")

    @property
    def settings(self) -> dict[str, str]:
        """All settings by name, as text."""
        width = 1 if self.ordering == "object" else self.width
        return {**self.options, **_texts(width, self.stripe_unit, self.ordering)}

    def suited(self, ordering: str | None) -> Template:
        """Return the template for a log of this ordering, without a width if it can only be 1."""
        return replace(self, width=None) if ordering == "object" else self

    def encode(self) -> str:
        """Return the template as JSON."""
        fields = {"pattern": self.pattern, "width": self.width, "stripe_unit": self.stripe_unit}
        ordering = {} if self.ordering is None else {"ordering": self.ordering}
        found = {**fields, "options": dict(self.options), **ordering}
        return json.dumps(found, ensure_ascii=False)

    @classmethod
    def decode(cls, text: str | None) -> Template | None:
        """Return a template from JSON. Returns None if it is missing or not valid here."""
        with suppress(ValueError, TypeError, KeyError):
            found = json.loads(text or "")
            options = MappingProxyType(dict(found["options"]))
            striping = found["width"], found["stripe_unit"]
            return cls(found["pattern"], *striping, options, found.get("ordering"))
        return None

    def changes(self, view: View) -> LogOptions:
        """Return the changes that give a log these settings.

        An option that the log has from a template, and this template does not have, is removed.
        """
        gone = {k: None for k, v in recorded(view).options.items() if view.options.get(k) == v}
        options = {**gone, **self.options, FROM_TEMPLATE: self.encode()}
        return LogOptions(self.width, self.stripe_unit, options=options, ordering=self.ordering)


def recorded(view: View) -> Template:
    """Return the template that was applied to a log, with only the settings that the log got."""
    return Template.decode(view.options.get(FROM_TEMPLATE)) or Template("")


def settings_in(view: View) -> dict[str, str]:
    """Return the settings of a log by name, as text."""
    live = view.live_stripe
    own = {key: value for key, value in view.options.items() if key not in _SHOWN_APART}
    return {**own, **_texts(live.width, live.stripe_unit, view.ordering)}


def _texts(width: int | None, stripe_unit: int | None, ordering: str | None) -> dict[str, str]:
    layout = {"width": width, "stripe_unit": stripe_unit, "ordering": ordering}
    return {key: str(value) for key, value in layout.items() if value is not None}


async def read_templates(io: Io, deadline: Deadline) -> list[Template]:
    """Return the templates of a store, ordered by pattern, without those of unknown form.

    Raises:
        ClassNotLoaded: the client's caps do not allow this.
    """
    try:
        view = (await Head(io, _HEAD_NAME, TEMPLATES_OBJECT).read(deadline)).view
    except LogNotFound:
        return []
    except ClassNotLoaded as error:
        error.hint += _CAPS_HINT
        raise
    found = () if view is None else map(Template.decode, view.options.values())
    return sorted((each for each in found if each is not None), key=lambda each: each.pattern)


async def template_of(io: Io, name: str, deadline: Deadline) -> Template | None:
    """Return the template that applies to a log's name; None if none does.

    A pattern that equals the name is first, then the pattern with the most characters that are not
    wildcards, then the first pattern in order.
    """

    def order(each: Template) -> tuple[bool, int]:
        return each.pattern != name, -len(_WILDCARDS.sub("", each.pattern))

    found = await read_templates(io, deadline)
    fitting = (each for each in found if fnmatchcase(name, each.pattern))
    return min(fitting, key=order, default=None)


async def with_template(io: Io, name: str, new: LogOptions, deadline: Deadline) -> LogOptions:
    """Complete the options of a new log from its template, and record which ones.

    A mirror has no template, because its settings come from its source.
    """
    own = {**(new.options or {}), **new.applied_to({})}
    if MIRROR_OF in own:
        return replace(new, options={**own, FROM_TEMPLATE: None})
    template = await template_of(io, name, deadline)
    if template is None:
        return new
    template = template.suited(new.ordering or template.ordering)
    used = replace(
        template,
        width=template.width if new.width is None else None,
        stripe_unit=template.stripe_unit if new.stripe_unit is None else None,
        options={key: value for key, value in template.options.items() if key not in own},
        ordering=template.ordering if new.ordering is None else None,
    )
    return replace(
        new,
        width=new.width if used.width is None else used.width,
        stripe_unit=new.stripe_unit if used.stripe_unit is None else used.stripe_unit,
        options={**used.options, **own, FROM_TEMPLATE: used.encode()},
        ordering=new.ordering or used.ordering,
    )


async def change_template(io: Io, pattern: str, new: Template | None, deadline: Deadline) -> bool:
    """Store the template of a pattern, or remove it if ``new`` is None.

    Returns whether the pattern had a template. If other clients change templates at the same time,
    no change is lost.
    """
    key = hashlib.sha256(check_pattern(pattern).encode()).hexdigest()[:32]
    head, attempt, found = Head(io, _HEAD_NAME, TEMPLATES_OBJECT), 0, False
    while True:
        try:
            base = (await head.read(deadline)).view
        except LogNotFound:
            if new is None:
                return False
            await head.create(_LOG_ID, deadline)
            base = None
        stored = {} if base is None else base.options
        found = found or key in stored  # an earlier attempt may have removed it
        changed = {other: value for other, value in stored.items() if other != key}
        if new is not None:
            changed[key] = new.encode()
        if changed == stored:
            return found
        if len(changed) > _TEMPLATES_MAX:
            raise LimitReached(
                f"{io.store.url} already has {_TEMPLATES_MAX} templates, the maximum",
                hint="Remove templates that no new log needs: `zlog template rm PATTERN`.",
            )
        epoch, _ = await head.epoch_next(deadline, width=1 if base is None else 0)
        stripe = Stripe(epoch, 0, OPEN_END, 1)  # a view has one; it never gets objects
        first = View(epoch, _HEAD_NAME, _LOG_ID, "", (stripe,))
        view = replace(base or first, epoch=epoch, options=MappingProxyType(changed))
        if await head.propose(0 if base is None else base.epoch, view, deadline):
            return found
        await backoff(io, attempt)
        attempt += 1
