"""What a client of sequencers shows, and what it checks: named in its configuration.

The sequencer's address says whether it speaks TLS (``tls://HOST:PORT``); the address comes from
the store, which only users with its caps can change. What a client trusts and how it proves itself
comes from the URL of the store or the environment, always as paths of files, never as a secret.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from zlog._base.sequencer import CREDENTIAL_OPTIONS
from zlog._sequencer.reasons import reason_of
from zlog._sequencer.token import Token, read_tokens
from zlog.errors import SequencerRefused


@dataclass(frozen=True, slots=True)
class Credentials:
    """Paths of files, each empty where there is none.

    Attributes:
        ca: certificates (PEM) of those who may sign a sequencer's; else the system's.
        certificate: this client's own (PEM), for sequencers that want one.
        key: the private key (PEM) of it; empty where it is in the same file.
        token_file: a shared secret; with one, a sequencer that does not know it is refused.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    token_file: str = ""

    @classmethod
    def of(cls, url: str, environment: Mapping[str, str] = os.environ) -> Credentials:
        """Return what the URL of a store names, and else the environment."""
        query = parse_qs(urlsplit(url).query)
        return cls(
            **{
                field: query.get(option, [environment.get(f"ZLOG_{option.upper()}", "")])[0]
                for option, field in CREDENTIAL_OPTIONS.items()
            }
        )

    def context(self) -> ssl.SSLContext:
        """Return how to speak TLS with a sequencer. The files are read now.

        Raises:
            SequencerRefused: a file is missing or invalid.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None, no_password)
        except (OSError, ValueError) as error:
            files = ", ".join(filter(None, (self.ca, self.certificate, self.key)))
            raise SequencerRefused(
                f"can't speak TLS with sequencers: {reason_of(error)} ({files})",
                hint="Check sequencer_ca, sequencer_cert and sequencer_key in the store's URL, or"
                " the variables ZLOG_SEQUENCER_CA, …_CERT and …_KEY.",
            ) from error
        return context

    def token(self) -> Token | None:
        """Return the shared secret, read now; None if no file is named.

        Raises:
            SequencerRefused: the file is missing or invalid.
        """
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
    """Refuse a private key that asks for a password, rather than ask at the terminal."""
    raise ValueError("the private key is encrypted: store it without a password")
