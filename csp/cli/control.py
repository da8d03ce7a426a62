"""Control agents: stop, pause, approve or remove them."""

import time
from typing import Final

from csp.cli.arguments import JSON, WHOLE, switch, takes, value
from csp.cli.fast_allstop import stopped_line
from csp.cli.output import Progress
from csp.cli.verb_call import VerbCall
from csp.errors import NotFound, Unreachable
from csp.http_client import GatewayClient, Object, field, segment
from csp.human.status_lines import DONE, PROVED

_PENDING: Final = ("queued", "held", "typed")
#: An unused button press expires in the room after 30 s.
_PATIENCE_S: Final = 45.0
_POLL_S: Final = 0.1
_QUIET_S: Final = 1.0
_AGENT: Final = value("agent", "AGENT", "the agent's id")


@takes(_AGENT, JSON, examples=("csp {verb} claude",))
def control(call: VerbCall) -> int:
    """Send a control to an agent; for urgent ones, wait for the outcome."""
    choice = getattr(call.args, "choice", None) or getattr(call.args, "number", None)
    body = {} if choice is None else {"choice": choice}
    pressed: Object = call.gateway.post_once(f"/agents/{segment(call.args.agent)}/{call.args.verb}", body)
    verb, agent = call.args.verb, call.args.agent
    said = f"{DONE[verb]} {agent}"
    if verb not in PROVED:
        return call.tell(pressed, said)
    # Wait even while the gateway is unreachable, because the control is stored.
    path, started = f"/messages/{segment(field(pressed, 'id', str))}", time.monotonic()
    gateway: GatewayClient | None = call.gateway
    state, reason = "queued", ""
    with Progress() as progress:
        while state in _PENDING and time.monotonic() - started < _PATIENCE_S:
            try:
                gateway = gateway or call.reconnect()
                (delivery,) = field(gateway.get(path), "recipients", dict).values()
                state, reason = field(delivery, "state", str), str(delivery.get("reason") or "")
            except Unreachable:
                gateway, reason = None, "the gateway is unreachable"
            if time.monotonic() - started > _QUIET_S:
                progress.show(f"waiting for {agent} ({reason or state})…")
            if state in _PENDING:
                time.sleep(_POLL_S)
    problem = {
        "confirmed": "",
        "submitted": "",
        "failed": f"failed: {reason}",
        "expired": "expired before the agent handled it",
        **dict.fromkeys(_PENDING, f"no confirmation within {_PATIENCE_S:g} s ({reason or state})"),
    }.get(state, state)
    if state == "submitted":
        said = f"sent {verb} to {agent}, which does not confirm it"
    shown = {**pressed, "state": state, **({"reason": reason} if reason else {})}
    call.tell(shown, f"csp: {verb} {agent}: {problem}" if problem else said)
    return 1 if problem else 0


answer_dialog: Final = takes(
    _AGENT,
    value("number", "N", "number of the choice in the agent's dialog", type=WHOLE, nargs="?"),
    value("--choice", "N", "the same", type=WHOLE),
    JSON,
    examples=control.examples,
)(control.run)


@takes(switch("--all", "in every thread"), JSON, examples=("csp stop",))
def stop(call: VerbCall) -> int:
    """Stop all running work in the room."""
    stopped = call.gateway.post_once("/stop", {"all": True} if call.args.all else {})
    return call.tell(stopped, stopped_line(stopped))


@takes(
    _AGENT,
    switch("--end", "also end its program and close its pane"),
    JSON,
    examples=("csp remove codex", "csp remove codex --end"),
)
def remove(call: VerbCall) -> int:
    """Remove an agent from the room; close its pane if its program has ended or should be ended."""
    from csp.panes.down import RemovedPane, close_pane_of

    agent, absent = call.args.agent, None
    try:
        call.gateway.delete(f"/agents/{segment(agent)}")
    except NotFound as error:
        # It may have been removed earlier while its program kept running.
        absent = error
    pane = RemovedPane.NONE
    if call.address.room and (call.args.end or absent is None):
        with Progress() as progress:
            pane = close_pane_of(
                call.settings.state_dir, call.address.room, agent, progress.show, ends_program=call.args.end
            )
    if absent is not None and pane is not RemovedPane.CLOSED:
        raise absent
    still = f"; its program still runs in its pane; end it with: csp remove {agent} --end"
    said = f"removed {agent}" + (still if pane is RemovedPane.RUNNING else "")
    return call.tell({"success": True, "pane": pane}, said)
