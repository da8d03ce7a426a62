"""Start a room's gateway."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from csp.cli.arguments import HISTORY_DIR, INSECURE, NATS, TRUST, switch, takes, value
from csp.cli.verb_call import VerbCall
from csp.config import GatewayOptions, Settings, process_environment, settings_for
from csp.errors import BadInput, Refused
from csp.gateway.own_address import check_address, is_loopback, own_address
from csp.room_registry import claim

LAN: Final = value(
    "--lan",
    "ADDRESS",
    "also serve other machines on the network, such as a phone, at this or the default address, with TLS",
    nargs="?",
    const="",
)
#: Not the flag of a setting, because the word means something else to other verbs.
JOURNAL: Final = value(
    "--journal",
    "SERVERS",
    "NATS servers, such as nats://a,nats://b, that keep the journal for several gateways",
)
SECRET_FILE: Final = value(
    "--secret-file", "FILE", "file with the secret that all gateways of a cluster share"
)
PUBLIC_NAME: Final = value(
    "--public-name", "NAMES", "names at which clients reach this through a balancer, separated by commas"
)
PUBLIC_URL: Final = value(
    "--public-url",
    "URL",
    "URL at which browsers reach this one of several gateways, for pages whose own gateway is lost",
)
TLS: Final = (
    value("--tls-cert", "FILE", "certificate file in PEM format"),
    value("--tls-key", "FILE", "private key file in PEM format"),
)
#: The options that define how a gateway can be reached.
REACH: Final = (LAN, *TLS, INSECURE)


@takes(
    value("--host", "ADDRESS", "address to listen on"),
    value("--port", "N", "port to listen on; 0 for any free port"),
    PUBLIC_NAME,
    PUBLIC_URL,
    HISTORY_DIR,
    value("--durability", "LEVEL", "none, flush or fsync"),
    JOURNAL,
    SECRET_FILE,
    *NATS,
    *REACH,
    switch("--supervise", "restart the gateway if it dies"),
    switch("--host-runs", "let this one of several gateways work on review runs, on its machine"),
    value("--dir", "DIR", "directory the room belongs to; default: the current one"),
    TRUST,
    examples=(
        "csp gateway --room review",
        "csp gateway --room review --journal tls://n1.lan,tls://n2.lan,tls://n3.lan --secret-file secret",
    ),
)
def gateway(call: VerbCall) -> int:
    """Run the gateway until it is stopped."""
    options = gateway_options(call)
    options = replace(options, settings=claim(options.settings, process_environment()))
    from csp.gateway.server import run  # loads aiohttp, which no other verb needs

    return run(options)


def gateway_options(call: VerbCall) -> GatewayOptions:
    """Return the gateway options after checking all paths."""
    args = call.args
    cert, key = certificate_files(call)
    dir = call.directory(args.dir)
    return GatewayOptions(
        settings=with_journal(call, settings_for(call.settings, dir, process_environment())),
        tls_cert=cert,
        tls_key=key,
        insecure=args.insecure,
        lan=lan_address(args.lan) if args.lan is not None else "",
        supervise=args.supervise,
        hosts_runs=args.host_runs,
        dir=dir,
    )


def with_journal(call: VerbCall, settings: Settings) -> Settings:
    """Return the settings with the servers given as --journal."""
    text = call.args.journal
    return settings if text is None else replace(settings, journal=text)


def certificate_files(call: VerbCall) -> tuple[Path | None, Path | None]:
    """Return the files of a certificate and its key, if given; raise if only one is given."""
    cert, key = (_file(call, f"--tls-{name}", getattr(call.args, f"tls_{name}")) for name in ("cert", "key"))
    if (cert is None) != (key is None):
        raise BadInput("expected --tls-cert with --tls-key, got only one of them")
    return cert, key


def lan_address(text: str) -> str:
    """Return the address for `--lan`: the given one, or else this machine's address on its network."""
    address = check_address(text) if text else own_address()
    if not address or (not text and is_loopback(address)):
        raise Refused("this machine has no network address", "name one: --lan ADDRESS")
    return address


def reach_of(call: VerbCall) -> tuple[str, ...]:
    """Return the `csp gateway` options that define how the room can be reached."""
    args, (cert, key) = call.args, certificate_files(call)
    words = ["--lan", lan_address(args.lan)] if args.lan is not None else []
    words += ["--tls-cert", str(cert.resolve()), "--tls-key", str(key.resolve())] if cert and key else []
    words += ["--insecure"] if args.insecure else []
    return tuple(words)


def _file(call: VerbCall, flag: str, text: str | None) -> Path | None:
    if text is None:
        return None
    path = call.cwd / Path(text)
    if not path.is_file():
        raise BadInput(f"{flag}: expected a file, got {text!r}")
    return path
