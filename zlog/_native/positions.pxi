# Positions of one stripe object, from a Python sequence.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from zlog._base.striping import Places


cdef extern from "cls_zlog/base/spacing.h" namespace "zlog" nogil:
    cdef cppclass Spacing:
        uint32_t stride
        uint32_t shift
        uint64_t turns()
        uint32_t residue(uint64_t position)
        uint64_t next(uint64_t position)
        uint64_t after(uint64_t position, uint64_t count)
        uint64_t count(uint64_t first, uint64_t end)
        vector[uint64_t] firsts(uint64_t first, uint64_t end)

    cdef uint32_t UNIT_SHIFT_MAX "zlog::limits::unit_shift_max"
    cdef uint32_t WIDTH_MAX "zlog::limits::width_max"

cdef extern from "cls_zlog/wire/runs.h" namespace "zlog" nogil:
    Spacing unpacked(uint32_t spacing)

    cdef cppclass Runs:
        Runs()
        @staticmethod
        cbool of(const Spacing& spacing, const vector[uint64_t]& positions, Runs* out) except +
        @staticmethod
        cbool row(const Spacing& spacing, uint64_t first, uint32_t count, Runs* out) except +


cdef Spacing spacing_of(uint32_t number) except *:
    cdef Spacing spacing = unpacked(number)
    if not (1 <= spacing.stride <= WIDTH_MAX and spacing.shift <= UNIT_SHIFT_MAX):
        raise ValueError(f"{number} is no valid spacing: see ObjectRef.spacing")
    return spacing


cdef vector[uint64_t] positions_of(positions) except *:
    cdef vector[uint64_t] out
    cdef uint64_t first, i
    cdef long long step
    cdef Py_ssize_t count = len(positions)
    out.reserve(count)
    if isinstance(positions, range) and count > 0 and positions.step > 0:
        first, step = positions.start, positions.step
        positions[-1].to_bytes(8, "little")  # OverflowError when the last one is no uint64
        for i in range(<uint64_t> count):
            out.push_back(first + i * <uint64_t> step)
    else:
        for position in positions:
            out.push_back(position)
    return out


cdef Runs runs_of(uint32_t spacing, positions) except *:
    cdef Runs runs
    cdef bint made
    if isinstance(positions, Places):
        made = Runs.row(spacing_of(spacing), positions.start, len(positions), &runs)
    else:
        made = Runs.of(spacing_of(spacing), positions_of(positions), &runs)
    if not made:
        raise ValueError("positions must ascend, be of one object, and at most 65536")
    return runs
