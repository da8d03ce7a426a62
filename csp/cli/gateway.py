"""Start the gateway of a room."""

from pathlib import Path

from csp.cli.verb_call import VerbCall
from csp.config import GatewayOptions
from csp.errors import BadInput


def gateway(call: VerbCall) -> int:
    """Run the gateway until it is told to end."""
    options = gateway_options(call)
    from csp.gateway.server import run  # loads aiohttp, which no other verb needs

    return run(options)


def gateway_options(call: VerbCall) -> GatewayOptions:
    """Return the options with every path checked."""
    args = call.args
    cert, key = _file(call, "--tls-cert", args.tls_cert), _file(call, "--tls-key", args.tls_key)
    if (cert is None) != (key is None):
        raise BadInput("expected --tls-cert with --tls-key, got only one of them")
    return GatewayOptions(
        settings=call.settings,
        tls_cert=cert,
        tls_key=key,
        insecure=args.insecure,
        supervise=args.supervise,
        dir=call.directory(args.dir),
    )


def _file(call: VerbCall, flag: str, text: str | None) -> Path | None:
    if text is None:
        return None
    path = call.cwd / Path(text)
    if not path.is_file():
        raise BadInput(f"{flag}: expected a file, got {text!r}")
    return path
