"""Logs over HTTP: the Durable Streams Protocol, and a plain API for all logs.

:class:`Service` is an ASGI application. ``zlog http`` serves it with :func:`serve`; see
docs/http.md. The packages that this module needs are in the extra ``http``.
"""

from __future__ import annotations

from zlog.web._access import Access as Access
from zlog.web._paths import log_name as log_name
from zlog.web._paths import path_of as path_of
from zlog.web._server import check_certificate as check_certificate
from zlog.web._server import listen as listen
from zlog.web._server import serve as serve
from zlog.web._service import Limits as Limits
from zlog.web._service import Service as Service

__all__ = [
    "Access",
    "Limits",
    "Service",
    "check_certificate",
    "listen",
    "log_name",
    "path_of",
    "serve",
]
