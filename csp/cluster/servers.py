"""The NATS servers of a cluster, and how to connect to them."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from csp.config import Settings
from csp.errors import BadInput
from csp.setting_types import is_loopback

PORT: Final = 4222
_FORM: Final = "write nats://HOST:4222, or tls://HOST:4222 for encrypted connections"
#: Marks a file that contains a JWT in addition to the seed of its key.
_JWT: Final = b"BEGIN NATS USER JWT"


@dataclass(frozen=True, slots=True)
class NatsServers:
    """The addresses of the servers, the CA file that verifies them, and the file with our credentials."""

    urls: tuple[str, ...]
    ca: Path | None = None
    creds: Path | None = None

    def __str__(self) -> str:
        return ",".join(self.urls)

    def connect_options(self, url: str) -> dict[str, Any]:
        """Return the options with which the client of NATS connects to one of the servers."""
        options: dict[str, Any] = {}
        if url.startswith("tls:"):
            options["tls"] = tls_context(self.ca)
        if self.creds is not None:
            has_jwt = _JWT in self.creds.read_bytes()
            options["user_credentials" if has_jwt else "nkeys_seed"] = str(self.creds)
        return options


def read_servers(text: str, settings: Settings, *, is_insecure: bool = False) -> NatsServers:
    """Return the servers in a comma-separated list; raise BadInput if they cannot be used.

    Connections over nats:// are not encrypted, so they are for this machine only, unless `is_insecure`.
    """
    urls = tuple(_read_url(part.strip(), is_insecure=is_insecure) for part in text.split(","))
    if len({urlsplit(url).scheme for url in urls}) > 1:
        raise BadInput(f"expected all servers with nats:// or all with tls://, got {text!r}")
    for name, file in (("CSP_NATS_CA", settings.nats_ca), ("CSP_NATS_CREDS", settings.nats_creds)):
        if file is not None and not file.is_file():
            raise BadInput(f"{name}: expected a file, got {str(file)!r}")
    servers = NatsServers(urls, settings.nats_ca, settings.nats_creds)
    if urls[0].startswith("tls:"):
        tls_context(servers.ca)
    return servers


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """Return the context that checks a server's certificate, with the system's CAs unless `ca` is given."""
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as exc:
        raise BadInput(f"CSP_NATS_CA: cannot use {str(ca)!r}: {exc}") from exc


def _read_url(text: str, *, is_insecure: bool) -> str:
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", 0
    if not host or port == 0 or url.scheme not in ("nats", "tls") or url.path or url.query or url.fragment:
        raise BadInput(f"expected the address of a NATS server, got {text!r}", _FORM)
    if "@" in url.netloc:
        # The list of processes shows command lines to every user of the machine.
        raise BadInput(
            "an address of a NATS server must not contain a user", "name a file with CSP_NATS_CREDS"
        )
    if url.scheme == "nats" and not is_insecure and not is_loopback(host):
        problem = f"NATS server {host!r} is on another machine, and nats:// is not encrypted"
        raise BadInput(problem, "use tls://, or add --insecure")
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}:{port or PORT}"
