"""The API for add-ons that keep their state in a space, for threads and asyncio.

It is to :mod:`zlog.objects` what :mod:`zlog.extension` is to a log: :func:`open_space` takes a
:class:`zlog.extension.LogPort` and returns a replica, whose methods block or suspend as the port
does. :class:`Views` reads its state, and :func:`write_checkpoint` writes a checkpoint.
"""

from zlog.objects._checkpoint import write_checkpoint
from zlog.objects._replica import Replica
from zlog.objects._space import begin as open_space
from zlog.objects._views import ObjectView, Views

__all__ = ["ObjectView", "Replica", "Views", "open_space", "write_checkpoint"]
