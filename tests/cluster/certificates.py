"""Certificates of an own CA, as `openssl` makes them."""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """The files of a certificate, and of the CA that signed it."""

    cert: Path
    key: Path
    ca: Path

    @property
    def config(self) -> str:
        """What a NATS server needs to know of it."""
        return f'cert_file: "{self.cert}", key_file: "{self.key}", ca_file: "{self.ca}"'


def make_certificate(folder: Path, *addresses: str) -> Certificate:
    """Make a CA and a certificate for this machine, and for more addresses of it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Certificate(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    own = ["-keyout", str(folder / "ca.key"), "-out", str(found.ca), "-subj", "/CN=csp test CA"]
    _openssl(*key, *own, "-addext", "keyUsage=critical,keyCertSign")
    named = ["-keyout", str(found.key), "-out", str(found.cert), "-subj", "/CN=localhost"]
    known = ",".join(["DNS:localhost", "IP:127.0.0.1", *(f"IP:{one}" for one in addresses)])
    names = ["-addext", f"subjectAltName={known}", "-addext", "basicConstraints=CA:FALSE"]
    _openssl(*key, *named, *names, "-CA", str(found.ca), "-CAkey", str(folder / "ca.key"))
    return found


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", "req", "-x509", *words], check=True, capture_output=True)
