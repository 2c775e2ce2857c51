"""Entries to append: single entries with tags, lists of entries, and columns of entries."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint32_t
from libcpp.string cimport string

from zlog._native.entry cimport Entry

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from zlog.errors import InvalidTag

if TYPE_CHECKING:
    from typing_extensions import Buffer


@cython.final
@cython.freelist(1024)
@cython.no_gc
cdef class Tagged:
    """An entry to append that has tags. A list of entries contains these and bytes.

    Two entries are equal if their data and tags are equal, in any order of the tags. The length is
    that of the data.

    Args:
        data: the entry.
        tags: the entry's tags, which :func:`tags_checked` checks.
    """

    def __init__(self, data: Buffer, tags: Iterable[str]):
        self.data = data if type(data) is bytes else bytes(buffer_of(data))
        self.tags = checked_tags(tags)

    def __len__(self) -> int:
        return PyBytes_GET_SIZE(self.data)

    def __eq__(self, other):
        if not isinstance(other, Tagged):
            return NotImplemented
        return self.data == (<Tagged> other).data and set(self.tags) == set((<Tagged> other).tags)

    def __hash__(self) -> int:
        return hash((self.data, frozenset(self.tags)))

    def __repr__(self):
        return f"Tagged({self.data!r}, {self.tags!r})"


NewEntry: TypeAlias = bytes | Tagged
"""An entry to append."""

# Tuples of tags that were checked, with the results. Programs pass the same tuples repeatedly.
cdef dict tags_known = {}
cdef enum:
    TAGS_KNOWN_MAX = 4096


cdef object buffer_of(item):
    if isinstance(item, str):
        raise TypeError("an entry must be bytes, not str: encode it first, as in text.encode()")
    try:
        if not isinstance(item, Entry):  # its tags would be lost
            return memoryview(item)
    except TypeError:
        pass
    raise TypeError(f"an entry must be bytes, not {item!r}")


def tags_checked(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of an entry, without duplicates.

    Raises:
        InvalidTag: there are more than 64 tags, or a tag is not 1 to 128 bytes long in UTF-8.
        TypeError: ``tags`` is a single str, or not a collection of str.
    """
    return checked_tags(tags)


cdef tuple checked_tags(tags):
    if type(tags) is not tuple:
        return check_tags(tags)
    try:
        found = tags_known.get(tags)
    except TypeError:  # an element cannot be hashed, so it is not a str
        return check_tags(tags)
    if found is None:
        found = check_tags(tags)
        if len(tags_known) >= TAGS_KNOWN_MAX:
            tags_known.clear()
        tags_known[tags] = found
    return <tuple> found


cdef tuple check_tags(tags):
    cdef Py_ssize_t size
    if isinstance(tags, (str, bytes)):
        raise TypeError(f"tags must be a collection of strings, not a string: write ({tags!r},)")
    if not isinstance(tags, Iterable):
        raise TypeError(f"tags must be a collection of strings, not {tags!r}")
    found = tuple(tags)
    for tag in found:
        if not isinstance(tag, str):
            raise TypeError(f"a tag must be a string, not {tag!r}")
    found = tuple(dict.fromkeys(found))
    if len(found) > ENTRY_TAGS_MAX:
        raise InvalidTag(f"an entry can have at most {ENTRY_TAGS_MAX} tags, not {len(found)}")
    for tag in found:
        try:
            size = len(tag.encode())
        except UnicodeEncodeError:
            raise InvalidTag(
                f"the tag {tag!r} is not valid text: it has an unpaired surrogate"
            ) from None
        if not 0 < size <= TAG_BYTES_MAX:
            raise InvalidTag(
                f"the tag {tag[:40]!r} has {size} bytes in UTF-8; it must have 1 to {TAG_BYTES_MAX}"
            )
    return found


cdef object new_tagged(data, tuple tags):
    cdef Tagged made
    if not tags:
        return data
    made = Tagged.__new__(Tagged)
    made.data = data if type(data) is bytes else bytes(buffer_of(data))
    made.tags = tags
    return made


