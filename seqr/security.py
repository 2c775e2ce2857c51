"""A sequencer's certificate, and the certificates and tokens that it requires."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from zlog._sequencer.credentials import Credentials, no_password, reason_of
from zlog._sequencer.token import read_tokens
from zlog.seqr.machine.admission import Admission


@dataclass(frozen=True, slots=True)
class Security:
    """The paths of a sequencer's certificates and tokens. An empty path means no file.

    Attributes:
        certificate: the sequencer's certificate (PEM). If it is given, the sequencer accepts only
            TLS.
        key: the certificate's private key (PEM), if it is in another file.
        client_ca: authorities' certificates (PEM). If they are given, each client needs a
            certificate that one of the authorities has signed.
        token_file: the accepted tokens, one per line. If they are given, each client needs one.
        token_optional: whether clients without a token are also accepted.
    """

    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    token_file: str = ""
    token_optional: bool = False

    def __post_init__(self) -> None:
        if (self.key or self.client_ca) and not self.certificate:
            raise ValueError("a private key or a client CA needs the sequencer's certificate")
        if self.token_optional and not self.token_file:
            raise ValueError("token_optional cannot be used without a token file")

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS settings, if TLS is used. Raises ValueError if a file is invalid."""
        if not self.certificate:
            return None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0  # sessions are not resumed here
            context.load_cert_chain(self.certificate, self.key or None, no_password)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                # A failed handshake could not say that a certificate is missing.
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ValueError) as error:
            files = ", ".join(filter(None, (self.certificate, self.key, self.client_ca)))
            raise ValueError(f"can't speak TLS: {reason_of(error)} ({files})") from error
        return context

    def admission(self) -> Admission:
        """Return the rules of admission. Raises ValueError if the file of tokens is invalid."""
        try:
            tokens = read_tokens(self.token_file) if self.token_file else ()
        except OSError as error:
            raise ValueError(f"can't read the tokens: {error}") from error
        return Admission(tokens, optional=self.token_optional)

    def as_client(self, given: Credentials) -> Credentials:
        """Return the credentials that this sequencer presents to other sequencers.

        Args:
            given: the credentials from the store's URL and the environment.
        """
        return Credentials(
            given.ca,
            given.certificate or self.certificate,
            given.key if given.certificate else self.key,
            self.token_file or given.token_file,
        )


OPEN_TO_ALL = Security()
