"""Set, show, move, end the mode of a room."""

from typing import Any, Final

from csp.cli.call import Call
from csp.cli.terminal import put, put_json, talk
from csp.errors import BadInput
from csp.oneshot import Object, field

_FORMS: Final = "set, show, next or end"


def mode(call: Call) -> int:
    """Do what the first word says."""
    form, *words = call.args.form or ["show"]
    action = _ACTIONS.get(form)
    if action is None:
        raise BadInput(f"unknown form {form!r} of mode, expected one of: {_FORMS}", "see: csp mode --help")
    if words and form != "set":
        raise BadInput(f"csp mode {form} takes no further words", "see: csp mode --help")
    return action(call, words)


def _set(call: Call, words: list[str]) -> int:
    if not words:
        raise BadInput("expected a mode", "for example: csp mode set debate 'tabs or spaces'")
    answer = call.gateway.post("/mode", _body(call, words[0], " ".join(words[1:])))
    view = field(answer, "orchestration", dict)
    return _answer(call, answer, _line(view))


def _body(call: Call, mode: str, topic: str) -> dict[str, Any]:
    args = call.args
    body: dict[str, Any] = {
        "mode": mode,
        "topic": topic or None,
        "agents": None if args.agents is None else [name for name in args.agents.split(",") if name],
        "rounds": args.rounds,
        "first": args.first,
        "synth": args.synth,
        "ballot": args.ballot or None,
        "respect_final": args.respect_final or None,
        "thread": args.thread,
    }
    return {name: value for name, value in body.items() if value is not None}


def _show(call: Call, words: list[str]) -> int:
    view = call.gateway.get("/mode", **({"thread": call.args.thread} if call.args.thread else {}))
    if call.is_json:
        put_json(view)
        return 0
    for line in _lines(view):
        put(line)
    return 0


def _next(call: Call, words: list[str]) -> int:
    answer = call.gateway.post("/turn/next", _thread(call))
    if answer.get("complete"):
        return _answer(call, answer, "the mode is complete")
    return _answer(call, answer, f"round {field(answer, 'round', int) + 1}: {answer.get('currentTurn')}")


def _end(call: Call, words: list[str]) -> int:
    answer = call.gateway.post("/mode", {"mode": "freeform", **_thread(call)})
    return _answer(call, answer, "the mode is freeform")


_ACTIONS: Final = {"set": _set, "show": _show, "next": _next, "end": _end}


def _thread(call: Call) -> dict[str, str]:
    return {"thread": call.args.thread} if call.args.thread else {}


def _answer(call: Call, answer: Object, text: str) -> int:
    if call.is_json:
        put_json(answer)
    else:
        talk(text)
    return 0


def _line(view: Object) -> str:
    waiting = ", ".join(map(str, field(view, "waitingFor", list)))
    return f"the mode is {view.get('mode')}" + (f", waiting for {waiting}" if waiting else "")


def _lines(view: Object) -> list[str]:
    """Return what a person wants to know, as the seed's /status shows it."""
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
