"""Start the gateway of a room."""

from dataclasses import replace
from pathlib import Path

from csp.cli.arguments import HISTORY_DIR, TRUST, switch, takes, value
from csp.cli.verb_call import VerbCall
from csp.config import GatewayOptions, process_environment, settings_for
from csp.errors import BadInput
from csp.room_registry import claim


@takes(
    value("--host", "ADDRESS", "address to listen on"),
    value("--port", "N", "port to listen on; 0 takes any free one"),
    HISTORY_DIR,
    value("--durability", "LEVEL", "none, flush or fsync"),
    value("--tls-cert", "FILE", "certificate, as pem"),
    value("--tls-key", "FILE", "key of the certificate, as pem"),
    switch("--insecure", "allow an address other than loopback without tls"),
    switch("--supervise", "start the gateway again when it dies"),
    value("--dir", "DIR", "directory the room belongs to; default: the current one"),
    TRUST,
    examples=("csp gateway --room review",),
)
def gateway(call: VerbCall) -> int:
    """Run the gateway until it is told to end."""
    options = gateway_options(call)
    options = replace(options, settings=claim(options.settings, process_environment()))
    from csp.gateway.server import run  # loads aiohttp, which no other verb needs

    return run(options)


def gateway_options(call: VerbCall) -> GatewayOptions:
    """Return the options with every path checked."""
    args = call.args
    cert, key = _file(call, "--tls-cert", args.tls_cert), _file(call, "--tls-key", args.tls_key)
    if (cert is None) != (key is None):
        raise BadInput("expected --tls-cert with --tls-key, got only one of them")
    dir = call.directory(args.dir)
    return GatewayOptions(
        settings=settings_for(call.settings, dir, process_environment()),
        tls_cert=cert,
        tls_key=key,
        insecure=args.insecure,
        supervise=args.supervise,
        dir=dir,
    )


def _file(call: VerbCall, flag: str, text: str | None) -> Path | None:
    if text is None:
        return None
    path = call.cwd / Path(text)
    if not path.is_file():
        raise BadInput(f"{flag}: expected a file, got {text!r}")
    return path
