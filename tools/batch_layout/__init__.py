"""Which physical layout of a batch in a stripe object is the fastest? See docs/decisions/0007.

The object class is built once for each layout, from this source with one limit changed. For each
kind of operation there is a fresh OSD for each layout, and they take turns: a C++ program
(``zlog-limits``) writes through the class, and reads ranges of what such writes have left.
"""
