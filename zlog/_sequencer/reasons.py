"""Reasons of Python's errors, in words for users."""

from __future__ import annotations

import os
import socket
import ssl


def reason_of(error: Exception) -> str:
    """Return why something failed, without error numbers and places in C sources."""
    if isinstance(error, ssl.SSLError):
        if "PEM lib" in str(error):  # OpenSSL's words for a missing part of the file
            return "the file lacks a certificate or its private key, in PEM"
        return str(error)
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)  # asyncio's text is longer and less precise
        return f"{error.filename}: {reason}" if error.filename else reason
    return str(error)
