"""Audits of the replies of stripe objects about their positions (cls_zlog/client/audit.h)."""

from cython.operator cimport dereference as deref
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp.memory cimport unique_ptr
from libcpp.set cimport set as cpp_set
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.completions cimport reply_view, well_formed
from zlog._native.striping cimport Striping, striping_of

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from zlog._native.completions import ReplyBytes

cdef extern from "cls_zlog/client/append_ids.h" namespace "zlog" nogil:
    cdef cppclass CppAppendId "zlog::AppendId":
        uint64_t writer_high
        uint64_t writer_low
        uint64_t number

cdef extern from "cls_zlog/client/audit.h" namespace "zlog" nogil:
    cdef cppclass AuditRow:
        uint64_t first
        uint64_t end
        uint32_t step

    cdef cppclass AuditAppend:
        CppAppendId id
        uint64_t position

    ctypedef uint8_t AuditPass "zlog::Audit::Pass"
    ctypedef uint8_t AuditState "zlog::Audit::State"

    cdef cppclass CppAudit "zlog::Audit":
        CppAudit(size_t intervals_max)
        void begin(AuditPass purpose, uint64_t start, uint64_t end, const Striping& striping) except +
        int add(string_view reply, uint64_t first, uint32_t* count) except +
        void rest(uint64_t first, AuditState state)
        void finish() except +
        const vector[uint64_t]& counts()
        vector[AuditRow] rows(AuditState state) except +
        const vector[AuditAppend]& found()
        bint next_part()
        void search_for(cpp_set[CppAppendId] ids) except +


cdef dict AUDIT_STATES = {  # the numbers of the C++ enumerations
    "unwritten": 1, "trimmed": 3, "lost": 4, "unreadable": 5, "unknown": 6
}
cdef dict AUDIT_PASSES = {"all": 0, "appends": 1, "search": 2}

AppendId: TypeAlias = tuple[int, int, int]
"""The identity of an append: its writer's id as two integers, and its number."""


class AuditCount(NamedTuple):
    """The positions in each state, and bytes of data. ``unknown`` means an object did not reply."""

    entries: int
    unwritten: int
    filled: int
    trimmed: int
    lost: int
    unreadable: int
    unknown: int
    bytes: int


cdef class Audit:
    """Collects the states of a log's positions and appends, in ascending windows.

    For each window, call :meth:`begin`, then :meth:`add` or :meth:`rest` for each object until all
    positions are covered, then :meth:`finish`.

    Attributes:
        counts: the counts of all windows in passes for ``all``.
        found: appends of the last window, in the order of their positions: those that also have a
            lower position or, in passes for ``search``, those that are searched for.
    """

    cdef unique_ptr[CppAudit] audit
    cdef uint64_t start
    cdef uint64_t end

    def __init__(self, size_t intervals_max=1_000_000):
        """Keep at most ``intervals_max`` intervals of appends, which take about 80 bytes each."""
        self.audit.reset(new CppAudit(intervals_max))
        self.start = self.end = 0

    def begin(self, str purpose not None, uint64_t start, uint64_t end, uint32_t striping) -> None:
        """Begin a window of the positions ``[start, end)`` of a stripe.

        Args:
            purpose: ``all`` at first; ``appends`` after :meth:`next_part`, ``search`` after
                :meth:`search_for`.
            start: the first position.
            end: one past the last position; a window has at most 2**24 positions.
            striping: the stripe's striping, packed.
        """
        cdef uint8_t wanted = AUDIT_PASSES[purpose]
        cdef Striping places = striping_of(striping)
        if not (start < end and end - start <= 1 << 24):
            raise ValueError("a window must have 1 to 2**24 positions")
        self.start, self.end = start, end
        with nogil:
            deref(self.audit).begin(<AuditPass> wanted, start, end, places)

    cdef int check(self, uint64_t first) except -1:
        if not self.start <= first < self.end:
            raise ValueError(f"position {first} is not in the window")
        return 0

    def add(self, reply not None: ReplyBytes, uint64_t first) -> int:
        """Add a reply to ``verify``. Returns how many positions it covers, starting at ``first``.

        Raises:
            CorruptEntry: the reply is malformed.
        """
        cdef string_view view = reply_view(reply)
        cdef uint32_t count = 0
        cdef int result
        self.check(first)
        with nogil:
            result = deref(self.audit).add(view, first, &count)
        well_formed(2 if result > 0 else result, "verify reply")
        return count

    def rest(self, uint64_t first, str state not None) -> None:
        """Count an object's positions from ``first`` on as ``trimmed``, ``lost`` or ``unknown``."""
        cdef uint8_t number = AUDIT_STATES[state]
        self.check(first)
        deref(self.audit).rest(first, <AuditState> number)

    def finish(self) -> None:
        """Complete the window, and set the lists of its positions."""
        with nogil:
            deref(self.audit).finish()

    @property
    def counts(self) -> AuditCount:
        return AuditCount(*deref(self.audit).counts())

    def rows(self, str state not None) -> list[range]:
        """Return the last window's positions that are ``lost``, ``unreadable`` or ``unwritten``.

        The positions of a range are in one object.
        """
        cdef uint8_t number = AUDIT_STATES[state]
        cdef vector[AuditRow] rows = deref(self.audit).rows(<AuditState> number)
        return [range(row.first, row.end, row.step) for row in rows]

    @property
    def found(self) -> list[tuple[AppendId, int]]:
        cdef vector[AuditAppend] found = deref(self.audit).found()
        return [
            ((each.id.writer_high, each.id.writer_low, each.id.number), each.position)
            for each in found
        ]

    def next_part(self) -> bool:
        """Continue with appends that did not fit into memory. Returns False if none are left."""
        return deref(self.audit).next_part()

    def search_for(self, appends: Iterable[AppendId]) -> None:
        """Search for these appends from now on."""
        cdef cpp_set[CppAppendId] wanted
        cdef CppAppendId id
        for id.writer_high, id.writer_low, id.number in appends:
            wanted.insert(id)
        deref(self.audit).search_for(wanted)
