"""Set, show, steer and end the mode of a room."""

from typing import Any, Final

from csp.cli.output import put_json, put_lines, talk
from csp.cli.subcommands import ANY, Form, do_form
from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput, NotFound, Refused
from csp.http_client import Object, field, segment

_START: Final = "begin one: csp mode set debate 'tabs or spaces'"
#: What the options are called in a body; those of the limits go into one of their own.
_SET: Final = ("rounds", "steps", "first", "synth", "ballot", "respect_final", "soft_turns")
_LIMITS: Final = ("turns", "tokens", "minutes", "cost")
_OPTIONS: Final = ("agents", *_SET, *_LIMITS)


def mode(call: VerbCall) -> int:
    """Run the form that the first word names."""
    name = next(iter(call.args.form or ()), "")
    if name and name not in _FORMS and name in _modes():
        raise BadInput(f"unknown form {name!r} of mode", f"begin it with: csp mode set {name}")
    return do_form(call, "mode", _FORMS, "show")


def _modes() -> list[str]:
    from csp.room.sessions.mode_catalogue import mode_names

    return mode_names()


# --- beginning, looking ----------------------------------------------------------------------------


def _set(call: VerbCall, words: list[str]) -> int:
    if not words:
        raise BadInput("expected a mode", "for example: csp mode set debate 'tabs or spaces'")
    answer = call.gateway.post_once("/mode", _body(call, words[0], " ".join(words[1:])))
    view = field(answer, "orchestration", dict)
    return _answer(call, answer, _line(view))


def _body(call: VerbCall, mode: str, topic: str) -> dict[str, Any]:
    """Return the request; the room decides what was left out."""
    args = vars(call.args)
    body: dict[str, Any] = {"mode": mode, "topic": topic, **{name: args[name] for name in _SET}}
    body = {name: value for name, value in body.items() if value not in (None, False, "")}
    if args["agents"] is not None:
        body["agents"] = [name for name in args["agents"].split(",") if name]
    limits = {name: args[name] for name in _LIMITS if args[name] is not None}
    return body | _thread(call) | ({"limits": limits} if limits else {})


def _show(call: VerbCall, words: list[str]) -> int:
    view = _view(call)
    if call.is_json:
        put_json(view)
        return 0
    put_lines(_lines(view))
    return 0


def _votes(call: VerbCall, words: list[str]) -> int:
    view = _view(call)
    if call.is_json:
        put_json({name: view.get(name) or {} for name in ("proposals", "votes")})
        return 0
    from csp.human.vote_view import vote_lines

    put_lines(vote_lines(view))
    return 0


# --- steering --------------------------------------------------------------------------------------


def _next(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.post_once("/turn/next", _thread(call))
    if answer.get("complete"):
        return _answer(call, answer, "the mode is complete")
    return _answer(call, answer, f"round {field(answer, 'round', int) + 1}: {answer.get('currentTurn')}")


def _end(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.post_once("/mode", {"mode": "freeform", **_thread(call)})
    return _answer(call, answer, "the mode is freeform")


def _pause(call: VerbCall, words: list[str]) -> int:
    return _halt(call, "pause", "paused")


def _resume(call: VerbCall, words: list[str]) -> int:
    return _halt(call, "resume", "running")


def _halt(call: VerbCall, verb: str, status: str) -> int:
    """Pause or resume; say so if nothing changes."""
    view = _running(call)
    already = " already" if view.get("status") == status else ""
    return _answer(call, _steer(call, view, verb), f"{view['mode']} is {status}{already}")


def _extend(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    given = {name: getattr(call.args, name) for name in ("rounds", "minutes")}
    body = {name: value for name, value in given.items() if value is not None}
    amounts = " and ".join(f"{value:g} {name}" for name, value in body.items())
    text = f"extended {view['mode']} by {amounts}" if amounts else "the open turns got more time"
    return _answer(call, _steer(call, view, "extend", body), text)


def _skip(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    known = list(map(str, field(view, "turnOrder", list)))
    if words and words[0] not in known:
        hint = nearest(words[0], known) or f"in it are: {', '.join(known)}"
        raise NotFound(f"agent {words[0]!r} is not in this {view['mode']}", hint)
    body = {"agent": words[0]} if words else {}
    skipped = words[0] if words else view.get("currentTurn")
    return _answer(call, _steer(call, view, "skip", body), f"skipped {skipped}")


def _stop(call: VerbCall, words: list[str]) -> int:
    view = _running(call)
    return _answer(call, _steer(call, view, "stop"), f"ended {view['mode']} ({view['sessionId']})")


def _running(call: VerbCall) -> Object:
    """Return the running mode; raise with a hint how to start one."""
    view = _view(call)
    if view.get("sessionId") is None or view.get("status") == "ended":
        raise Refused("no mode is running", _START)
    return view


def _steer(call: VerbCall, view: Object, verb: str, body: Object | None = None) -> Object:
    answer: Object = call.gateway.post_once(
        f"/sessions/{segment(field(view, 'sessionId', str))}/{verb}", body
    )
    return answer


_FORMS: Final = {
    "set": Form(_set, ANY, _OPTIONS),
    "show": Form(_show),
    "next": Form(_next),
    "pause": Form(_pause),
    "resume": Form(_resume),
    "extend": Form(_extend, 0, ("rounds", "minutes")),
    "skip": Form(_skip, 1),
    "votes": Form(_votes),
    "end": Form(_end),
    "stop": Form(_stop),
}


# --- what is said ----------------------------------------------------------------------------------


def _view(call: VerbCall) -> Object:
    view: Object = call.gateway.get("/mode", **_thread(call))
    return view


def _thread(call: VerbCall) -> dict[str, str]:
    return {"thread": call.args.thread} if call.args.thread else {}


def _answer(call: VerbCall, answer: Object, text: str) -> int:
    if call.is_json:
        put_json(answer)
    else:
        talk(text)
    return 0


def _line(view: Object) -> str:
    waiting = ", ".join(map(str, field(view, "waitingFor", list)))
    return f"the mode is {view.get('mode')}" + (f", waiting for {waiting}" if waiting else "")


def _lines(view: Object) -> list[str]:
    """Return the mode as lines for a person."""
    lines = [f"mode: {view.get('mode')}"]
    if view.get("sessionId") is None:
        return lines
    lines.append(f"topic: {view.get('topic') or '-'}")
    rounds = view.get("maxRounds") or "-"
    lines.append(f"round: {field(view, 'round', int) + 1}/{rounds}  phase: {view.get('phase')}")
    waiting = ", ".join(map(str, field(view, "waitingFor", list)))
    lines.append(f"waiting for: {waiting or '-'}")
    state = f"{view.get('status')}" + (f" ({view['reason']})" if view.get("reason") else "")
    lines.append(f"session: {view.get('sessionId')}  {state}")
    return lines + [_vote_line(agent, vote) for agent, vote in field(view, "votes", dict).items()]


def _vote_line(agent: str, vote: Object) -> str:
    reason = " ".join(str(vote.get("reason") or "").split())
    return f"vote: {agent} -> {vote.get('label')}" + (f": {reason}" if reason else "")
