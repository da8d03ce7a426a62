"""The self-signed certificate of a room that other machines on the network can reach, for one address.

No authority vouches for it, so a browser warns once, and a person can compare its fingerprint. It is not
an authority itself: a machine that trusts it trusts nothing else that is signed with this key.
"""

import fcntl
import importlib.util
import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from csp.errors import BadInput, Broken, Refused
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.fast_start.process_environment import xdg
from csp.fast_start.room_files import make_private_dir

#: The longest lifetime that browsers and phones accept.
VALID: Final = timedelta(days=365)
#: A certificate that expires sooner is renewed.
MIN_LEFT: Final = timedelta(days=30)
#: A phone's clock may be slow.
_SLOW_CLOCK: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LanCertificate:
    """The files that contain a certificate and its key."""

    cert: Path
    key: Path

    @property
    def fingerprint(self) -> str:
        """The SHA-256 fingerprint, formatted as in browsers."""
        digest = sha256(ssl.PEM_cert_to_DER_cert(self.cert.read_text("ascii"))).hexdigest().upper()
        return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for a server with this certificate."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(self.cert, self.key)
        return found


def certificate_folder(env: Mapping[str, str]) -> Path:
    """Return the folder that contains the user's certificates."""
    data = xdg(env, "XDG_DATA_HOME", ".local/share")
    if not data:
        raise BadInput("HOME: expected the path of a home directory, got nothing")
    return Path(data) / "csp" / "tls"


def certificate_of(folder: Path, address: str) -> LanCertificate:
    """Return the files of an address's certificate, which may not exist."""
    name = address.replace(":", "-")
    return LanCertificate(folder / f"{name}.crt", folder / f"{name}.key")


def ensure_certificate(folder: Path, address: str, now: datetime) -> LanCertificate:
    """Return the certificate for an address; create it if there is none or if it expires soon."""
    check_installed()
    found = certificate_of(folder, address)
    try:
        make_private_dir(folder)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # Two rooms may start at the same time.
            fcntl.flock(fd, fcntl.LOCK_EX)
            if not is_usable(found, address, now):
                cert, key = make_certificate(address, now)
                replace_file(found.key, key)
                replace_file(found.cert, cert)
        finally:
            os.close(fd)
    except OSError as exc:
        raise Broken(f"cannot write to {folder}: {(exc.strerror or '').lower()}") from exc
    return found


def is_usable(found: LanCertificate, address: str, now: datetime) -> bool:
    """Return whether a certificate is for this address, is valid for a while, and matches its private key."""
    from cryptography import x509

    try:
        cert = x509.load_pem_x509_certificate(read_plain(found.cert))
        names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        is_for = ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)
        is_private = not any(path.stat().st_mode & 0o077 for path in (found.cert, found.key))
        found.context()
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    return is_for and is_private and cert.not_valid_before_utc <= now <= cert.not_valid_after_utc - MIN_LEFT


def make_certificate(address: str, now: datetime) -> tuple[bytes, bytes]:
    """Return a new certificate for an address and its key, both in PEM format."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "CSP"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, socket.gethostname()[:64] or address),
        ]
    )
    extensions = (
        (x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    )
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _SLOW_CLOCK).not_valid_after(now + VALID)
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    return (
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def check_installed() -> None:
    """Raise if the package that creates certificates is not installed."""
    if importlib.util.find_spec("cryptography") is None:
        hint = "install the extra lan, for example: pip install 'csp-groupchat[lan]'"
        raise Refused("the package 'cryptography' is not installed", hint)
