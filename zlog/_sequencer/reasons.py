"""What an error of Python's says, in words for users."""

from __future__ import annotations

import os
import socket
import ssl


def reason_of(error: Exception) -> str:
    """Return why something failed, without numbers of errors and places in C sources."""
    if isinstance(error, ssl.SSLError):
        if "PEM lib" in str(error):  # so OpenSSL says that something is missing in the file
            return "no certificate with its private key is there, in PEM"
        return str(error)
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)  # asyncio's own text for it is longer and says less
        return f"{error.filename}: {reason}" if error.filename else reason
    return str(error)
