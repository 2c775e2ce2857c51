"""The compiled part: encoding, decoding, windows of entries, and stores.

Each module has one subject, and names are imported from the module that defines them. ``local``
uses LMDB, and ``rados`` uses librados. The build writes their stubs (``.pyi``) next to the code.
"""
