"""Set, show, steer or end the mode of a room."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from csp.cli.arguments import ANY, JSON, SECONDS, THREAD, WHOLE, Forms, switch, takes, value
from csp.cli.output import duration
from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput, NotFound, Refused
from csp.http_client import Object, field, segment

_FREEFORM: Final = "freeform"
_START: Final = "start one: csp mode set debate 'tabs or spaces'"
#: The names of the options in a request body; limits are in a separate object.
_SET: Final = (
    *("rounds", "steps", "first", "synth", "ballot", "respect_final", "soft_turns"),
    *("on_limit", "on_hard_limit"),
)
_LIMITS: Final = ("turns", "tokens", "minutes", "cost")
_FORMS: Final = Forms("mode", default="show")


@takes(
    value(
        "form",
        "FORM",
        "set MODE TOPIC, show, next, pause, resume, extend, skip [AGENT], votes, end or stop; default: show",
        nargs="*",
    ),
    value("--agents", "A,B", "participants in this order; default: all online agents"),
    value("--rounds", "N", "number of rounds in the mode; with extend: additional rounds", type=WHOLE),
    value("--steps", "N", "number of turns in a round robin", type=WHOLE),
    value("--first", "AGENT", "agent that speaks first"),
    value("--synth", "AGENT", "agent that writes the synthesis"),
    switch("--ballot", "end a debate with a vote"),
    switch("--respect-final", "let an agent end an autopilot session"),
    switch("--soft-turns", "deliver messages to waiting agents immediately, not with their turn"),
    switch("--replace", "stop the running mode, if there is one"),
    value("--turns", "N", "end after N turns", type=WHOLE),
    value("--tokens", "N", "end after N tokens", type=WHOLE),
    value("--minutes", "M", "end after M minutes; with extend: additional minutes", type=SECONDS),
    value("--cost", "USD", "end after a cost of USD dollars", type=SECONDS),
    value(
        "--on-limit",
        "DO",
        "at an agent's usage limit: wait, skip or stop; default: wait in autopilot, else skip",
        choices=("wait", "skip", "stop"),
    ),
    value(
        "--on-hard-limit",
        "DO",
        "at a limit of the mode: ask or stop; default: stop",
        choices=("ask", "stop"),
    ),
    THREAD,
    JSON,
    examples=(
        "csp mode set debate 'tabs or spaces' --rounds 2 --agents claude,codex",
        "csp mode set autopilot 'make the tests pass' --turns 50 --minutes 10 --on-hard-limit ask",
        "csp mode pause",
        "csp mode extend --rounds 2",
        "csp mode skip codex",
        "csp mode votes",
    ),
)
def mode(call: VerbCall) -> int:
    """Run the form named by the first word."""
    name = next(iter(call.args.form or ()), "")
    if name and name not in _FORMS:
        from csp.room.sessions.modes import mode_names

        if name in mode_names():
            raise BadInput(f"unknown form {name!r} of mode", f"start it with: csp mode set {name} TOPIC")
    return _FORMS.do(call)


# --- starting and showing --------------------------------------------------------------------------


@_FORMS.form("set", ANY, ("agents", "replace", *_SET, *_LIMITS))
def _set(call: VerbCall, words: list[str]) -> int:
    if not words:
        raise BadInput("expected a mode", "for example: csp mode set debate 'tabs or spaces'")
    from csp.room.sessions.modes import mode_names

    args, mode, topic = vars(call.args), words[0], " ".join(words[1:])
    if mode != _FREEFORM and mode in mode_names():
        if not topic.strip():
            raise Refused(f"{mode} needs a topic", f"for example: csp mode set {mode} 'tabs or spaces'")
        running: Object = {} if args["replace"] else _view(call)
        if running.get("sessionId") is not None and running.get("status") != "ended":
            hint = "add --replace to stop it and start the new one"
            raise Refused(f"{running.get('mode')} is running", hint)
    given: dict[str, Any] = {"mode": mode, "topic": topic}
    given |= {name: args[name] for name in _SET}
    # The room chooses the values of omitted options.
    body = {name: value for name, value in given.items() if value not in (None, False, "")}
    if args["agents"] is not None:
        body["agents"] = [name for name in args["agents"].split(",") if name]
    limits = {name: args[name] for name in _LIMITS if args[name] is not None}
    body |= _thread(call) | ({"limits": limits} if limits else {})
    answer = call.gateway.post_once("/mode", body)
    view = field(answer, "orchestration", dict)
    waiting = ", ".join(map(str, field(view, "waitingFor", list)))
    return call.tell(
        answer, f"the mode is {view.get('mode')}" + (f", waiting for {waiting}" if waiting else "")
    )


@_FORMS.form("show")
def _show(call: VerbCall, words: list[str]) -> int:
    view = _view(call)
    return call.show(view, view_lines(view))


@_FORMS.form("next")
def _next(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.post_once("/turn/next", _thread(call))
    if answer.get("complete"):
        return call.tell(answer, "the mode is complete")
    return call.tell(answer, f"round {field(answer, 'round', int) + 1}: {answer.get('currentTurn')}")


# --- steering --------------------------------------------------------------------------------------


def _halt(verb: str, status: str, call: VerbCall, words: list[str]) -> int:
    """Pause or resume the mode, and report if nothing changes."""
    view = _running(call)
    already = " already" if view.get("status") == status else ""
    return call.tell(_steer(call, view, verb), f"{view['mode']} is {status}{already}")


_FORMS.form("pause")(partial(_halt, "pause", "paused"))
_FORMS.form("resume")(partial(_halt, "resume", "running"))


@_FORMS.form("extend", 0, ("rounds", "minutes"))
def _extend(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    given = {name: getattr(call.args, name) for name in ("rounds", "minutes")}
    body = {name: value for name, value in given.items() if value is not None}
    amounts = " and ".join(f"{value:g} {name}" for name, value in body.items())
    text = f"extended {view['mode']} by {amounts}" if amounts else "the open turns were given more time"
    return call.tell(_steer(call, view, "extend", body), text)


@_FORMS.form("skip", 1)
def _skip(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    known = list(map(str, field(view, "turnOrder", list)))
    if words and words[0] not in known:
        hint = nearest(words[0], known) or f"its agents are: {', '.join(known)}"
        raise NotFound(f"agent {words[0]!r} is not in this {view['mode']}", hint)
    body = {"agent": words[0]} if words else {}
    skipped = words[0] if words else view.get("currentTurn")
    return call.tell(_steer(call, view, "skip", body), f"skipped {skipped}")


@_FORMS.form("votes")
def _votes(call: VerbCall, words: list[str]) -> int:
    from csp.human.status_lines import vote_lines

    view = _view(call)
    return call.show({name: view.get(name) or {} for name in ("proposals", "votes")}, vote_lines(view))


@_FORMS.form("end")
def _end(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.post_once("/mode", {"mode": "freeform", **_thread(call)})
    return call.tell(answer, "the mode is freeform")


@_FORMS.form("stop")
def _stop(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    return call.tell(_steer(call, view, "stop"), f"ended {view['mode']} ({view['sessionId']})")


def _running(call: VerbCall) -> Object:
    """Return the running mode, or raise with a hint on how to start one."""
    view = _view(call)
    if view.get("sessionId") is None or view.get("status") == "ended":
        raise Refused("no mode is running", _START)
    return view


def _steer(call: VerbCall, view: Object, verb: str, body: Object | None = None) -> Object:
    answer: Object = call.gateway.post_once(
        f"/sessions/{segment(field(view, 'sessionId', str))}/{verb}", body
    )
    return answer


def _view(call: VerbCall) -> Object:
    view: Object = call.gateway.get("/mode", **_thread(call))
    return view


def _thread(call: VerbCall) -> dict[str, str]:
    return {"thread": call.args.thread} if call.args.thread else {}


#: The kinds of waits, in words after the name of the agent.
WAITS: Final = {
    "reset": "at a usage limit",
    "person": "needs a person",
    "offline": "is offline",
    "resume": "is stopped until the session continues",
}


def wait_line(wait: Object) -> str:
    """Return a wait of a session as one line."""
    words = f"{wait.get('agent')} {WAITS.get(str(wait.get('kind')), wait.get('kind'))}"
    at = wait.get("at")
    if at is not None:
        return f"{words}, asked again in {duration(max(0.0, float(at) - time.time()))}"
    return f"{words} ({wait['detail']})" if wait.get("detail") else words


def view_lines(view: Object) -> Iterator[str]:
    """Yield the running mode as human-readable lines."""
    if view.get("sessionId") is None:
        yield "no mode is running"
        return
    if view.get("status") == "ended":
        from csp.human.event_lines import END_WORDS

        reason = str(view.get("reason") or "")
        ended = END_WORDS.get(reason, reason)
        yield f"no mode is running (the last session, {view.get('sessionId')}: {ended})"
    else:
        yield f"mode: {view.get('mode')}"
        yield f"topic: {view.get('topic') or '-'}"
        rounds = view.get("maxRounds") or "-"
        yield f"round: {field(view, 'round', int) + 1}/{rounds}  phase: {view.get('phase')}"
        waiting = ", ".join(map(str, field(view, "waitingFor", list)))
        yield f"waiting for: {waiting or '-'}"
        # A gateway of an older version has no waits.
        for wait in view.get("waits") or ():
            yield f"waits: {wait_line(wait)}"
        held = " at its limit" if view.get("held") else ""
        yield f"session: {view.get('sessionId')}  {view.get('status')}{held}"
    for agent, vote in field(view, "votes", dict).items():
        reason = " ".join(str(vote.get("reason") or "").split())
        yield f"vote: {agent} -> {vote.get('label')}" + (f": {reason}" if reason else "")
