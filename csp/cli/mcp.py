"""Serve the room to an MCP client."""

from dataclasses import replace
from pathlib import Path

from csp.cli.arguments import takes, value
from csp.cli.output import talk
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import Unreachable
from csp.fast_start.process_environment import unnamed_runtime_dir
from csp.http_client import GatewayClient
from csp.room_registry import Address, find_room


@takes(
    value("--name", "NAME", "join the room as an agent with this name; default: act as you"),
    examples=("csp mcp --name scout",),
)
def mcp(call: VerbCall) -> int:
    """Serve one client on stdin and stdout until it disconnects; find the room when it is needed."""
    from csp.mcp.outside_member import OutsideMember
    from csp.mcp.room_client import HttpRoomClient
    from csp.mcp.stdio import serve

    def connect() -> GatewayClient:
        found = find(call)
        return GatewayClient(found.url, found.token)

    if call.args.name and not call.settings.agent:
        member = OutsideMember(call.args.name, lambda: find(call), call.settings.state_dir)
        member.stay()
        try:
            serve(member.network)
        finally:
            member.leave()
        return 0
    if call.args.name:
        talk(f"csp: --name is not needed here: this pane is agent {call.settings.agent!r}")
    serve(HttpRoomClient(connect))
    return 0


def find(call: VerbCall) -> Address:
    """Return the room, even if the client did not pass XDG_RUNTIME_DIR on."""
    try:
        return find_room(call.settings, call.cwd)
    except Unreachable:
        folder = unnamed_runtime_dir(process_environment())
        if not folder:
            raise
        return find_room(replace(call.settings, state_dir=Path(folder)), call.cwd)
