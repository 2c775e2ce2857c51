# cython: language_level=3, binding=True, embedsignature=False
"""The package's door to its C++ side: codec, embedded and in-memory stores, completions.

The C++ does the work; this file turns values into Python's and back, lets go of the interpreter
lock around calls that may block, and looks for signals while it waits. ``core.pyi`` documents it.
"""

include "mutex.pxi"
include "replies.pxi"
include "entry.pxi"
include "tags.pxi"
include "writes.pxi"
include "window.pxi"
include "columns.pxi"
include "gather.pxi"
include "stores.pxi"
include "share.pxi"
include "embedded_store.pxi"
include "shared_sequencer.pxi"
include "audit.pxi"
