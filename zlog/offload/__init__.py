"""Moves the ended stripes of a log into Parquet files, which remain part of the log.

:class:`Offloader` writes the files, and zlog's readers read them through :data:`files`. The
package needs PyArrow, which the extra ``offload`` installs. docs/offload.md explains its use.
"""

from zlog.offload._files import files
from zlog.offload._offloader import Offloader

__all__ = ["Offloader", "files"]
