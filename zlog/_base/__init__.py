"""What every layer of the client uses: ``Io``, deadlines, names, codes, errors, options."""
