# Tags of entries on their way in: checked, and turned into what requests have.

from collections.abc import Iterable

from zlog.errors import InvalidTag

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef extern from "cls_zlog/client/write_encoder.h" namespace "zlog" nogil:
    cdef cppclass EntryTags:
        vector[string] names
        vector[uint32_t] begins
        vector[uint32_t] ids


# An entry on its way in, with tags.
@cython.final
@cython.freelist(1024)
@cython.no_gc
cdef class Tagged:
    cdef readonly bytes data
    cdef readonly tuple tags

    def __init__(self, data, tags):
        self.data = data if type(data) is bytes else bytes(buffer_of(data))
        self.tags = checked_tags(tags)

    def __len__(self):
        return PyBytes_GET_SIZE(self.data)

    def __eq__(self, other):
        if not isinstance(other, Tagged):
            return NotImplemented
        return self.data == (<Tagged> other).data and set(self.tags) == set((<Tagged> other).tags)

    def __hash__(self):
        return hash((self.data, frozenset(self.tags)))

    def __repr__(self):
        return f"Tagged({self.data!r}, {self.tags!r})"


cdef enum:
    ENTRY_TAGS_MAX = 64
    TAG_BYTES_MAX = 128
    TAG_NAMES_BYTES_MAX = 1 << 20  # of one write
    TAG_IDS_MAX = 1 << 18


# Tuples of tags that were checked, and what they are: programs give the same ones again and again.
cdef dict tags_known = {}
cdef enum:
    TAGS_KNOWN_MAX = 4096


def tags_checked(tags):
    return checked_tags(tags)


cdef tuple checked_tags(tags):
    if type(tags) is not tuple:
        return check_tags(tags)
    try:
        found = tags_known.get(tags)
    except TypeError:  # one of them can't be hashed, and is no text
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
        raise TypeError(f"tags are a collection of text, not one: write ({tags!r},)")
    if not isinstance(tags, Iterable):
        raise TypeError(f"tags are a collection of text, not {tags!r}")
    found = tuple(tags)
    for tag in found:
        if not isinstance(tag, str):
            raise TypeError(f"a tag is text, not {tag!r}")
    found = tuple(dict.fromkeys(found))
    if len(found) > ENTRY_TAGS_MAX:
        raise InvalidTag(f"{len(found)} tags; an entry has up to {ENTRY_TAGS_MAX}")
    for tag in found:
        try:
            size = len(tag.encode())
        except UnicodeEncodeError:
            raise InvalidTag(f"the tag {tag!r} is no valid text: it has half a character") from None
        if not 0 < size <= TAG_BYTES_MAX:
            raise InvalidTag(
                f"the tag {tag[:40]!r} has {size} bytes in UTF-8; tags have 1 to {TAG_BYTES_MAX}"
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


def with_tags(data, tags):
    return new_tagged(data, checked_tags(tags))


def tagged(entries, tags):
    cdef tuple checked = checked_tags(tags)
    return [new_tagged(data, checked) for data in entries] if checked else entries


def tagged_each(entries, tags):
    """Return entries with the tags of each. Raises ValueError if the numbers differ."""
    if len(entries) != len(tags):
        raise ValueError(f"tags_each has tags for {len(tags)} entries, and there are {len(entries)}")
    return [new_tagged(data, checked_tags(own)) for data, own in zip(entries, tags)]


# Bytes that an entry's tags take in its request, at most.
cdef inline Py_ssize_t tags_size(Tagged item) except -1:
    cdef Py_ssize_t size = 0, length
    for tag in item.tags:
        PyUnicode_AsUTF8AndSize(tag, &length)
        size += length + 1
    return size


def tags_bytes(entries):
    cdef Py_ssize_t i, size = 0
    if isinstance(entries, EntryColumn):
        return 0
    for i in range(len(entries)):
        item = entries[i]
        if type(item) is Tagged:
            size += tags_size(<Tagged> item)
    return size


# Gathers the tags of entries one after the other.
cdef class TagsTaken:
    cdef EntryTags taken
    cdef dict ids
    cdef object last  # the tags that came last, and theirs
    cdef size_t last_begin
    cdef size_t last_end

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
    """The tags of entries; None where none has any."""
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
