# Positions of one stripe object, from a Python sequence.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector


cdef extern from "cls_zlog/wire/runs.h" namespace "zlog" nogil:
    cdef cppclass Runs:
        Runs()
        @staticmethod
        cbool of(uint32_t stride, const vector[uint64_t]& positions, Runs* out) except +


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


cdef Runs runs_of(uint32_t stride, positions) except *:
    cdef Runs runs
    if not Runs.of(stride, positions_of(positions), &runs):
        raise ValueError(
            f"positions must ascend, be congruent modulo the stride {stride} and at most 65536"
        )
    return runs
