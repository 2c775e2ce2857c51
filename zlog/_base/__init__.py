"""The base of all layers of the client: ``Io``, deadlines, names, codes, errors and options."""
