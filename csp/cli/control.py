"""Steer agents: stop, pause, approve, remove."""

import time
from typing import Final

from csp.cli.fast_stop import stopped_line
from csp.cli.output import Progress, put_json, talk
from csp.cli.verb_call import VerbCall
from csp.errors import Unreachable
from csp.http_client import GatewayClient, Object, field, segment

_DONE: Final = {
    "pause": "paused",
    "resume": "resumed",
    "share": "sharing",
    "noshare": "no longer sharing",
    "interrupt": "interrupted",
    "approve": "approved",
    "deny": "denied",
    "restart": "asked to restart",
}
#: These are worth something only once the agent has been seen to obey.
_PROVED: Final = ("interrupt", "approve", "deny")
_PENDING: Final = ("queued", "held", "typed")
#: A button that nobody took expires in the room after 30 s.
_PATIENCE_S: Final = 45.0
_POLL_S: Final = 0.1
_QUIET_S: Final = 1.0


def control(call: VerbCall) -> int:
    """Send a control to an agent; for urgent ones, wait for the outcome."""
    choice = getattr(call.args, "choice", None)
    body = {} if choice is None else {"choice": choice}
    answer: Object = call.gateway.post_once(f"/agents/{segment(call.args.agent)}/{call.args.verb}", body)
    if call.args.verb in _PROVED:
        return _Proof(call, answer).run()
    if call.is_json:
        put_json(answer)
    else:
        talk(f"{_DONE[call.args.verb]} {call.args.agent}")
    return 0


class _Proof:
    """Wait for the outcome of a control."""

    def __init__(self, call: VerbCall, pressed: Object) -> None:
        self._call = call
        self._pressed = pressed
        self._id = field(pressed, "id", str)
        self._gateway: GatewayClient | None = call.gateway
        self._progress = Progress()

    def run(self) -> int:
        started = time.monotonic()
        state, reason = "queued", ""
        try:
            while state in _PENDING and time.monotonic() - started < _PATIENCE_S:
                state, reason = self._look(state, reason)
                if time.monotonic() - started > _QUIET_S:
                    self._progress.show(f"waiting for {self._call.args.agent} ({reason or state})…")
                if state in _PENDING:
                    time.sleep(_POLL_S)
        finally:
            self._progress.clear()
        return self._end(state, reason)

    def _look(self, state: str, reason: str) -> tuple[str, str]:
        """Return the state of the control; a gateway that is away keeps it, so wait for it."""
        try:
            self._gateway = self._gateway or self._call.reconnect()
            recipients = field(self._gateway.get(f"/messages/{segment(self._id)}"), "recipients", dict)
        except Unreachable:
            self._gateway = None
            return state, "the gateway is away"
        (delivery,) = recipients.values()
        return field(delivery, "state", str), str(delivery.get("reason") or "")

    def _end(self, state: str, reason: str) -> int:
        verb, agent = self._call.args.verb, self._call.args.agent
        is_done = state in ("confirmed", "submitted")
        if self._call.is_json:
            put_json({**self._pressed, "state": state, **({"reason": reason} if reason else {})})
        elif state == "confirmed":
            talk(f"{_DONE[verb]} {agent}")
        elif is_done:
            talk(f"sent {verb} to {agent}, which gives no proof of it")
        else:
            talk(f"csp: {verb} {agent}: {_problem(state, reason)}")
        return 0 if is_done else 1


def _problem(state: str, reason: str) -> str:
    if state == "failed":
        return f"failed: {reason}"
    if state in _PENDING:
        return f"no proof within {_PATIENCE_S:g} s ({reason or state})"
    return "expired, the agent did not take it in time" if state == "expired" else state


def stop(call: VerbCall) -> int:
    """Stop what is running in the room."""
    answer = call.gateway.post_once("/stop", {"all": True} if call.args.all else {})
    if call.is_json:
        put_json(answer)
        return 0
    talk(stopped_line(answer))
    return 0


def remove(call: VerbCall) -> int:
    """Remove an agent from the room, with its pane if it has ended there."""
    from csp.panes.remove_pane import close_ended

    answer = call.gateway.delete(f"/agents/{segment(call.args.agent)}")
    if call.address.room:
        progress = Progress()
        close_ended(call.settings.state_dir, call.address.room, call.args.agent, progress.show)
        progress.clear()
    if call.is_json:
        put_json(answer)
    else:
        talk(f"removed {call.args.agent}")
    return 0
