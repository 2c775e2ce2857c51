"""The compiled part: encoding, decoding, windows of entries, and stores.

Each module has one subject, and names are imported from the module that defines them. ``local``
uses LMDB, ``rados`` uses librados. The build writes the stub of each (``.pyi``) next to its code.
"""
