"""How one writer's data is compressed."""

from __future__ import annotations

import logging

from zlog._base.codes import Code
from zlog._base.options import compression_of
from zlog.view import View

_logger = logging.getLogger(__name__)


class Compression:
    """As the log's options say, but for objects whose class is too old: there not at all."""

    def __init__(self) -> None:
        self._refused = 0  # in the view of this epoch

    def of(self, view: View) -> str:
        """Return the name of what compresses writes in a view."""
        return "none" if view.epoch == self._refused else compression_of(view.options)

    def refused(self, view: View, object: str, code: int, sent: str) -> bool:
        """Return whether a write is to be sent again as it is: the object's class is too old.

        Then nothing is compressed until the next epoch.

        Args:
            view: in which it was sent.
            object: where to.
            code: that it was answered with.
            sent: the name of what had compressed it.
        """
        if code != Code.REQUEST_TOO_NEW or sent == "none":
            return False
        if view.epoch != self._refused:
            self._refused = view.epoch
            _logger.warning(
                "log %s is not compressed: the class that answered for object=%s is older than"
                " this zlog",
                view.log,
                object,
            )
        return True
