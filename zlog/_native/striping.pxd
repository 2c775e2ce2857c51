# Positions of one stripe object (cls_zlog/base/striping.h), for the modules that take them.

from libc.stdint cimport uint32_t, uint64_t
from libcpp.vector cimport vector


cdef extern from "cls_zlog/base/striping.h" namespace "zlog" nogil:
    cdef cppclass Striping:
        uint32_t stride
        uint32_t shift
        uint32_t residue(uint64_t position)
        uint64_t next(uint64_t position)
        uint64_t after(uint64_t position, uint64_t count)
        uint64_t count(uint64_t first, uint64_t end)
        vector[uint64_t] firsts(uint64_t first, uint64_t end)

    cdef uint32_t UNIT_SHIFT_MAX "zlog::limits::unit_shift_max"
    cdef uint32_t WIDTH_MAX "zlog::limits::width_max"

cdef extern from "cls_zlog/wire/runs.h" namespace "zlog" nogil:
    Striping unpacked(uint32_t striping)


# Returns the striping that a number encodes: its stride, and its shift from bit 16 on.
cdef inline Striping striping_of(uint32_t number) except *:
    cdef Striping striping = unpacked(number)
    if not (1 <= striping.stride <= WIDTH_MAX and striping.shift <= UNIT_SHIFT_MAX):
        raise ValueError(f"{number} is not a valid striping: see ObjectRef.striping")
    return striping


# Returns the positions of a sequence. Raises OverflowError if one is not a uint64.
cdef inline vector[uint64_t] positions_of(positions) except *:
    cdef vector[uint64_t] out
    cdef uint64_t first, i
    cdef long long step
    cdef Py_ssize_t count = len(positions)
    out.reserve(count)
    if isinstance(positions, range) and count > 0 and positions.step > 0:
        first, step = positions.start, positions.step
        positions[-1].to_bytes(8, "little")  # OverflowError if the last position is not a uint64
        for i in range(<uint64_t> count):
            out.push_back(first + i * <uint64_t> step)
    else:
        for position in positions:
            out.push_back(position)
    return out
