"""Certificates for tests of TLS, made with the openssl program that ca-certificates brings."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Authority:
    """Signs certificates. All paths are strings, as options take them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.certificate = str(folder / f"{name}.pem")
        self._key = str(folder / f"{name}.key")
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "30", "-subj", f"/CN={name}", "-keyout", self._key),
            *("-addext", "keyUsage=critical,keyCertSign", "-out", self.certificate),
        )

    def sign(self, name: str, host: str = "IP:127.0.0.1") -> str:
        """Make a certificate for a host; returns the file with it and its key."""
        both = self._folder / f"{self._name}-{name}.pem"
        request, key, certificate = (both.with_suffix(end) for end in (".csr", ".key", ".crt"))
        extensions = both.with_suffix(".ext")
        extensions.write_text(f"authorityKeyIdentifier=keyid\nsubjectAltName={host}\n")
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-days", "30", "-in", str(request), "-CA", self.certificate),
            *("-CAkey", self._key, "-CAcreateserial", "-extfile", str(extensions)),
            *("-out", str(certificate)),
        )
        both.write_text(certificate.read_text() + key.read_text())
        return str(both)


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
