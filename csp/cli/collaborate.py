"""Let models work on an objective and wait for the result."""

import time
from typing import Final

from csp.cli.arguments import JSON, SECONDS, WHOLE, switch, takes, value
from csp.cli.output import Progress, put, put_json, talk
from csp.cli.send import read_stdin
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, Unreachable
from csp.http_client import GatewayClient, Object, field, segment
from csp.human.status_lines import tokens_text

_HELP: Final = "see: csp collaborate --help"
_POLL_S: Final = 20.0
_RETRY_S: Final = 0.3
#: The names of the options in a request body.
_OPTIONS: Final = {
    "mode": "mode",
    "max_steps": "max_steps",
    "parallel": "parallel",
    "timeout_per_step": "timeout_per_step",
    "cost_limit": "cost_limit_usd",
}
#: Outcomes without a usable result.
_LOST: Final = ("stopped_by_user", "canceled", "superseded", "too_few", "all_failed")


@takes(
    value(
        "objective",
        "OBJECTIVE",
        "objective; with --continue: guidance for the agents; - reads stdin",
        nargs="*",
    ),
    value("--models", "A,B", "participants in this order; the first one leads and summarises"),
    value("--mode", "M", "round_robin or orchestrator; default: round_robin"),
    value("--max-steps", "N", "maximum turns; with --continue: additional turns; default: 10", type=WHOLE),
    value("--parallel", "N", "number of agents asked at the same time; default: 1", type=WHOLE),
    value("--timeout-per-step", "S", "time limit for a step in seconds; default: 300", type=SECONDS),
    value("--cost-limit", "USD", "total cost limit; calls that could exceed it are not made", type=SECONDS),
    value("--continue", "SESSION", "continue an earlier collaboration", dest="session"),
    value("--poll", "SESSION", "wait for an earlier collaboration", dest="poll"),
    value("--stop", "SESSION", "stop a collaboration", dest="stop"),
    switch("--no-wait", "print the id without waiting for the result; with --poll: print the progress"),
    value("--timeout", "S", "seconds to wait; default: 1800", type=SECONDS, default=1800.0),
    JSON,
    examples=(
        "csp collaborate 'a plan for the move' --models claude,gpt,gem --parallel 3 --cost-limit 0.50",
        "csp collaborate 'mind the budget' --continue s-12 --max-steps 4",
        "csp collaborate --poll s-12",
        "csp collaborate --stop s-12",
    ),
)
def collaborate(call: VerbCall) -> int:
    """Start, continue, wait for or stop a collaboration."""
    args = call.args
    if args.stop or args.poll:
        beside = [name for name in ("objective", "models", "session", *_OPTIONS) if getattr(args, name)]
        if args.poll and args.stop:
            raise BadInput("expected --poll or --stop, got both", _HELP)
        if beside:
            raise BadInput(f"--{'poll' if args.poll else 'stop'} excludes {beside[0]!r}", _HELP)
    if args.stop:
        return _answer(call, call.gateway.post(f"/collaborations/{segment(args.stop)}/stop"))
    if args.poll:
        return _follow(call, args.poll, after=0)
    answer = call.gateway.post_once("/collaborations", body_of(call))
    handle = field(answer, "handle", str)
    talk(f"{'continued' if args.session else 'started'} {handle} in thread {field(answer, 'thread', str)}")
    if args.no_wait:
        return call.show(answer, [handle])
    # If it is still running, earlier progress is not shown again.
    path = f"/collaborations/{segment(handle)}"
    return _follow(call, handle, after=field(call.gateway.get(path), "lines", int) if args.session else 0)


def body_of(call: VerbCall) -> Object:
    """Return the request body; the room chooses the values of omitted options."""
    args = vars(call.args)
    words = read_stdin() if args["objective"] == ["-"] else " ".join(args["objective"])
    if not args["session"] and not words.strip():
        raise BadInput("expected an objective, got nothing", _HELP)
    if not args["session"] and not args["models"]:
        raise BadInput("expected --models, got nothing", "name the participants; see: csp agents")
    body: Object = {name: args[option] for option, name in _OPTIONS.items()}
    body |= {"session_id": args["session"], "user_input" if args["session"] else "objective": words}
    if args["models"]:
        body["models"] = [name for name in args["models"].split(",") if name]
    return {name: value for name, value in body.items() if value not in (None, "")}


def _follow(call: VerbCall, handle: str, *, after: int) -> int:
    try:
        view = watch(call, handle, after)
    except KeyboardInterrupt:
        _say_how_to_go_on(handle)
        return 1
    if view.get("reason") is None:
        if not call.args.no_wait:
            talk(f"no result within {call.args.timeout:g} s")
        _say_how_to_go_on(handle)
        if call.is_json:
            put_json(view)
        return 0 if call.args.no_wait else 1
    return _answer(call, view)


def _say_how_to_go_on(handle: str) -> None:
    talk(f"{handle} is running; wait for it: csp collaborate --poll {handle}")
    talk(f"or stop it: csp collaborate --stop {handle}")


def _answer(call: VerbCall, view: Object) -> int:
    """Print the result and its cost."""
    reason, result = str(view.get("reason")), view.get("result")
    failed = ", ".join(map(str, field(view, "failed", list)))
    cost = f"{view.get('cost_usd'):.4f} USD, " if view.get("cost_usd") else ""
    took = f"{view.get('step')} steps, {cost}{tokens_text(view)}"
    talk(f"{view.get('handle')} ended: {reason} after {took}" + (f"; failed: {failed}" if failed else ""))
    if call.is_json:
        put_json(view)
    elif result is not None:
        put(str(result))
    return 1 if reason in _LOST and not call.args.stop else 0


def watch(call: VerbCall, handle: str, after: int) -> Object:
    """Show the progress of a collaboration across restarts of the gateway.

    Return its view once it has ended or the timeout has passed.
    """
    deadline = time.monotonic() + (0.0 if call.args.no_wait else call.args.timeout)
    gateway: GatewayClient | None = call.gateway
    view: Object = {}
    with Progress() as progress:
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                gateway = gateway or call.reconnect()
                wait = f"{min(_POLL_S, left):.3f}"
                view = gateway.get(f"/collaborations/{segment(handle)}", after=after, wait=wait)
            except Unreachable:
                gateway = None
                progress.show("the gateway is unreachable…")
                if call.args.no_wait:
                    raise
                time.sleep(_RETRY_S)
            else:
                progress.clear()
                for line in field(view, "progress", list):
                    talk(str(line))
                after = field(view, "lines", int)
                progress.show(f"waiting for {', '.join(map(str, field(view, 'waiting', list)))}…")
            if view and (view.get("reason") is not None or left <= 0):
                return view
