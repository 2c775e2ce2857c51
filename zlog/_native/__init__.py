"""The compiled part: ``core`` over LMDB and memory, ``rados`` over librados.

The stubs (``core.pyi``, ``rados.pyi``) are their documentation.
"""
