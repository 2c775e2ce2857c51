"""Errors of groups."""

from __future__ import annotations

from zlog.errors import ZlogError


class GroupNotFound(ZlogError, LookupError):
    """The log has no group of this name."""

    hint = "`zlog group ls LOG` lists the log's groups. A worker creates a group when it starts."


class GroupDiffers(ZlogError, ValueError):
    """The group exists with another mode or division into slots."""

    hint = (
        "Open it as it is, choose another name, or remove the group if no worker uses it (`zlog"
        " group rm LOG NAME`)."
    )


class SlotsLost(ZlogError):
    """The member no longer owns slots of a batch, so this call has not committed them.

    The member was paused for longer than its lease, another member has its name, or the group was
    reset. The entries of these slots are delivered again, perhaps to another member, unless an
    earlier commit with an unknown outcome was stored. The other slots of the batch are committed.

    Attributes:
        slots: the slots that this call has not committed.
    """

    hint = "Continue with the next batch. If this happens often, choose a longer lease."

    def __init__(self, message: str, *, slots: tuple[int, ...]) -> None:
        super().__init__(message)
        self.slots = slots
