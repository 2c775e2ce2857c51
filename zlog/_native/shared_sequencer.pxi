# The sequencer that processes share through memory (cls_zlog/host/lmdb/shared_sequencer.h).

from libc.errno cimport EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EOVERFLOW, ESTALE, ETIMEDOUT

from zlog.errors import LogExhausted, SequencerTimeout, SequencerUnavailable


cdef extern from "cls_zlog/host/lmdb/shared_sequencer.h" namespace "zlog" nogil:
    cdef cppclass CppSharedSequencer "zlog::SharedSequencer":
        @staticmethod
        int open(const string& directory, shared_ptr[CppSharedSequencer]* sequencer) except +raise_caught
        @staticmethod
        int open_anonymous(shared_ptr[CppSharedSequencer]* sequencer) except +raise_caught
        int activate(uint64_t log_id, uint64_t epoch, uint64_t tail)
        int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first)
        int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail)
        int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail)
        int release(uint64_t log_id)


DIRECTORY_HINT = "`zlog doctor` examines the store's directory."
DIRECTORY_HINTS = {-ENOSPC: "Free space on its disk."} | {
    -code: from_errno(-code, "").hint for code in (EMFILE, ENFILE, ENOMEM)
}

# True when the log is active at the epoch that was asked for, False when not.
cdef bint granted(int error) except -1:
    if error == 0:
        return True
    if error == -ESTALE:
        return False
    if error == -ETIMEDOUT:
        raise SequencerTimeout(
            "a stopped process holds the shared sequencer",
            hint="Let it go on (`kill -CONT`), or end it.",
        )
    if error == -ENOSPC:
        raise SequencerUnavailable(
            "the shared sequencer serves 1024 logs and has no room for another",
            hint="Remove logs, or keep some in another directory.",
        )
    if error == -EOVERFLOW:
        raise LogExhausted("the log has no position left below 2^63")
    raise SequencerUnavailable(
        f"the shared sequencer failed: {os.strerror(-error)}", hint=DIRECTORY_HINT
    )


cdef class SharedSequencer:
    cdef shared_ptr[CppSharedSequencer] shared

    def __cinit__(self, directory=None):
        cdef string folder = b"" if directory is None else os.fsencode(directory)
        cdef int error
        with nogil:
            if folder.empty():
                error = CppSharedSequencer.open_anonymous(&self.shared)
            else:
                error = CppSharedSequencer.open(folder, &self.shared)
        if error != 0:
            raise SequencerUnavailable(
                f"can't share a sequencer in {directory}: {os.strerror(-error)}",
                hint=DIRECTORY_HINTS.get(error, DIRECTORY_HINT),
            )

    def activate(self, uint64_t log_id, uint64_t epoch, uint64_t tail):
        cdef int error
        with nogil:
            error = deref(self.shared).activate(log_id, epoch, tail)
        return granted(error)

    def next(self, uint64_t log_id, uint64_t epoch, uint64_t count):
        cdef uint64_t first = 0
        cdef int error
        with nogil:
            error = deref(self.shared).next(log_id, epoch, count, &first)
        return first if granted(error) else None

    def tail(self, uint64_t log_id, uint64_t epoch):
        cdef uint64_t tail = 0
        cdef int error
        with nogil:
            error = deref(self.shared).tail(log_id, epoch, &tail)
        return tail if granted(error) else None

    def wait(self, uint64_t log_id, uint64_t epoch, uint64_t position, timeout=None):
        cdef Wait budget = Wait(timeout)
        cdef uint64_t tail = 0
        cdef int error, slice_ms
        while True:
            slice_ms = budget.slice_ms(SLICE_MS)
            with nogil:
                error = deref(self.shared).wait(log_id, epoch, position, slice_ms, &tail)
            if error != -EAGAIN:
                return tail if granted(error) else None
            if budget.over():
                return None

    def release(self, uint64_t log_id):
        cdef int error
        with nogil:
            error = deref(self.shared).release(log_id)
        granted(error)
