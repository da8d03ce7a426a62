"""Start a hub, which serves many rooms."""

from dataclasses import replace

from csp.cli.arguments import HISTORY_DIR, INSECURE, NATS, SECONDS, switch, takes, value
from csp.cli.gateway import (
    JOURNAL,
    PUBLIC_NAME,
    PUBLIC_URL,
    SECRET_FILE,
    TLS,
    certificate_files,
    with_journal,
)
from csp.cli.verb_call import VerbCall
from csp.config import GatewayOptions, history_dirs, process_environment
from csp.errors import BadInput


@takes(
    value("--host", "ADDRESS", "address to listen on"),
    value("--port", "N", "port to listen on; 0 for any free port"),
    PUBLIC_NAME,
    PUBLIC_URL,
    HISTORY_DIR,
    JOURNAL,
    SECRET_FILE,
    *NATS,
    *TLS,
    INSECURE,
    value("--idle", "S", "seconds after which an unused room is let go; default: 600", type=SECONDS),
    switch("--supervise", "restart the hub if it dies"),
    examples=(
        "csp hub --journal nats://127.0.0.1:4222 --secret-file secret",
        "csp hub --journal tls://n1.lan,tls://n2.lan,tls://n3.lan --secret-file secret "
        "--host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
    ),
)
def hub(call: VerbCall) -> int:
    """Run the hub until it is stopped."""
    options = hub_options(call)
    from csp.gateway.hub_server import serve_hub  # loads aiohttp
    from csp.gateway.server import run

    return run(options, serve_hub)


def hub_options(call: VerbCall) -> GatewayOptions:
    """Return the options of the hub after checking all paths."""
    args, settings = call.args, with_journal(call, call.settings)
    if not settings.journal:
        raise BadInput(
            "a hub needs the NATS servers of a cluster", "add --journal nats://A,nats://B,nats://C"
        )
    if not settings.is_set("history_dir"):
        settings = replace(settings, history_dir=history_dirs(process_environment())[-1])
    cert, key = certificate_files(call)
    idle = {} if args.idle is None else {"idle_s": args.idle}
    return GatewayOptions(
        settings=settings,
        tls_cert=cert,
        tls_key=key,
        insecure=args.insecure,
        supervise=args.supervise,
        dir=call.cwd,
        **idle,
    )
