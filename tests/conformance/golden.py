"""The wire in literal bytes, field by field: what the samples share.

`golden_requests` has a sample of every request, `golden_conversations` every method's answers.

These are the format. A change that makes a test of them fail breaks every client and every OSD that
is out there; it needs a new version of the message, not a new literal here.
"""

from __future__ import annotations

from .requests import Entry, Part, StripeView, View
from .wire import OPEN_END


def bytes_of(text: str) -> bytes:
    """Hexadecimal with spaces and `# comments` at the ends of lines."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in text.splitlines()))


TIME = 0x0005543DF729C000
WRITER = bytes(range(16))
ENTRIES = (Entry(5, 1007, b"five"), Entry(9, 1000, b""), Entry(17, 1001, b"\x00\xff"))
PART = Part("query", 3, 1)
VIEW = View(
    3,
    7,
    False,
    "tcp://host:1",
    (StripeView(1, 0, 200, 8), StripeView(3, 200, OPEN_END, 4)),
    {"b": "2", "a": ""},
)
VIEW_FIELDS = (
    3,
    7,
    0,
    "tcp://host:1",
    [(1, 0, 200, 8), (3, 200, OPEN_END, 4)],
    {"a": "", "b": "2"},
)
VIEW_BYTES = bytes_of(
    """
    01 01 80000000                         # version, compat, bytes
    0300000000000000 0700000000000000      # epoch, log id
    00                                     # live
    0c000000 7463703a2f2f686f73743a31      # sequencer
    02000000                               # stripes
    01 01 1c000000 0100000000000000 0000000000000000 c800000000000000 08000000
    01 01 1c000000 0300000000000000 c800000000000000 ffffffffffffffff 04000000
    02000000                               # options, in the order of their keys
    01000000 61 00000000
    01000000 62 01000000 32
    """
)
