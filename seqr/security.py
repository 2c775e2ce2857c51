"""What a sequencer shows and demands: its certificate, its clients' ones, and tokens."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from zlog._sequencer.credentials import Credentials, no_password
from zlog._sequencer.reasons import reason_of
from zlog._sequencer.token import read_tokens
from zlog.seqr.machine.admission import Admission


@dataclass(frozen=True, slots=True)
class Security:
    """Paths of files, each empty where there is none. They are read when the sequencer starts.

    Attributes:
        certificate: the sequencer's own (PEM), with which it speaks TLS and nothing else.
        key: the private key (PEM) of it; empty where it is in the same file.
        client_ca: certificates (PEM) of those who may sign a client's, which is then demanded.
        token_file: the tokens, of which a client must know one.
        token_optional: also serve clients that have no token.
    """

    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    token_file: str = ""
    token_optional: bool = False

    def __post_init__(self) -> None:
        if (self.key or self.client_ca) and not self.certificate:
            raise ValueError("a key, or certificates of clients, need the sequencer's own one")
        if self.token_optional and not self.token_file:
            raise ValueError("an optional token needs a file of tokens")

    def context(self) -> ssl.SSLContext | None:
        """Return how to speak TLS; None for not at all.

        Raises:
            ValueError: a file is missing or invalid.
        """
        if not self.certificate:
            return None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0  # sessions are not resumed here
            context.load_cert_chain(self.certificate, self.key or None, no_password)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                # A client without one hears so after the handshake: a failed one says nothing.
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ValueError) as error:
            files = ", ".join(filter(None, (self.certificate, self.key, self.client_ca)))
            raise ValueError(f"can't speak TLS: {reason_of(error)} ({files})") from error
        return context

    def admission(self) -> Admission:
        """Return whom to let in.

        Raises:
            ValueError: the file of tokens is missing or invalid.
        """
        try:
            tokens = read_tokens(self.token_file) if self.token_file else ()
        except OSError as error:
            raise ValueError(f"can't read the tokens: {error}") from error
        return Admission(tokens, optional=self.token_optional)

    def as_client(self, given: Credentials) -> Credentials:
        """Return what to show to the namespace's other sequencers, which are set up like this one.

        Args:
            given: what the store's URL and the environment name; who is trusted comes from there.
        """
        return Credentials(
            given.ca,
            given.certificate or self.certificate,
            given.key if given.certificate else self.key,
            self.token_file or given.token_file,
        )


OPEN_TO_ALL = Security()
