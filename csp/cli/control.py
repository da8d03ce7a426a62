"""Steer agents: stop, pause, approve, remove."""

from csp.cli.call import Call
from csp.cli.terminal import put_json, talk
from csp.oneshot import field, segment

_DONE = {
    "pause": "paused",
    "resume": "resumed",
    "share": "sharing",
    "noshare": "no longer sharing",
    "interrupt": "asked to interrupt",
    "approve": "approved",
    "deny": "denied",
    "restart": "asked to restart",
}


def control(call: Call) -> int:
    """Press one of an agent's buttons."""
    choice = getattr(call.args, "choice", None)
    body = {} if choice is None else {"choice": choice}
    answer = call.gateway.post(f"/agents/{segment(call.args.agent)}/{call.args.verb}", body)
    if call.is_json:
        put_json(answer)
    else:
        talk(f"{_DONE[call.args.verb]} {call.args.agent}")
    return 0


def stop(call: Call) -> int:
    """Stop what is running in the room."""
    answer = call.gateway.post("/stop", {"all": True} if call.args.all else {})
    if call.is_json:
        put_json(answer)
        return 0
    stopped = field(answer, "stopped", list)
    talk(f"stopped {', '.join(map(str, stopped))}" if stopped else "nothing was running")
    return 0


def remove(call: Call) -> int:
    """Remove an agent from the room."""
    answer = call.gateway.delete(f"/agents/{segment(call.args.agent)}")
    if call.is_json:
        put_json(answer)
    else:
        talk(f"removed {call.args.agent}")
    return 0