def with_tags(data: bytes, tags: Iterable[str]) -> NewEntry:
    """Return an entry with these tags, or ``data`` itself if there are none."""
    return new_tagged(data, checked_tags(tags))


def tagged(entries: Sequence[Buffer], tags: Iterable[str]) -> Sequence[NewEntry]:
    """Return entries that all have these tags, or ``entries`` itself if there are none."""
    cdef tuple checked = checked_tags(tags)
    return [new_tagged(data, checked) for data in entries] if checked else entries


def tagged_each(entries: Sequence[Buffer], tags: Sequence[Iterable[str]]) -> list[NewEntry]:
    """Return entries, each with its own tags. Raises ValueError if the lengths differ."""
    if len(entries) != len(tags):
        raise ValueError(f"tags_each has {len(tags)} items for {len(entries)} entries")
    return [new_tagged(data, checked_tags(own)) for data, own in zip(entries, tags)]


@cython.final
cdef class EntryColumn:  # Sequence[bytes]
    """Contiguous entries, as in a column of Arrow, without an object for each of them.

    You can append it like a list of entries. The memory is not copied, and must not change.

    Args:
        offsets: (n + 1) × int32; entry i is ``data[offsets[i]:offsets[i + 1]]``.
        data: the bytes.

    Raises:
        ValueError: the offsets do not ascend, or exceed the data.
    """

    def __init__(self, offsets: Buffer, data: Buffer):
        cdef memoryview ends = memoryview(offsets), content = memoryview(data)
        cdef Py_buffer* of_ends = PyMemoryView_GET_BUFFER(ends)
        cdef Py_buffer* of_content = PyMemoryView_GET_BUFFER(content)
        cdef Py_ssize_t i
        if not ends.c_contiguous or not content.c_contiguous or of_ends.len % 4 or not of_ends.len:
            raise ValueError("a column needs n + 1 contiguous int32 offsets, and bytes")
        self.keeper = (ends, content)
        self.ends, self.data = <const int32_t*> of_ends.buf, <const char*> of_content.buf
        self.count = of_ends.len // 4 - 1
        for i in range(self.count):
            if self.ends[i] > self.ends[i + 1]:
                raise ValueError("a column's offsets must be in ascending order")
        if self.ends[0] < 0 or self.ends[self.count] > of_content.len:
            raise ValueError("a column's offsets must be within its data")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, which: Any) -> Any:
        cdef EntryColumn part
        cdef Py_ssize_t i
        if isinstance(which, slice):
            start, stop, step = which.indices(self.count)
            if step != 1:
                raise ValueError("a slice of a column must have step 1")
            part = EntryColumn.__new__(EntryColumn)
            part.keeper, part.data = self.keeper, self.data
            part.ends, part.count = self.ends + <Py_ssize_t> start, max(0, stop - start)
            return part
        i = which
        if not 0 <= i < self.count:
            raise IndexError("the index must be 0 or more and below the length of the column")
        return PyBytes_FromStringAndSize(self.data + self.ends[i], self.size(i))

    cdef Py_ssize_t size(self, Py_ssize_t i) noexcept:
        return self.ends[i + 1] - self.ends[i]


Sequence.register(EntryColumn)


# Returns the size of an entry's data in bytes. Raises TypeError if it is not bytes-like.
cdef inline Py_ssize_t size_of(item) except -1:
    if type(item) is bytes:
        return PyBytes_GET_SIZE(item)
    return PyBytes_GET_SIZE((<Tagged> item).data) if type(item) is Tagged else buffer_of(item).nbytes


@cython.final
cdef class EntryLimit:
    """The maximum size of an entry in bytes. It may change while a handle is used."""

    def __init__(self, Py_ssize_t bytes_max):
        self.bytes_max = bytes_max


