"""The credentials of a sequencer's client, and the authorities that it trusts.

A sequencer's address says whether it uses TLS (``tls://HOST:PORT``). Addresses are in views, and
only a client with caps for the store can change them. The credentials come from the URL of the
store or from the environment. Both name files and never contain a secret.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from zlog._base.sequencer import CREDENTIAL_OPTIONS
from zlog._sequencer.token import Token, read_tokens
from zlog.errors import SequencerRefused


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files with a client's credentials. An empty path means no file.

    Attributes:
        ca: the authorities (PEM) that may sign a sequencer's certificate; by default the system's.
        certificate: this client's certificate (PEM), for sequencers that require one.
        key: the certificate's private key (PEM), if it is not in the same file.
        token_file: a shared secret. The client then refuses sequencers that do not know it.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    token_file: str = ""

    @classmethod
    def of(cls, url: str, environment: Mapping[str, str] = os.environ) -> Credentials:
        """Return the files that a store's URL names, or else those that the environment names."""
        query = parse_qs(urlsplit(url).query)
        return cls(
            **{
                field: query.get(option, [environment.get(f"ZLOG_{option.upper()}", "")])[0]
                for option, field in CREDENTIAL_OPTIONS.items()
            }
        )

    def context(self) -> ssl.SSLContext:
        """Read the files for TLS. Raises SequencerRefused if one is missing or invalid."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None, no_password)
        except (OSError, ValueError) as error:
            files = ", ".join(filter(None, (self.ca, self.certificate, self.key)))
            raise SequencerRefused(
                f"can't speak TLS with sequencers: {reason_of(error)} ({files})",
                hint="Check sequencer_ca, sequencer_cert and sequencer_key in the store's URL, or"
                " the variables ZLOG_SEQUENCER_CA, ZLOG_SEQUENCER_CERT and ZLOG_SEQUENCER_KEY.",
            ) from error
        return context

    def token(self) -> Token | None:
        """Read the shared secret, if a file is named. Raises SequencerRefused if it is invalid."""
        if not self.token_file:
            return None
        try:
            return read_tokens(self.token_file)[0]
        except (OSError, ValueError) as error:
            raise SequencerRefused(
                f"can't use the token for sequencers: {reason_of(error)}",
                hint="Check sequencer_token_file in the store's URL, or the variable"
                " ZLOG_SEQUENCER_TOKEN_FILE.",
            ) from error


NO_CREDENTIALS = Credentials()


def no_password() -> str:
    """Refuse an encrypted private key. OpenSSL would ask for its password at the terminal."""
    raise ValueError("the private key is encrypted: store it without a password")


def reason_of(error: Exception) -> str:
    """Return why something failed, without error numbers and locations in C sources."""
    if isinstance(error, ssl.SSLError):
        if "PEM lib" in str(error):  # OpenSSL's words for a missing part of the file
            return "the file must contain a certificate and its private key in PEM"
        return str(error)
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)  # asyncio's text is longer and less precise
        return f"{error.filename}: {reason}" if error.filename else reason
    return str(error)
