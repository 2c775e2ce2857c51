# cython: language_level=3, binding=True, embedsignature=False
"""The package's door to its C++ side: codec, embedded and in-memory stores, completions.

The C++ does the work; this file turns values into Python's and back, lets go of the interpreter
lock around whatever may block, and looks for signals while it waits. ``_native.pyi`` documents it.
"""

include "_codec.pxi"
include "_entry.pxi"
include "_writes.pxi"
include "_window.pxi"
include "_columns.pxi"
include "_gather.pxi"
include "_codec_head.pxi"
include "_codec_cursors.pxi"
include "_codec_deliveries.pxi"
include "_codec_stripes.pxi"
include "_stores.pxi"
include "_shared_sequencer.pxi"
include "_audit.pxi"