def entries_check(
    entries: Sequence[Buffer | Tagged], Py_ssize_t bytes_max
) -> tuple[int, int] | None:
    """Return the index and size of the first entry that is too large, or None if all fit.

    Raises:
        TypeError: an entry is not bytes-like.
    """
    cdef EntryColumn column = entries if isinstance(entries, EntryColumn) else None
    cdef Py_ssize_t i, size
    for i in range(len(entries)):
        size = size_of(entries[i]) if column is None else column.size(i)
        if size > bytes_max:
            return i, size
    return None


def entries_owned(entries: Sequence[Buffer | Tagged]) -> Sequence[NewEntry]:
    """Return the entries as immutable bytes or Tagged. Returns ``entries`` if it is immutable.

    Raises:
        TypeError: an entry is not bytes-like.
    """
    cdef Py_ssize_t i
    if isinstance(entries, EntryColumn):
        return entries
    for i in range(len(entries)):
        if type(entries[i]) is not bytes and type(entries[i]) is not Tagged:
            return [
                item if type(item) in (bytes, Tagged) else bytes(buffer_of(item))
                for item in entries
            ]
    return entries


def entries_cut(
    entries: Sequence[Buffer | Tagged], Py_ssize_t start, Py_ssize_t count_max, Py_ssize_t bytes_max
) -> int:
    """Return the end of the longest ``entries[start:end]`` within both limits, at least one entry.

    The tags stay within the limits of one write.
    """
    cdef EntryColumn column = entries if isinstance(entries, EntryColumn) else None
    cdef Py_ssize_t end = start, total = len(entries), left = bytes_max, size
    cdef Py_ssize_t names = TAG_NAMES_BYTES_MAX, ids = TAG_IDS_MAX
    last = None
    while end < total and end - start < count_max:
        if column is not None:
            size = column.size(end)
        else:
            item = entries[end]
            size = size_of(item)
            if type(item) is Tagged:
                ids -= len((<Tagged> item).tags)
                if (<Tagged> item).tags is not last:
                    last = (<Tagged> item).tags
                    names -= tags_size(item)
        if (size > left or names < 0 or ids < 0) and end > start:
            break
        left -= size
        end += 1
    return end


def tags_bytes(entries: Sequence[Buffer | Tagged]) -> int:
    """Return the maximum size of the tags in a write: one byte per tag and its text."""
    cdef Py_ssize_t i, size = 0
    if isinstance(entries, EntryColumn):
        return 0
    for i in range(len(entries)):
        item = entries[i]
        if type(item) is Tagged:
            size += tags_size(<Tagged> item)
    return size


cdef class TagsTaken:
    def __cinit__(self):
        self.ids = {}
        self.taken.begins.push_back(0)

    cdef int add(self, object tags) except -1:
        cdef Py_ssize_t length
        cdef const char* text
        cdef size_t at
        if tags is self.last:
            for at in range(self.last_begin, self.last_end):
                self.taken.ids.push_back(self.taken.ids[at])
        else:
            self.last, self.last_begin = tags, self.taken.ids.size()
            for tag in <tuple> tags:
                found = self.ids.get(tag)
                if found is None:
                    found = self.ids[tag] = len(self.ids)
                    text = PyUnicode_AsUTF8AndSize(tag, &length)
                    self.taken.names.push_back(string(text, <size_t> length))
                self.taken.ids.push_back(<uint32_t> found)
            self.last_end = self.taken.ids.size()
        self.taken.begins.push_back(<uint32_t> self.taken.ids.size())
        return 0


cdef TagsTaken tags_taken(owned):
    cdef TagsTaken taken = None
    cdef Py_ssize_t i, count = len(owned)
    if isinstance(owned, EntryColumn):
        return None
    for i in range(count):
        item = owned[i]
        if type(item) is Tagged:
            if taken is None:
                taken = TagsTaken.__new__(TagsTaken)
                taken.taken.begins.assign(<size_t> i + 1, 0)
            taken.add((<Tagged> item).tags)
        elif taken is not None:
            taken.add(())
    return taken
